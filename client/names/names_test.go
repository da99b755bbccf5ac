package names

import (
	"strings"
	"testing"

	"github.com/quorlease/quorlease/api/limitsfile"
)

// TestNodesRefuseTheSame compares with the checks of the nodes.
func TestNodesRefuseTheSame(t *testing.T) {
	values := []string{
		"", "a", "0", "_", "-", ".", "A", "ä", "a-b", "a.b", "a_b", "0a", "a0", "a b", "a/b",
		"a\n", "a\x00", "\xff", "\u0085",
		strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 256), strings.Repeat("a", 257),
		strings.Repeat("a", 512), strings.Repeat("a", 513), strings.Repeat("ü", 256), strings.Repeat("ü", 257),
	}
	for _, c := range []struct {
		name      string
		got, want func(string) string
	}{
		{"limit", LimitProblem, limitsfile.NameProblem},
		{"dimension", DimensionProblem, limitsfile.DimensionProblem},
		{"class", DimensionProblem, limitsfile.ClassProblem},
		{"key", KeyProblem, limitsfile.KeyProblem},
		{"client", ClientProblem, limitsfile.ClientProblem},
	} {
		for _, value := range values {
			if got, want := c.got(value), c.want(value); (got == "") != (want == "") {
				t.Errorf("%s %.80q: %q, a node says %q", c.name, value, got, want)
			}
		}
	}
}

func TestLeaseID(t *testing.T) {
	for value, want := range map[string]bool{
		strings.Repeat("0a", 16): true, strings.Repeat("0A", 16): false, strings.Repeat("0", 31): false, "": false,
	} {
		if IsLeaseID(value) != want {
			t.Errorf("%q: %v, want %v", value, !want, want)
		}
	}
}
