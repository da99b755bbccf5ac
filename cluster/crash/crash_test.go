package crash

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// errRefused is what connecting to a port gives at which nobody listens.
var errRefused = fmt.Errorf("dial: %w", &net.OpError{
	Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
})

// world is what a watch sees of Raft.
type world struct {
	mu     sync.Mutex
	leader string
	heard  time.Time
	dial   error
	// lasts are the ends of the logs of b, this node, and of c and d.
	lasts [3]uint64
	hasty error
	// short are the times, since the world began, at which timeouts became short, and long
	// those at which they became what they were.
	began       time.Time
	short, long []time.Duration
	now         raft.ReloadableConfig
}

var usual = raft.ReloadableConfig{
	TrailingLogs: 7, HeartbeatTimeout: 500 * time.Millisecond, ElectionTimeout: 600 * time.Millisecond,
}

func (w *world) do(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) LeaderWithID() (address raft.ServerAddress, id raft.ServerID) {
	w.do(func() {
		if w.leader != "" {
			address, id = raft.ServerAddress(w.leader+":1"), raft.ServerID(w.leader)
		}
	})
	return address, id
}

func (w *world) LastContact() (at time.Time) {
	w.do(func() { at = w.heard })
	return at
}

func (w *world) LastIndex() (last uint64) {
	w.do(func() { last = w.lasts[0] })
	return last
}

func (w *world) ReloadableConfig() (now raft.ReloadableConfig) {
	w.do(func() { now = w.now })
	return now
}

func (w *world) ReloadConfig(c raft.ReloadableConfig) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	short := usual
	short.HeartbeatTimeout, short.ElectionTimeout = 250*time.Millisecond, 250*time.Millisecond
	switch at := time.Since(w.began); c {
	case short:
		w.short = append(w.short, at)
	case usual:
		w.long = append(w.long, at)
	default:
		return fmt.Errorf("got %+v", c)
	}
	if w.hasty == nil {
		w.now = c
	}
	return w.hasty
}

func (w *world) watch() *Watch {
	return New(Config{
		Raft: func() Raft { return w }, Self: func() string { return "b" },
		Voters: func() []Voter { return []Voter{{"a", "a:1"}, {"b", "b:1"}, {"c", "c:1"}, {"d", "d:1"}} },
		Dial: func(context.Context, string) (err error) {
			w.do(func() { err = w.dial })
			return err
		},
		Last: func(_ context.Context, address string) (last uint64, err error) {
			err = errRefused
			w.do(func() {
				if i := strings.Index("bcd", address[:1]); i >= 0 {
					last, err = w.lasts[i], nil
				}
			})
			return last, err
		},
		Silence: 250 * time.Millisecond,
	})
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// play runs a watch in virtual time, in which something happens, and then all is over.
func play(t *testing.T, happens func(*world, *Watch)) (seen *world) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		seen = &world{leader: "a", began: time.Now(), heard: time.Now(), dial: errRefused, now: usual}
		w := seen.watch()
		ctx, cancel := context.WithCancel(t.Context())
		var joined sync.WaitGroup
		joined.Go(func() { w.Run(ctx) })
		happens(seen, w)
		cancel()
		joined.Wait()
	})
	return seen
}

func TestTheElectionIsCalledEarly(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		lasts [3]uint64
		want  time.Duration
	}{
		"the first of equals": {[3]uint64{5, 5, 5}, 250 * time.Millisecond},
		"the shortest log":    {[3]uint64{4, 5, 6}, 250 * time.Millisecond},
		"one is before":       {[3]uint64{5, 4, 5}, 290 * time.Millisecond},
		"the longest log":     {[3]uint64{6, 4, 5}, 330 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := play(t, func(w *world, watch *Watch) {
				w.do(func() { w.lasts = row.lasts })
				pass(30 * time.Millisecond)
				watch.Dialled("a:1", errRefused)
				pass(500 * time.Millisecond)
				w.do(func() { w.leader = "c" })
				pass(lookEvery)
				// What else was refused meanwhile is old.
				watch.Dialled("a:1", errRefused)
				pass(time.Hour)
			})
			if len(w.short) != 1 || w.short[0] != row.want {
				t.Errorf("timeouts became short at %v, want once at %v", w.short, row.want)
			}
			if len(w.long) != 1 || w.long[0] > 530*time.Millisecond+lookEvery {
				t.Errorf("timeouts became what they were at %v, want once when c led", w.long)
			}
		})
	}
}

