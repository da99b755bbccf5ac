package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
)

// TestCloseInAStorm: whatever goes on, Close ends it within its time, and everybody
// is answered. What is left running the package's leak check finds.
func TestCloseInAStorm(t *testing.T) {
	for name, harm := range map[string]func(w *world){
		"serving":  func(*world) {},
		"hanging":  func(w *world) { w.Hang() },
		"frozen":   func(w *world) { w.Freeze() },
		"unknown":  func(w *world) { w.Unknown() },
		"electing": func(w *world) { w.NoLeader() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				c := w.client(func(c *client.Config) { c.CloseWithin = time.Second })
				limiters := make([]*client.Limiter, 20)
				for i := range limiters {
					l, err := c.Limiter(client.LimiterConfig{Limit: "open", Key: fmt.Sprint(i % 10)})
					if err != nil {
						t.Fatal(err)
					}
					limiters[i] = l
				}
				var callers sync.WaitGroup
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for i := range 20 {
					random := rand.New(rand.NewPCG(uint64(i), 0))
					callers.Go(func() { storm(ctx, c, limiters[i%len(limiters)], random) })
				}
				pass(300 * time.Millisecond)
				harm(w)
				pass(400 * time.Millisecond)
				began := time.Now()
				_ = limiters[0].Close()
				_ = c.Close()
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("closed after %s", took)
				}
				cancel()
				callers.Wait()
				if took := time.Since(began); took > 4*time.Second {
					t.Errorf("the last caller was answered %s after Close", took)
				}
				w.Serve()
			})
		})
	}
}

// storm asks in every way, and gives up at random, until the client is closed.
func storm(ctx context.Context, c *client.Client, l *client.Limiter, random *rand.Rand) {
	for {
		call, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(200))*time.Millisecond)
		if random.IntN(4) == 0 {
			time.AfterFunc(time.Duration(random.IntN(10))*time.Millisecond, cancel)
		}
		n := 1 + random.IntN(40)
		var err error
		switch random.IntN(7) {
		case 0:
			var d *client.Decision
			d, err = c.Acquire(call, client.Request{Track: true, Charges: []client.Charge{charge("open", int64(n))}})
			if err == nil && d.Granted {
				_, err = c.Settle(call, d.Lease, client.Usage{Dimension: "requests", Used: int64(n / 2)})
			}
		case 1:
			l.AllowN(n)
		case 2:
			err = l.WaitN(call, n)
		case 3:
			if permit, ok := l.Take(n); ok {
				permit.Settle(random.IntN(2 * n))
			}
		case 4:
			if r := l.ReserveN(n); r.OK() {
				r.Cancel()
			}
		case 5:
			_, err = c.Peek(call, "", charge("open", 1))
		case 6:
			_ = c.Status()
		}
		cancel()
		if errors.Is(err, client.ErrClosed) {
			return
		}
		pass(time.Duration(random.IntN(6)) * time.Millisecond)
		if ctx.Err() != nil {
			return
		}
	}
}
