package redis

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/bench/compare/peer"
)

func TestMain(m *testing.M) {
	// Processes are started by one goroutine that stays for good.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/quorlease/quorlease/bench.doPinned"))
}

// granted is how many of some questions were.
func granted(t *testing.T, s *Server, way peer.Way, bucket peer.Bucket, questions int) (n int) {
	t.Helper()
	door, err := s.Open(t.Context(), way, bucket)
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	asker, err := door.Asker(0)
	if err != nil {
		t.Fatal(err)
	}
	for range questions {
		said, err := asker.Ask(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if said.Granted {
			n++
		}
	}
	return n
}

// TestRealServer: the script is a token bucket, by both ways, and what a killed
// server knows afterwards is what it is said to know. Without Redis all that can be
// seen is that it does not start.
func TestRealServer(t *testing.T) {
	t.Parallel()
	program := peer.Find("", Program)
	c := func() peer.Config {
		return peer.Config{
			Programs: map[string]string{Program.Name: program}, Dir: t.TempDir(), Callers: 4, Timeout: 5 * time.Second,
		}
	}
	if program == "" {
		if _, err := Start(t.Context(), c()); err == nil {
			t.Error("no redis-server: no error")
		}
		return
	}
	for _, row := range []struct {
		name    string
		start   func() (*Server, error)
		forgets bool
	}{
		{"memory", func() (*Server, error) { return Start(t.Context(), c()) }, true},
		{"always", func() (*Server, error) { return StartDurable(t.Context(), c()) }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s, err := row.start()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			small := peer.Bucket{Name: "trial", Burst: 100, PerSecond: 1, Keys: 2}
			began := time.Now()
			first := granted(t, s, Single, small, 6)
			second := granted(t, s, Pipelined, small, 200)
			most := 100 + int(time.Since(began).Seconds())
			if first != 6 || first+second < 100 || first+second > most {
				t.Errorf("%d and %d of a burst of 100, at most %d", first, second, most)
			}
			if used, err := s.CPU(); err != nil || used > 10*time.Second {
				t.Errorf("processor time %v, %v", used, err)
			}
			if err := s.Crash(t.Context()); err != nil {
				t.Fatal(err)
			}
			after := granted(t, s, Pipelined, small, 200)
			most = 100 + int(time.Since(began).Seconds())
			if forgot := first+second+after > most; forgot != row.forgets {
				t.Errorf("killed after %d, then %d more, at most %d: forgot %v, want %v",
					first+second, after, most, forgot, row.forgets)
			}
			if _, err := s.Open(t.Context(), "fax", small); err == nil {
				t.Error("no such way: no error")
			}
		})
	}
}
