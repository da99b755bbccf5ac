package cluster_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
)

// TestDecisionsAreAudited: each node writes what was decided for its own callers,
// by whomever, with the reason.
func TestDecisionsAreAudited(t *testing.T) {
	t.Parallel()
	t.Run("S1-17", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		inBubble(t, func(c *cluster.Config) { c.Audit = filepath.Join(dir, c.ID) }, func(b bubble) {
			c := b.Cluster
			budgeted(b, 2)
			for i, name := range []string{"a", "b", "c", "c"} {
				op := by(clustertest.Acquire("gpt", 1), "chat", "")
				attempt := uint32(i % 3)
				if i == 3 {
					attempt = 9
				}
				if _, err := c.Node(name).Acquire(b.Context(), op, attempt); err != nil {
					b.Fatal(err)
				}
			}
			c.Close()
		})
		for name, want := range map[string][]string{
			"a": {"granted consensus "}, "b": {"granted consensus "},
			"c": {"denied consensus rate", "denied node attempts"},
		} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
			// What configured the limits is in it too.
			lines = slices.DeleteFunc(lines, func(line []byte) bool { return bytes.Contains(line, []byte(`"change"`)) })
			if len(lines) != len(want) {
				t.Fatalf("%s has %d lines, want %d: %s", name, len(lines), len(want), text)
			}
			for i, line := range lines {
				var d struct {
					Node, Client, Decision, Source string
					Denials                        []struct{ Reason string }
				}
				if err := json.Unmarshal(line, &d); err != nil {
					t.Fatal(err)
				}
				reason := ""
				if len(d.Denials) > 0 {
					reason = d.Denials[0].Reason
				}
				if got := d.Decision + " " + d.Source + " " + reason; got != want[i] || d.Node != name || d.Client != "chat" {
					t.Errorf("%s line %d: %s, want %q", name, i, line, want[i])
				}
			}
		}
	})
}

// TestMembersAreAudited: each node that stays writes who was taken out, when its leader did
// it.
func TestMembersAreAudited(t *testing.T) {
	t.Parallel()
	t.Run("changes", func(t *testing.T) {
		t.Parallel()
		dir, gone := t.TempDir(), ""
		inBubble(t, func(c *cluster.Config) { c.Audit = filepath.Join(dir, c.ID) }, func(b bubble) {
			gone = b.Followers()[0]
			b.Remove(gone)
			b.Close()
		})
		want := `"author":"operator","member":"` + gone + `"}`
		for _, name := range []string{"a", "b", "c"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			// The clock of the bubble begins with this year.
			found := bytes.Contains(text, []byte(`{"time":"2000-01-01T`)) && bytes.Contains(text, []byte(want)) &&
				bytes.Contains(text, []byte(`"change":"removed"`))
			if name != gone && !found {
				t.Errorf("%s does not say that %s was removed: %s", name, gone, text)
			}
		}
	})
}
