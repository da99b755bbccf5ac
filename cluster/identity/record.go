package identity

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
)

// Member is one of the first members of a cluster.
type Member struct {
	// RaftID is name, dot, incarnation.
	RaftID string `json:"raft_id"`
	// Peer is the advertised peer address.
	Peer string `json:"peer"`
}

// Record is what the identity file says.
type Record struct {
	// Name is the operator's name for the node (`--id`).
	Name string `json:"name"`
	// Incarnation is 8 lower-case hex digits, drawn when the data directory
	// was created.
	Incarnation string `json:"incarnation"`
	// ClusterID is 32 lower-case hex digits once the node has promised to
	// belong to a cluster, or belongs to it. Empty before.
	ClusterID string `json:"cluster_id,omitempty"`
	// Members are exactly the first members of the cluster, sorted by Raft id,
	// where the node has promised to be one of them.
	Members []Member `json:"members,omitempty"`
	// Formed: Raft has had state of the cluster in this data directory. It is
	// never bootstrapped again, and where the state is missing the disk has lost
	// it.
	Formed bool `json:"formed,omitempty"`
	// Removed: the node has learned that it was removed from the cluster.
	Removed bool `json:"removed,omitempty"`
}

// RaftID is the node's id in Raft's configuration.
func (r Record) RaftID() string { return r.Name + "." + r.Incarnation }

// NameOf is the operator's name in a Raft id: what comes before the last dot.
func NameOf(raftID string) string {
	if i := strings.LastIndexByte(raftID, '.'); i >= 0 {
		return raftID[:i]
	}
	return raftID
}

// NewClusterID draws a cluster id.
func NewClusterID() string { return randomHex(clusterIDLen) }

const (
	nameLenMax     = 63
	incarnationLen = 8
	clusterIDLen   = 32
	// membersMax and fileSizeMax only keep a file that is not ours from being
	// taken for one.
	membersMax  = 64
	fileSizeMax = 64 << 10
)

func randomHex(digits int) string {
	b := make([]byte, digits/2)
	// crypto/rand.Read never fails: it ends the program instead.
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// CheckName refuses what is no name of a node: lower-case letters, digits,
// dots, dashes and underscores, 1 to 63, beginning with a letter or digit.
func CheckName(name string) error {
	ok := len(name) >= 1 && len(name) <= nameLenMax && isAlnum(name[0])
	for i := 0; ok && i < len(name); i++ {
		ok = isAlnum(name[i]) || strings.IndexByte("._-", name[i]) >= 0
	}
	if !ok {
		return fmt.Errorf("node id %.80q: must match [a-z0-9][a-z0-9_.-]{0,62}", name)
	}
	return nil
}

// CheckClusterID refuses what is no cluster id.
func CheckClusterID(id string) error {
	if !isHex(id, clusterIDLen) {
		return fmt.Errorf("cluster id %.80q: must be %d lower-case hex digits", id, clusterIDLen)
	}
	return nil
}

// CheckRaftID refuses what is no name, dot, incarnation.
func CheckRaftID(id string) error {
	name := NameOf(id)
	if CheckName(name) != nil || !isHex(strings.TrimPrefix(id, name+"."), incarnationLen) {
		return fmt.Errorf("raft id %.100q: must be a node id, a dot and %d lower-case hex digits", id, incarnationLen)
	}
	return nil
}

func isAlnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func isHex(s string, digits int) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == digits
}

// check refuses a record that no program of ours writes.
func (r Record) check() error {
	if err := CheckName(r.Name); err != nil {
		return err
	}
	if !isHex(r.Incarnation, incarnationLen) {
		return fmt.Errorf("incarnation %.80q: must be %d lower-case hex digits", r.Incarnation, incarnationLen)
	}
	if r.ClusterID == "" {
		if r.Formed || len(r.Members) > 0 {
			return errors.New("formed or promised without a cluster id")
		}
		return nil
	}
	if err := CheckClusterID(r.ClusterID); err != nil {
		return err
	}
	if len(r.Members) == 0 {
		return nil
	}
	return CheckMembers(r.Members, r.RaftID())
}

// CheckMembers refuses first members that are not sorted by Raft id, name one
// node twice, lack an address, or leave self out.
func CheckMembers(members []Member, self string) error {
	if n := len(members); n == 0 || n > membersMax {
		return fmt.Errorf("%d members: must be 1 to %d", n, membersMax)
	}
	found := false
	for i, m := range members {
		if err := CheckRaftID(m.RaftID); err != nil {
			return fmt.Errorf("member %d: %w", i, err)
		}
		if m.Peer == "" || len(m.Peer) > 512 {
			return fmt.Errorf("member %s: peer address of %d bytes, must be 1 to 512", m.RaftID, len(m.Peer))
		}
		if i > 0 && members[i-1].RaftID >= m.RaftID {
			return fmt.Errorf("members %s and %s are not in order", members[i-1].RaftID, m.RaftID)
		}
		found = found || m.RaftID == self
		for _, o := range members[:i] {
			if NameOf(o.RaftID) == NameOf(m.RaftID) || o.Peer == m.Peer {
				return fmt.Errorf("members %s and %s share a name or an address", o.RaftID, m.RaftID)
			}
		}
	}
	if !found {
		return fmt.Errorf("this node, %s, is not among the members", self)
	}
	return nil
}

func (r Record) clone() Record {
	r.Members = slices.Clone(r.Members)
	return r
}

// file is the record as it is stored: a flipped digit must not make another
// node of this one.
type file struct {
	Version  int    `json:"version"`
	Identity Record `json:"identity"`
	// Checksum is CRC-32C over the compact JSON of Identity.
	Checksum uint32 `json:"crc32c"`
}

const fileVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(r Record) (uint32, error) {
	b, err := json.Marshal(r)
	return crc32.Checksum(b, castagnoli), err
}

func encode(r Record) ([]byte, error) {
	sum, err := checksum(r)
	if err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(file{Version: fileVersion, Identity: r, Checksum: sum}, "", "  ")
	return append(b, '\n'), err
}

// errCorrupt is the cause of every refusal to read the file's content.
var errCorrupt = errors.New("corrupt")

func decode(b []byte) (Record, error) {
	if len(b) > fileSizeMax {
		return Record{}, fmt.Errorf("%w: more than %d bytes", errCorrupt, fileSizeMax)
	}
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &version); err != nil {
		return Record{}, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	if version.Version != fileVersion {
		return Record{}, fmt.Errorf("version %d, this program reads %d", version.Version, fileVersion)
	}
	var f file
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return Record{}, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Record{}, fmt.Errorf("%w: something follows the record", errCorrupt)
	}
	sum, err := checksum(f.Identity)
	if err != nil {
		return Record{}, err
	}
	if sum != f.Checksum {
		return Record{}, fmt.Errorf("%w: checksum %08x, the file says %08x", errCorrupt, sum, f.Checksum)
	}
	if err := f.Identity.check(); err != nil {
		return Record{}, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	return f.Identity, nil
}
