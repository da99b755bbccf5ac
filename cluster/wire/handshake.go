package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Kind says what a connection is for. It is the first byte of every
// connection.
type Kind byte

// The kinds of connection.
const (
	Raft Kind = 'R'
	GRPC Kind = 'G'
)

// String names the kind for people.
func (k Kind) String() string {
	switch k {
	case Raft:
		return "raft"
	case GRPC:
		return "grpc"
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// Version is the handshake's version byte. A node refuses any other, with a
// reason that names both.
const Version = 1

const (
	magic = "QLSE"
	// A cluster id is 32 digits and a Raft id at most a name and an
	// incarnation; the bound leaves room and keeps a stranger's bytes few.
	idLenMax     = 128
	reasonLenMax = 512
	prefixLen    = 1 + len(magic) + 1
)

// Peer is who stands at the other end.
type Peer struct {
	Kind Kind
	// ClusterID is empty until the node belongs to a cluster.
	ClusterID string
	RaftID    string
}

// errMalformed is the cause of every refusal to read a handshake's bytes.
var errMalformed = errors.New("malformed handshake")

// encodeHello encodes what a dialer says.
func encodeHello(p Peer) []byte {
	b := append([]byte{byte(p.Kind)}, magic...)
	b = append(b, Version)
	b = appendID(b, p.ClusterID)
	return appendID(b, p.RaftID)
}

// readHello decodes what a dialer says. It reads no byte beyond the handshake
// and never more than prefixLen + 2 (1 + idLenMax). A version that is not ours
// is returned with ErrVersion and the kind alone: what follows it is unknown.
func readHello(r io.Reader) (Peer, error) {
	var prefix [prefixLen]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return Peer{}, err
	}
	p := Peer{Kind: Kind(prefix[0])}
	if string(prefix[1:1+len(magic)]) != magic {
		return Peer{}, fmt.Errorf("%w: the first bytes are not those of a Quorlease node", errMalformed)
	}
	if v := prefix[prefixLen-1]; v != Version {
		return p, fmt.Errorf("%w: got %d, want %d", ErrVersion, v, Version)
	}
	if p.Kind != Raft && p.Kind != GRPC {
		return Peer{}, fmt.Errorf("%w: unknown %s", errMalformed, p.Kind)
	}
	var err error
	if p.ClusterID, err = readID(r, "cluster id"); err != nil {
		return Peer{}, err
	}
	if p.RaftID, err = readID(r, "raft id"); err != nil {
		return Peer{}, err
	}
	if p.RaftID == "" {
		return Peer{}, fmt.Errorf("%w: empty raft id", errMalformed)
	}
	return p, nil
}

// encodeAnswer encodes a welcome (CodeWelcome) or a refusal.
func encodeAnswer(self Peer, code Code, reason string) []byte {
	b := append([]byte(magic), Version, byte(code))
	b = appendID(b, self.ClusterID)
	b = appendID(b, self.RaftID)
	if len(reason) > reasonLenMax {
		reason = reason[:reasonLenMax]
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(reason)))
	return append(b, reason...)
}

// readAnswer decodes what an acceptor answers. A refusal is returned as a
// *Refusal error together with who refused.
func readAnswer(r io.Reader, kind Kind) (Peer, error) {
	var prefix [len(magic) + 2]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return Peer{}, err
	}
	if string(prefix[:len(magic)]) != magic {
		return Peer{}, fmt.Errorf("%w: the answer is not that of a Quorlease node", errMalformed)
	}
	if v := prefix[len(magic)]; v != Version {
		return Peer{}, fmt.Errorf("%w: got %d, want %d", ErrVersion, v, Version)
	}
	code := Code(prefix[len(magic)+1])
	p := Peer{Kind: kind}
	var err error
	if p.ClusterID, err = readID(r, "cluster id"); err != nil {
		return Peer{}, err
	}
	if p.RaftID, err = readID(r, "raft id"); err != nil {
		return Peer{}, err
	}
	reason, err := readReason(r)
	if err != nil {
		return Peer{}, err
	}
	if code != CodeWelcome {
		return p, &Refusal{Code: code, Reason: reason, By: p}
	}
	if p.RaftID == "" {
		return Peer{}, fmt.Errorf("%w: empty raft id", errMalformed)
	}
	return p, nil
}

func appendID(b []byte, id string) []byte {
	if len(id) > idLenMax {
		// A broken invariant of the caller: Listen and NewDialer check their own.
		panic(fmt.Sprintf("id of %d bytes, at most %d", len(id), idLenMax))
	}
	b = append(b, byte(len(id)))
	return append(b, id...)
}

// readID reads one length-prefixed id of printable ASCII without spaces, so
// that it can stand in a log line as it is.
func readID(r io.Reader, what string) (string, error) {
	var n [1]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return "", noEOF(err)
	}
	if int(n[0]) > idLenMax {
		return "", fmt.Errorf("%w: %s of %d bytes, at most %d", errMalformed, what, n[0], idLenMax)
	}
	id := make([]byte, n[0])
	if _, err := io.ReadFull(r, id); err != nil {
		return "", noEOF(err)
	}
	for _, c := range id {
		if c <= ' ' || c > '~' {
			return "", fmt.Errorf("%w: %s has the byte %#02x", errMalformed, what, c)
		}
	}
	return string(id), nil
}

func readReason(r io.Reader) (string, error) {
	var n [2]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return "", noEOF(err)
	}
	size := int(binary.BigEndian.Uint16(n[:]))
	if size > reasonLenMax {
		return "", fmt.Errorf("%w: reason of %d bytes, at most %d", errMalformed, size, reasonLenMax)
	}
	reason := make([]byte, size)
	if _, err := io.ReadFull(r, reason); err != nil {
		return "", noEOF(err)
	}
	return printable(string(reason)), nil
}

// noEOF makes an end in the middle of a handshake unexpected.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// printable replaces what a peer must not put into our logs.
func printable(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}
