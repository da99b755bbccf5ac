package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	clusterX = "0123456789abcdef0123456789abcdef"
	clusterY = "fedcba9876543210fedcba9876543210"
)

func TestHello(t *testing.T) {
	t.Parallel()
	for _, want := range []Peer{
		{Kind: Raft, ClusterID: clusterX, RaftID: "n1.11111111"},
		{Kind: GRPC, RaftID: "n1.11111111"},
		{Kind: Raft, ClusterID: strings.Repeat("x", idLenMax), RaftID: strings.Repeat("y", idLenMax)},
	} {
		b := encodeHello(want)
		if b[0] != byte(want.Kind) {
			t.Errorf("first byte %q, want the kind %q", b[0], byte(want.Kind))
		}
		r := bytes.NewReader(append(b, "raft"...))
		got, err := readHello(r)
		if err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		if r.Len() != len("raft") {
			t.Errorf("%d bytes left, want those after the handshake", r.Len())
		}
	}
}

func TestMalformedHello(t *testing.T) {
	t.Parallel()
	good := string(encodeHello(Peer{Kind: Raft, ClusterID: clusterX, RaftID: "n1.11111111"}))
	cases := []struct {
		name, raw, want string
	}{
		{"another_protocol", "GET / HTTP/1.1\r\n\r\n", "not those of a Quorlease node"},
		{"another_kind", "X" + good[1:], "unknown kind 88"},
		{"another_version", good[:5] + "\x02" + good[6:], "got 2, want 1"},
		{"no_raft_id", "RQLSE\x01\x00\x00", "empty raft id"},
		{"a_long_id", "RQLSE\x01\x81" + strings.Repeat("x", 200), "cluster id of 129 bytes, at most 128"},
		{"a_line_break", "RQLSE\x01\x00\x03a\nb", "raft id has the byte 0x0a"},
		{"not_ascii", "RQLSE\x01\x00\x02ä", "raft id has the byte 0xc3"},
		{"cut_short", good[:len(good)-1], "unexpected EOF"},
		{"nothing", "", "EOF"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := readHello(strings.NewReader(c.raw)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	self := Peer{Kind: GRPC, ClusterID: clusterX, RaftID: "n2.22222222"}
	got, err := readAnswer(bytes.NewReader(encodeAnswer(self, CodeWelcome, "")), GRPC)
	if err != nil || got != self {
		t.Errorf("welcome: got %+v, %v, want %+v", got, err, self)
	}
	for code, want := range map[Code]error{
		CodeOtherCluster: ErrOtherCluster, CodeUnknownNode: ErrUnknownNode, CodeBusy: ErrBusy, CodeVersion: ErrVersion,
		CodeStarting: ErrStarting,
	} {
		raw := encodeAnswer(self, code, "because\nof "+strings.Repeat("x", 1000))
		_, err := readAnswer(bytes.NewReader(raw), GRPC)
		var refusal *Refusal
		if !errors.Is(err, want) || !errors.As(err, &refusal) || refusal.By != self || codeOf(err) != code {
			t.Errorf("code %d: got %v, want %v", code, err, want)
		}
		if !strings.HasPrefix(refusal.Reason, "because?of xxx") || len(refusal.Reason) != reasonLenMax {
			t.Errorf("reason %.30q of %d bytes", refusal.Reason, len(refusal.Reason))
		}
	}
	if _, err := readAnswer(bytes.NewReader(encodeAnswer(self, 99, "new")), GRPC); err == nil || errors.Is(err, nil) {
		t.Errorf("a code of a newer program: got %v, want a refusal", err)
	}
}

// FuzzHello: no bytes make the decoder panic, read beyond its bound or accept
// what it would not have written.
func FuzzHello(f *testing.F) {
	f.Add(encodeHello(Peer{Kind: Raft, ClusterID: clusterX, RaftID: "n1.11111111"}))
	f.Add(encodeHello(Peer{Kind: GRPC, RaftID: "n1.11111111"}))
	f.Add([]byte("RQLSE\x02"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		p, err := readHello(r)
		read := len(b) - r.Len()
		if most := prefixLen + 2*(1+idLenMax); read > most {
			t.Errorf("read %d bytes, at most %d", read, most)
		}
		if err != nil {
			return
		}
		if again := encodeHello(p); !bytes.Equal(again, b[:read]) {
			t.Errorf("%q was read as %+v, which is %q", b[:read], p, again)
		}
	})
}

// FuzzAnswer is FuzzHello for the other direction.
func FuzzAnswer(f *testing.F) {
	self := Peer{Kind: Raft, ClusterID: clusterX, RaftID: "n2.22222222"}
	f.Add(encodeAnswer(self, CodeWelcome, ""))
	f.Add(encodeAnswer(self, CodeBusy, "full"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		p, err := readAnswer(r, Raft)
		if most := 6 + 2*(1+idLenMax) + 2 + reasonLenMax; len(b)-r.Len() > most {
			t.Errorf("read %d bytes, at most %d", len(b)-r.Len(), most)
		}
		if err == nil && (p.RaftID == "" || printable(p.RaftID) != p.RaftID) {
			t.Errorf("%q was read as %+v", b, p)
		}
		if errors.Is(err, io.EOF) && len(b) > 6 {
			t.Errorf("%q ends in the middle and is a clean end", b)
		}
	})
}
