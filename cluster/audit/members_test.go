package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/cluster/roster"
)

// TestMembers: who came, went and votes is in the file.
func TestMembers(t *testing.T) {
	t.Parallel()
	t.Run("changes", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		l, err := Open(config(path))
		if err != nil {
			t.Fatal(err)
		}
		member := func(name, address string, voter bool) roster.Member {
			return roster.Member{RaftID: name + ".00000001", Name: name, Address: address, Voter: voter}
		}
		a, b := member("a", "a:1", true), member("b", "b:1", true)
		learner, voter := member("c", "c:1", false), member("c", "c:1", true)
		moved, again := member("c", "c:2", true), roster.Member{RaftID: "b.00000002", Name: "b", Address: "b:1"}
		at := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
		steps := [][]roster.Member{
			nil, {a, b}, {a, b, learner}, {a, b, voter}, {a, b, moved}, {a, moved}, {a, moved, again}, {a, learner},
		}
		for i, members := range steps[1:] {
			l.Members(uint64(i), at, steps[i], members)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		line := func(change, index, rest string) string {
			return `{"time":"2026-03-01T02:00:00Z","node":"n1","change":"` + change + `","index":` + index +
				`,"author":"operator",` + rest + "}\n"
		}
		want := line("added", "1", `"member":"c","value":"c:1"`) + line("promoted", "2", `"member":"c"`) +
			line("moved", "3", `"member":"c","value":"c:2"`) + line("removed", "4", `"member":"b"`) +
			line("added", "5", `"member":"b","value":"b:1"`) + line("moved", "6", `"member":"c","value":"c:1"`) +
			line("removed", "6", `"member":"b"`)
		if got := string(file); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
		if strings.Contains(string(file), "00000001") {
			t.Error("incarnations mean nothing to people")
		}
	})
	var none *Log
	none.Members(1, time.Now(), nil, nil)
}
