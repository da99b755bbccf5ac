package retries_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/tally"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const second = int64(time.Second)

func TestDecide(t *testing.T) {
	t.Parallel()
	t.Run("G12_one_node_is_the_rule", func(t *testing.T) {
		t.Parallel()
		f := newFleet(1, standard())
		for i := range 40 {
			if d := f.ask(f.nodes[0], "c", 0); d.Verdict != retries.Admit {
				t.Fatalf("first attempt %d: got %v, want admit", i, d)
			}
		}
		for i := range 11 {
			if d := f.ask(f.nodes[0], "c", 1); d.Verdict != retries.Admit {
				t.Fatalf("retry %d: got %v, want admit", i, d)
			}
		}
		// 51 requests, 11 of them retries, is more than 20 %: everything is refused,
		// with the budget's pause.
		for _, attempt := range []uint32{0, 1} {
			want := retries.Decision{Verdict: retries.Budget, RetryAfter: time.Minute}
			if d := f.ask(f.nodes[0], "c", attempt); d != want {
				t.Errorf("attempt %d: got %v, want %v", attempt, d, want)
			}
		}
		if d := f.ask(f.nodes[0], "other", 1); d.Verdict != retries.Admit {
			t.Errorf("another client: got %v, want admit", d)
		}
	})
	t.Run("attempts_above_the_maximum_are_refused_for_good", func(t *testing.T) {
		t.Parallel()
		f := newFleet(3, standard())
		if d := f.ask(f.nodes[0], "c", 4); d != (retries.Decision{Verdict: retries.Attempts}) {
			t.Errorf("attempt 4: got %v, want attempts without retry_after", d)
		}
		if clients, slots := f.nodes[0].Kept(); clients != 0 || slots != 0 {
			t.Errorf("kept %d clients and %d slots after a refusal, want none", clients, slots)
		}
	})
	t.Run("a_joiner_admits_no_retries", func(t *testing.T) {
		t.Parallel()
		n := retries.New(retries.Config{})
		d, _ := n.Decide(0, 0, retries.Request{Client: "c", Attempt: 1, Rule: standard()})
		if d.Verdict != retries.PartUsedUp {
			t.Errorf("a retry with 0 nodes: got %v, want part used up", d)
		}
		if d, _ = n.Decide(0, 0, retries.Request{Client: "c", Rule: standard()}); d.Verdict != retries.Admit {
			t.Errorf("a first attempt with 0 nodes: got %v, want admit", d)
		}
	})
}

func TestPart(t *testing.T) {
	t.Parallel()
	t.Run("T30_five_nodes_at_once_admit_one_headroom", func(t *testing.T) {
		t.Parallel()
		f := newFleet(5, standard())
		for _, n := range f.nodes {
			for range 100 {
				f.ask(n, "c", 1)
			}
		}
		// 51 fit; each of five nodes has 11 of them, rounded up.
		if f.retried != 55 {
			t.Errorf("admitted %d retries at five nodes that had not heard of one another, want 55", f.retried)
		}
	})
	t.Run("T49_the_last_retry_is_admitted", func(t *testing.T) {
		t.Parallel()
		rule := standard()
		rule.MinRequests = 0
		f := newFleet(5, rule)
		// With nothing recorded the headroom is one retry.
		if d := f.ask(f.nodes[2], "c", 1); d.Verdict != retries.Admit {
			t.Fatalf("the only retry: got %v, want admit", d)
		}
	})
	t.Run("T49_a_part_used_up_is_200_ms_and_a_report", func(t *testing.T) {
		t.Parallel()
		f := newFleet(3, standard())
		n := f.nodes[0]
		for range 17 {
			f.ask(n, "c", 1)
		}
		want := retries.Decision{Verdict: retries.PartUsedUp, RetryAfter: 200 * time.Millisecond}
		if d := f.ask(n, "c", 1); d != want {
			t.Fatalf("retry beyond the part: got %v, want %v", d, want)
		}
		if d := f.ask(n, "c", 0); d.Verdict != retries.Admit {
			t.Errorf("a first attempt beside it: got %v, want admit", d)
		}
		select {
		case <-n.Due():
		default:
			t.Fatal("no report is due although the part is used up")
		}
		f.commit(n.Report(time.Duration(f.now)))
		f.catchUp(n, 1)
		if d := f.ask(n, "c", 1); d.Verdict != retries.Admit {
			t.Errorf("after the report was applied: got %v, want admit", d)
		}
	})
	t.Run("a_report_just_made_is_not_due_again", func(t *testing.T) {
		t.Parallel()
		f := newFleet(3, standard())
		n := f.nodes[0]
		for range 18 {
			f.ask(n, "c", 1)
		}
		<-n.Due()
		n.Report(time.Duration(f.now))
		for range 100 {
			f.ask(n, "c", 1)
		}
		select {
		case <-n.Due():
			t.Error("due within 100 ms of a report that has everything")
		default:
		}
		f.now += second
		f.ask(n, "c", 1)
		<-n.Due()
	})
}

