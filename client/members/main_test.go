package members_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/clienttest"
	"github.com/quorlease/quorlease/client/members"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cluster, of three for the most part, and Members that know all or some of it.
type world struct {
	*clienttest.Cluster
	members *members.Members

	mu     sync.Mutex
	states []members.State
}

// bubble begins with the first seeds nodes known, after before.
func bubble(t *testing.T, seeds int, before func(*clienttest.Cluster), f func(t *testing.T, w *world)) {
	t.Helper()
	bubbleOf(t, 3, seeds, before, f)
}

// bubbleOf is bubble with so many nodes.
func bubbleOf(t *testing.T, count, seeds int, before func(*clienttest.Cluster), f func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := clienttest.New(count)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Limits(&quorleasev1.Limit{Name: "free", Unlimited: true}); err != nil {
			t.Fatal(err)
		}
		if before != nil {
			before(c)
		}
		w := &world{Cluster: c}
		config := members.DefaultConfig()
		config.Endpoints, config.Dial = c.Endpoints()[:seeds], c.Dial
		config.Client, config.SessionID = "c", "00112233445566778899aabbccddeeff"
		config.Changed = func(s members.State) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.states = append(w.states, s)
		}
		if w.members, err = members.New(config); err != nil {
			t.Fatal(err)
		}
		defer w.members.Close()
		f(t, w)
	})
}

// reaches are the different values that Reach had, in their order.
func (w *world) reaches() (list []members.Reach) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.states {
		if len(list) == 0 || list[len(list)-1] != s.Reach {
			list = append(list, s.Reach)
		}
	}
	return list
}

// settle waits until every node is reached.
func (w *world) settle(t *testing.T) {
	t.Helper()
	w.await(t, time.Minute, func(s members.State) bool { return s.Reached == 3 && s.Reach == members.Led })
}

// await waits until the state is as it should be, in steps of 10 ms, and returns
// how long that took.
func (w *world) await(t *testing.T, most time.Duration, is func(members.State) bool) time.Duration {
	t.Helper()
	started := time.Now()
	for !is(w.members.State()) {
		if time.Since(started) >= most {
			t.Fatalf("after %v: %+v", most, w.members.State())
		}
		pass(10 * time.Millisecond)
	}
	synctest.Wait()
	return time.Since(started)
}

// pass lets time pass.
func pass(d time.Duration) { <-time.After(d) }

// ask asks once, as a client would, and says where and how it ended.
func (w *world) ask(t *testing.T, patience time.Duration) (members.Endpoint, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, e, err := w.members.Session(ctx)
	if err != nil {
		return e, err
	}
	_, err = s.Do(ctx, question())
	w.members.Failed(e, err)
	return e, err
}

// question is what ask asks.
func question() *quorleasev1.RequestItem {
	return &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Acquire{
		Acquire: &quorleasev1.AcquireRequest{
			Charges: []*quorleasev1.Charge{{Limit: "free", Dimension: "requests", Amount: 1}},
		},
	}}
}
