package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/load"
)

// Bucket is what each key has: Burst tokens, and PerSecond more a second. A system
// that counts in fixed windows gets Burst tokens a day instead.
type Bucket struct {
	Name             string
	Burst, PerSecond int64
	// Keys is how many there are.
	Keys int
}

// Key is the name of key i, another one in each bucket.
func (b *Bucket) Key(i int) string { return b.Name + "-" + strconv.Itoa(i) }

// AllKeys are all of them.
func (b *Bucket) AllKeys() []string {
	keys := make([]string, b.Keys)
	for i := range keys {
		keys[i] = b.Key(i)
	}
	return keys
}

// Way names one of a system's ways to be asked.
type Way string

// Config is what a system is started with.
type Config struct {
	// Programs are paths by the names that a system asks for.
	Programs map[string]string
	// Dir is the system's own and empty. The caller removes it.
	Dir string
	// Buckets are all that will be asked for.
	Buckets []Bucket
	// Callers is how many ask at the same time at most, Timeout how long a call may
	// take.
	Callers int
	Timeout time.Duration
	// Lasting is how long everything takes at most.
	Lasting time.Duration
	// Log receives what its processes print. Nil: discarded.
	Log io.Writer
}

// System answers callers, with every process that it takes, on loopback.
type System interface {
	// Open connects callers who ask for one token of the bucket each time.
	Open(ctx context.Context, way Way, bucket Bucket) (Door, error)
	// CPU is the processor time of all of its processes since they began.
	CPU() (time.Duration, error)
	// Close ends them. It is called once, and may be after a failed Crash.
	Close() error
}

// Keeper is a system that keeps buckets, and can be killed.
type Keeper interface {
	System
	// Crash kills all of them at once, with SIGKILL, starts them again on what they
	// left behind, and returns when they answer. Doors opened before it need not
	// work any more.
	Crash(ctx context.Context) error
}

// Door is a way in that is open.
type Door interface {
	Asker(index int) (load.Asker, error)
	Close() error
}

// readyWait is how long a process may take until it answers.
const readyWait = 30 * time.Second

// errEnded: it will not answer any more.
var errEnded = errors.New("it ended before it answered")

// Ready tries until one try succeeds, one of the processes ends, or half a minute
// has passed.
func Ready(ctx context.Context, what string, try func(ctx context.Context) error, processes ...*bench.Process) error {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for {
		one, stop := context.WithTimeout(ctx, time.Second)
		last := try(one)
		stop()
		if last == nil {
			return nil
		}
		for _, p := range processes {
			select {
			case <-p.Ended():
				return fmt.Errorf("%s: %w", what, errEnded)
			default:
			}
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %s: %w: %w", what, err, last)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// CPU is what the processes used together.
func CPU(processes ...*bench.Process) (time.Duration, error) {
	var sum time.Duration
	for _, p := range processes {
		used, err := p.CPU()
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// Kill ends them all, each at once.
func Kill(processes ...*bench.Process) {
	for _, p := range processes {
		if p != nil {
			p.Kill()
		}
	}
}