func TestHold(t *testing.T) {
	t.Parallel()
	t.Run("T30_held_retries_use_up_the_part", func(t *testing.T) {
		t.Parallel()
		f := newFleet(3, standard())
		n := f.nodes[0]
		var holds []retries.Hold
		for range 100 {
			if d, h := f.hold(n, "c", 1); d.Verdict == retries.Admit {
				holds = append(holds, h)
			}
		}
		if len(holds) != 17 {
			t.Fatalf("%d retries admitted at once, want ⌈51/3⌉ = 17", len(holds))
		}
		for _, h := range holds {
			n.Finish(0, h, false, tally.Count{})
		}
		if clients, slots := n.Kept(); clients != 0 || slots != 0 {
			t.Errorf("kept %d clients and %d slots of requests that came to nothing", clients, slots)
		}
		if r := n.Report(0); r != nil {
			t.Errorf("report of requests that came to nothing: %v", r)
		}
	})
	t.Run("held_first_attempts_widen_nothing", func(t *testing.T) {
		t.Parallel()
		rule := standard()
		rule.MinRequests = 0
		f := newFleet(1, rule)
		n := f.nodes[0]
		for range 4 {
			f.ask(n, "c", 0)
		}
		f.ask(n, "c", 1)
		f.settle(t)
		for range 100 {
			f.hold(n, "c", 0)
		}
		if d := f.ask(n, "c", 1); d.Verdict != retries.Admit {
			t.Fatalf("second retry of 6: got %v, want admit", d)
		}
		// The 100 may all be denied, and then 2 of 6 were retries.
		if d := f.ask(n, "c", 1); d.Verdict != retries.Budget {
			t.Errorf("third retry of 7: got %v, want budget", d)
		}
	})
	t.Run("held_first_attempts_end_the_free_minimum", func(t *testing.T) {
		t.Parallel()
		f := newFleet(1, standard())
		n := f.nodes[0]
		for i := range 50 {
			f.ask(n, "c", uint32(min(1, i/39)))
		}
		f.hold(n, "c", 0)
		// Once it counts, 11 of 51 are retries.
		if d := f.ask(n, "c", 1); d.Verdict != retries.Budget {
			t.Errorf("got %v, want budget", d)
		}
	})
}

func TestApplied(t *testing.T) {
	t.Parallel()
	t.Run("T29_an_earlier_boot_frees_nothing", func(t *testing.T) {
		t.Parallel()
		f := newFleet(3, standard())
		n := f.nodes[0]
		f.ask(n, "c", 1)
		f.commit(n.Report(0))
		f.boot(n)
		f.ask(n, "c", 1)
		f.catchUp(n, 1)
		f.settle(t)
		if total, _ := n.replica.sum(0, "c"); total != 2 {
			t.Errorf("counted %d, want one of each boot", total)
		}
	})
	t.Run("more_than_was_counted_frees_no_more", func(t *testing.T) {
		t.Parallel()
		f := newFleet(3, standard())
		n := f.nodes[0]
		f.ask(n, "c", 1)
		report := n.Report(0)
		report.Slices[0].Total, report.Slices[0].Retries = 100, 100
		f.ask(n, "c", 1)
		n.Applied(report)
		var admitted int
		for f.ask(n, "c", 1).Verdict == retries.Admit {
			admitted++
		}
		if admitted > 17 {
			t.Errorf("admitted %d, a part is 17", admitted)
		}
	})
}

