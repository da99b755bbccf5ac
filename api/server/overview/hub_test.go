package overview_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/overview"
	"github.com/quorlease/quorlease/api/server/servertest"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDraining, errCrowded = errors.New("draining"), errors.New("crowded")

// site is a node with its hub. drain says that the node closes.
type site struct {
	*testing.T
	node  *servertest.Node
	hub   *overview.Hub
	drain context.CancelFunc
}

// hubOf is a hub over a node, which is closed at the end.
func hubOf(t *testing.T, node overview.Node) (*overview.Hub, context.CancelFunc) {
	t.Helper()
	draining, drain := context.WithCancel(context.Background())
	hub := overview.New(overview.Config{
		Node: node, Draining: errDraining, Crowded: errCrowded,
		UntilDrained: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			stop := context.AfterFunc(draining, cancel)
			return ctx, func() {
				stop()
				cancel()
			}
		},
	})
	t.Cleanup(func() {
		drain()
		hub.Close()
	})
	return hub, drain
}

// inBubble runs a test with a node in virtual time.
func inBubble(t *testing.T, test func(site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		node := servertest.New()
		hub, drain := hubOf(t, node)
		test(site{t, node, hub, drain})
	})
}

// watch follows until the test ends and hands on what it is sent.
func (s site) watch(send func(*quorleasev1.OverviewWatchResponse) error) (ended <-chan error) {
	end := make(chan error, 1)
	ctx, cancel := context.WithCancel(s.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		end <- s.hub.Follow(ctx, &quorleasev1.OverviewWatchRequest{}, func(shown *overview.Shown) error {
			return send(shown.Response)
		})
	})
	s.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	return end
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

func (s site) happen() {
	s.node.Ring.Publish(events.Event{Kind: events.LeaderChanged, Severity: events.Info})
}

// TestRhythm: a picture at once, one each second, and at most four a second however
// much happens.
func TestRhythm(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s site) {
		t := s.T
		var mu sync.Mutex
		var at []time.Time
		s.watch(func(*quorleasev1.OverviewWatchResponse) error {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Now())
			return nil
		})
		seen := func() int {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return len(at)
		}
		if seen() != 1 {
			t.Fatalf("%d pictures at once, want one", seen())
		}
		pass(3100 * time.Millisecond)
		if seen() != 4 {
			t.Errorf("%d pictures in three seconds, want four", seen())
		}
		s.happen()
		pass(time.Millisecond)
		if seen() != 4 {
			t.Errorf("%d pictures, want that the last is as old as a quarter of a second first", seen())
		}
		pass(150 * time.Millisecond)
		if seen() != 5 {
			t.Errorf("%d pictures a quarter of a second after the last, want the one of what happened", seen())
		}
		for range 1000 {
			s.happen()
			pass(10 * time.Millisecond)
		}
		if n := seen() - 5; n < 39 || n > 41 {
			t.Errorf("%d pictures in ten seconds in which much happened, want four a second", n)
		}
	})
}

// TestSlowWatcher: one that does not read holds nobody up, and sees the latest when it
// does.
func TestSlowWatcher(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s site) {
		t := s.T
		free, count := make(chan struct{}), 0
		var got []time.Time
		s.watch(func(p *quorleasev1.OverviewWatchResponse) error {
			got = append(got, p.GetTime().AsTime())
			<-free
			return nil
		})
		s.watch(func(*quorleasev1.OverviewWatchResponse) error {
			count++
			return nil
		})
		pass(10*time.Second + time.Millisecond)
		synctest.Wait()
		if count != 11 {
			t.Errorf("%d pictures beside one that does not read, want eleven", count)
		}
		close(free)
		synctest.Wait()
		if len(got) != 2 || time.Since(got[1]) > time.Second {
			t.Errorf("%v, want the first and the latest", got)
		}
	})
}

// TestEnds: a watch ends with its reader, its caller and the node; one too many does not
// begin.
func TestEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s site) {
		t := s.T
		broken := errors.New("broken")
		if err := <-s.watch(func(*quorleasev1.OverviewWatchResponse) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("%v, want what the reader says", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := s.hub.Follow(ctx, &quorleasev1.OverviewWatchRequest{}, func(*overview.Shown) error {
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want canceled", err)
		}
		if _, err := s.hub.Now(t.Context(), &quorleasev1.OverviewWatchRequest{Top: 101}); err == nil {
			t.Error("101 clients are not too many")
		}
		var ends []<-chan error
		for range overview.WatchersMax {
			ends = append(ends, s.watch(func(*quorleasev1.OverviewWatchResponse) error { return nil }))
		}
		synctest.Wait()
		if err := <-s.watch(func(*quorleasev1.OverviewWatchResponse) error { return nil }); !errors.Is(err, errCrowded) {
			t.Errorf("%v, want that there are too many", err)
		}
		s.drain()
		for _, end := range ends {
			if err := <-end; !errors.Is(err, errDraining) {
				t.Errorf("%v, want that the node closes", err)
			}
		}
	})
}

// TestTheSameForEverybody: as many as ask for the same see the same picture.
func TestTheSameForEverybody(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s site) {
		t := s.T
		for i := range 30 {
			s.report(fmt.Sprintf("client-%02d", i), &logv1.ClientSlice{Total: 100, Retries: int64(i)})
		}
		now := func(top uint32) *overview.Shown {
			shown, err := s.hub.Now(t.Context(), &quorleasev1.OverviewWatchRequest{Top: top})
			if err != nil {
				t.Fatal(err)
			}
			return shown
		}
		five, all := now(5), now(100)
		if now(5) != five || now(30) != all {
			t.Error("two pictures of one moment")
		}
		if n := len(five.Response.GetClients()); n != 5 || five.Response.GetClients()[0].GetClient() != "client-29" {
			t.Errorf("%d clients, want the five worst", n)
		}
		if n := len(all.Response.GetClients()); n != 30 || all.Response.GetClientsTotal() != 30 {
			t.Errorf("%d clients, want all", n)
		}
		if n := len(now(0).Response.GetClients()); n != 20 {
			t.Errorf("%d clients, want twenty", n)
		}
	})
}

