package netaddr

import (
	"net"
	"strings"
	"testing"
)

func TestG11CheckLoopback(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ addr, want string }{
		{"127.0.0.1:7101", ""},
		{"127.9.8.7:7101", ""},
		{"[::1]:7101", ""},
		{"[::ffff:127.0.0.1]:7101", ""},
		{"localhost:7101", ""},
		{"0.0.0.0:7101", "--grpc 0.0.0.0:7101 listens beyond loopback, and without TLS: "},
		{"[::]:7101", "listens beyond loopback"},
		{":7101", "listens beyond loopback (no host is every interface)"},
		{"192.0.2.1:7101", "with --insecure"},
		{"[2001:db8::1]:7101", "listens beyond loopback"},
		{"no-such-host.invalid:7101", "the host does not resolve"},
		{"localhost", "is not host:port"},
	} {
		t.Run("G11_"+row.addr, func(t *testing.T) {
			t.Parallel()
			err := CheckLoopback(t.Context(), "--grpc", row.addr)
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("CheckLoopback(%q) = %v, want %q in it", row.addr, err, row.want)
			}
		})
	}
}

func TestUnspecified(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{
		"0.0.0.0:1": true, "[::]:1": true, ":1": true, "127.0.0.1:1": false, "host:1": false, "nonsense": false,
	} {
		if got := Unspecified(addr); got != want {
			t.Errorf("Unspecified(%q) = %t, want %t", addr, got, want)
		}
	}
}

func TestListenNamesAPortThatIsTaken(t *testing.T) {
	t.Parallel()
	first, err := Listen(t.Context(), "--grpc", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	addr := first.Addr().String()
	second, err := Listen(t.Context(), "--http", addr)
	if err == nil {
		second.Close()
	}
	want := "--http " + addr + " is taken: another program listens there"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
	_, port, _ := net.SplitHostPort(addr)
	if l, err := Listen(t.Context(), "--grpc", "192.0.2.1:"+port); err == nil {
		l.Close()
		t.Error("listened on an address that is not this machine's")
	} else if !strings.HasPrefix(err.Error(), "--grpc: listen on 192.0.2.1:") {
		t.Errorf("got %v, want the flag and the address", err)
	}
}