func TestBounds(t *testing.T) {
	t.Parallel()
	t.Run("more_clients_than_there_is_room_for", func(t *testing.T) {
		t.Parallel()
		n := retries.New(retries.Config{ClientsMax: 10})
		request := func(client string, attempt uint32) retries.Verdict {
			d, h := n.Decide(0, 0, retries.Request{Client: client, Attempt: attempt, Rule: standard(), Nodes: 1})
			n.Finish(0, h, true, tally.Count{})
			return d.Verdict
		}
		for i := range 1000 {
			client := string(rune('a' + i))
			if v := request(client, 0); v != retries.Admit {
				t.Fatalf("first attempt of client %d: got %v, want admit", i, v)
			}
			want := retries.Admit
			if i >= 10 {
				want = retries.PartUsedUp
			}
			if v := request(client, 1); v != want {
				t.Fatalf("retry of client %d: got %v, want %v", i, v, want)
			}
		}
		if clients, _ := n.Kept(); clients != 10 {
			t.Errorf("%d clients kept, want 10", clients)
		}
	})
	t.Run("more_slices_than_there_is_room_for", func(t *testing.T) {
		t.Parallel()
		n := retries.New(retries.Config{SlotsMax: 20})
		for i := range int64(200) {
			at := i * second
			d, h := n.Decide(time.Duration(at), bucket.Instant(at), retries.Request{Client: "c", Rule: standard(), Nodes: 1})
			if d.Verdict != retries.Admit {
				t.Fatalf("first attempt %d: got %v", i, d)
			}
			n.Finish(time.Duration(at), h, true, tally.Count{})
		}
		if _, slots := n.Kept(); slots > 20 {
			t.Errorf("%d slots kept, at most 20", slots)
		}
	})
	t.Run("a_report_fits_into_an_entry", func(t *testing.T) {
		t.Parallel()
		f := newFleet(1, standard())
		n := f.nodes[0]
		for i := range 2000 {
			f.ask(n, string(rune('Ā'+i)), 0)
		}
		seen := make(map[string]bool)
		for rounds := 0; len(seen) < 2000; rounds++ {
			if rounds == 10 {
				t.Fatalf("%d of 2000 clients reported after 10 reports", len(seen))
			}
			// Nothing of it is applied: the next report begins where this one ended.
			for _, s := range n.Report(0).GetSlices() {
				seen[s.GetClient()] = true
			}
		}
	})
}

func TestWindowChange(t *testing.T) {
	t.Parallel()
	f := newFleet(1, standard())
	n := f.nodes[0]
	for range 51 {
		f.ask(n, "c", 1)
	}
	f.rule.Window = time.Minute
	n.replica = newReplica(f.rule)
	if d := f.ask(n, "c", 1); d.Verdict != retries.Budget {
		t.Errorf("over budget when the window changes: got %v, want budget", d)
	}
	f.settle(t)
	if total, retried := n.replica.sum(f.now, "c"); total != 51 || retried != 51 {
		t.Errorf("reported under the new window: %d of %d, want 51 of 51", retried, total)
	}
}

func BenchmarkDecide(b *testing.B) {
	n := retries.New(retries.Config{})
	r := retries.Request{Client: "c", Rule: standard(), Nodes: 3}
	b.ReportAllocs()
	for b.Loop() {
		_, h := n.Decide(0, 0, r)
		n.Finish(0, h, true, tally.Count{})
	}
}
