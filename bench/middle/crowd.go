package middle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
)

// patience is how long one node may take to answer what does not wait.
const patience = 2 * time.Second

// crowd speaks to every node, over connections that never failed before.
type crowd struct{ conns []*grpc.ClientConn }

func gather(nodes *bench.Nodes) (*crowd, error) {
	c := &crowd{}
	for i := range nodes.Len() {
		conn, err := bench.Dial(nodes.GRPC(i))
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		c.conns = append(c.conns, conn)
	}
	return c, nil
}

func (c *crowd) close() error {
	var errs []error
	for _, conn := range c.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

func (c *crowd) admission(i int) quorleasev1.AdmissionClient {
	return quorleasev1.NewAdmissionClient(c.conns[i%len(c.conns)])
}

func (c *crowd) limits(i int) quorleasev1.LimitsClient {
	return quorleasev1.NewLimitsClient(c.conns[i%len(c.conns)])
}

// until asks the nodes in turn, from one on, until one answers. An answer is also an
// error that says that nothing happened, and that asking again would not help.
func until[A any](
	ctx context.Context, c *crowd, first int, each time.Duration,
	ask func(context.Context, quorleasev1.AdmissionClient) (A, error),
) (A, error) {
	for i := first; ; i++ {
		attempt, cancel := context.WithTimeout(ctx, each)
		answer, err := ask(attempt, c.admission(i))
		cancel()
		if err == nil || !bench.MayHaveHappened(err) && status.Code(err) != codes.ResourceExhausted {
			return answer, err
		}
		if !pause(ctx, 10*time.Millisecond) {
			return answer, fmt.Errorf("nobody has answered: %w", err)
		}
	}
}

// pause waits for d, and says whether ctx lasted so long.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// mostFaults of a round are kept: the first ones say what went wrong.
const mostFaults = 10

// faults collects what broke in one round. It may be used by several goroutines.
type faults struct {
	mu   sync.Mutex
	errs []error // guarded by mu
}

func (f *faults) add(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.errs) < mostFaults {
		f.errs = append(f.errs, fmt.Errorf(format, args...))
	}
}

func (f *faults) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.errs...)
}