// report counts what a node says of a client in the slice of now.
func (s site) report(client string, slice *logv1.ClientSlice) {
	slice.Client = client
	s.node.Apply(&logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: &logv1.ReportRetries{
		Node: "n2", Boot: 1, Slices: []*logv1.ClientSlice{slice},
	}}})
}

// TestLimits: levels and rates of the key under most pressure, the dimension that
// binds, and what waits.
func TestLimits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s site) {
		t := s.T
		dimension := func(name string, amount int64) *logv1.Dimension {
			return &logv1.Dimension{
				Name: name, Amount: amount, Interval: int64(time.Minute), Burst: amount, MaxDebt: amount, MaxOpen: amount,
			}
		}
		s.node.Apply(&logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{
			Limits: []*logv1.Limit{
				{
					Name: "gpt", Keyed: true, Target: 10_000, Lease: int64(time.Minute), MaxKeys: 1000,
					Dimensions: []*logv1.Dimension{dimension("requests", 100), dimension("tokens", 1000)},
				},
				{Name: "off", Unlimited: true, Target: 10_000, MaxKeys: 1, Lease: int64(time.Second)},
			},
		}}})
		acquire := func(key string, tokens int64) {
			_, err := s.node.Do(t.Context(), &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: &logv1.Acquire{
				Client: "c", Charges: []*logv1.Charge{
					{Limit: "gpt", Key: key, Dimension: "requests", Amount: 1},
					{Limit: "gpt", Key: key, Dimension: "tokens", Amount: tokens},
				},
			}}}, 0)
			if err != nil {
				t.Fatal(err)
			}
		}
		shown, err := s.hub.Now(t.Context(), &quorleasev1.OverviewWatchRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if l := shown.Response.GetLimits()[0]; l.GetMode() != quorleasev1.Mode_ENFORCE || l.GetKey() != "" ||
			len(l.GetDimensions()) != 2 || l.GetDimensions()[1].GetLevel() != 1000 || l.GetKeys() != 0 {
			t.Errorf("%v, want what a key would have that nobody has asked for", l)
		}
		pass(300 * time.Millisecond)
		for range 3 {
			acquire("busy", 300)
		}
		acquire("calm", 6)
		if shown, err = s.hub.Now(t.Context(), &quorleasev1.OverviewWatchRequest{}); err != nil {
			t.Fatal(err)
		}
		gpt, off := shown.Response.GetLimits()[0], shown.Response.GetLimits()[1]
		if gpt.GetKind() != "rate" || off.GetKind() != "unlimited" || shown.Response.GetLimitsTotal() != 2 {
			t.Errorf("%v and %v", gpt, off)
		}
		if gpt.GetKey() != "busy" || gpt.GetBinding() != "tokens" || gpt.GetKeys() != 2 || gpt.GetGrantedLastMinute() != 4 {
			t.Errorf("%v, want the busy key and its tokens", gpt)
		}
		if d := gpt.GetDimensions()[1]; d.GetLevel() != 100 || d.GetBurst() != 1000 || d.GetUsedPpm() != 900_000 ||
			d.GetGrantedMilliPerSecond() != 15_100 {
			t.Errorf("%v, want 100 of 1000 left, and 15.1 tokens a second", d)
		}
		// What waits says more than what was answered. It is a second old at most.
		s.node.SetQueues([]queue.ClassState{
			{Place: queue.Place{Limit: "gpt", Key: "calm"}, Class: "live", Waiting: 3, Oldest: time.Second, ETA: time.Minute},
			{Place: queue.Place{Limit: "gpt", Key: "calm"}, Class: "batch", Waiting: 4, Oldest: 5 * time.Second},
		})
		for range 2 {
			pass(1001 * time.Millisecond)
			if shown, err = s.hub.Now(t.Context(), &quorleasev1.OverviewWatchRequest{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		gpt = shown.Response.GetLimits()[0]
		if gpt.GetKey() != "calm" || gpt.GetWaiting() != 7 || gpt.GetOldest().AsDuration() != 5*time.Second ||
			gpt.GetEta().AsDuration() != time.Minute || len(gpt.GetQueues()) != 2 {
			t.Errorf("%v, want what waits", gpt)
		}
	})
}