// Nothing is called early where the leader may be there.
func TestTheLeaderMayBeThere(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(*world, *Watch){
		"another address": func(_ *world, watch *Watch) { watch.Dialled("c:1", errRefused) },
		"no refusal":      func(_ *world, watch *Watch) { watch.Dialled("a:1", context.DeadlineExceeded) },
		"connected":       func(_ *world, watch *Watch) { watch.Dialled("a:1", nil) },
		"is heard": func(w *world, watch *Watch) {
			watch.Dialled("a:1", errRefused)
			pass(100 * time.Millisecond)
			w.do(func() { w.heard = time.Now() })
		},
		"is heard in the last moment": func(w *world, watch *Watch) {
			w.do(func() { w.lasts = [3]uint64{6, 4, 5} })
			watch.Dialled("a:1", errRefused)
			pass(329 * time.Millisecond)
			w.do(func() { w.heard = time.Now() })
		},
		"has come back": func(w *world, watch *Watch) {
			watch.Dialled("a:1", errRefused)
			w.do(func() { w.dial = nil })
		},
		"answers no more, as where packets are lost": func(w *world, watch *Watch) {
			watch.Dialled("a:1", errRefused)
			w.do(func() { w.dial = context.DeadlineExceeded })
		},
		"another leads": func(w *world, watch *Watch) {
			watch.Dialled("a:1", errRefused)
			w.do(func() { w.leader = "b" })
		},
		"none is known": func(w *world, watch *Watch) {
			w.do(func() { w.leader = "" })
			watch.Dialled(":1", errRefused)
			watch.Dialled("", errRefused)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := play(t, func(w *world, watch *Watch) {
				happens(w, watch)
				pass(time.Hour)
			})
			if len(w.short)+len(w.long) != 0 {
				t.Errorf("timeouts became short at %v", w.short)
			}
		})
	}
}

// Timeouts do not stay short: not without a successor, not at the end.
func TestTimeoutsComeBack(t *testing.T) {
	t.Parallel()
	t.Run("nobody succeeds", func(t *testing.T) {
		t.Parallel()
		w := play(t, func(_ *world, watch *Watch) {
			watch.Dialled("a:1", errRefused)
			pass(time.Hour)
		})
		if len(w.short) != 1 || len(w.long) != 1 || w.long[0]-w.short[0] != hasteMax {
			t.Errorf("timeouts short at %v, long at %v, want %v apart", w.short, w.long, hasteMax)
		}
	})
	t.Run("the node ends", func(t *testing.T) {
		t.Parallel()
		w := play(t, func(_ *world, watch *Watch) {
			watch.Dialled("a:1", errRefused)
			pass(time.Second)
		})
		if len(w.short) != 1 || len(w.long) != 1 {
			t.Errorf("timeouts short at %v, long at %v, want both once", w.short, w.long)
		}
	})
	t.Run("raft refuses", func(t *testing.T) {
		t.Parallel()
		w := play(t, func(w *world, watch *Watch) {
			w.do(func() { w.hasty = errors.New("no") })
			watch.Dialled("a:1", errRefused)
			pass(time.Hour)
		})
		if len(w.short) != 1 || len(w.long) != 0 {
			t.Errorf("timeouts short at %v, long at %v, want one try", w.short, w.long)
		}
	})
}

// However much is refused, nobody who dials waits.
func TestNobodyWaitsToTell(t *testing.T) {
	t.Parallel()
	w := New(Config{})
	for range 1000 {
		w.Dialled("a:1", errRefused)
	}
}
