package quorlease_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/retry"
)

// The worked examples of docs/concepts, with the numbers that the pages print.

// example is one bucket with its clock.
type example struct {
	t     *testing.T
	shape *bucket.Shape
	state bucket.Bucket
}

func newExample(t *testing.T, spec bucket.Spec) *example {
	t.Helper()
	shape, err := bucket.NewShape(spec)
	if err != nil {
		t.Fatal(err)
	}
	return &example{t: t, shape: shape, state: shape.Full(0)}
}

func (e *example) at(moment time.Duration) *example {
	e.state.Advance(e.shape, bucket.Instant(moment))
	return e
}

func (e *example) granted(class int, n int64) {
	e.t.Helper()
	if _, ok := e.state.Take(e.shape, class, n); !ok {
		e.t.Errorf("at %v: class %d is denied %d, the page says granted", time.Duration(e.state.Last()), class, n)
	}
}

func (e *example) denied(class int, n int64, want time.Duration) {
	e.t.Helper()
	if _, ok := e.state.Take(e.shape, class, n); ok {
		e.t.Errorf("at %v: class %d is granted %d, the page says denied", time.Duration(e.state.Last()), class, n)
		return
	}
	wait, never := e.state.RetryAfter(e.shape, class, n)
	if want < 0 != never || want >= 0 && wait != want {
		e.t.Errorf("at %v: class %d waits %v (never: %v) for %d, the page says %v",
			time.Duration(e.state.Last()), class, wait, never, n, want)
	}
}

func (e *example) remaining(want int64) {
	e.t.Helper()
	if got := e.state.Remaining(e.shape); got != want {
		e.t.Errorf("at %v: %d remain, the page says %d", time.Duration(e.state.Last()), got, want)
	}
}

const never = time.Duration(-1)

func TestConceptsBuckets(t *testing.T) {
	t.Run("a level and a remainder", func(t *testing.T) {
		e := newExample(t, bucket.Spec{
			Amount: 10, Interval: 30 * time.Second, Target: bucket.Whole, Burst: 10, MaxDebt: 20,
		})
		if got := e.shape.Unit(); got != 3_000_000_000 {
			t.Errorf("a token is %d units, the page says 3000000000", got)
		}
		e.granted(0, 10)
		e.at(10 * time.Second).remaining(3)
		e.denied(0, 4, 2*time.Second)
		e.at(12*time.Second).granted(0, 4)
	})
	t.Run("classes", func(t *testing.T) {
		const live, batch = 0, 1
		e := newExample(t, bucket.Spec{
			Amount: 60, Interval: time.Minute, Target: bucket.Whole, Burst: 60, MaxDebt: 60,
			Classes: []bucket.ClassSpec{{Share: 6000, SubBurst: 30}, {}},
		})
		e.denied(batch, 31, never)
		e.granted(batch, 30)
		e.denied(batch, 1, time.Second)
		e.granted(live, 30)
		e.denied(live, 1, time.Second)
		e.denied(batch, 1, 2500*time.Millisecond)
	})
	t.Run("debt", func(t *testing.T) {
		e := newExample(t, bucket.Spec{
			Amount: 1000, Interval: time.Minute, Target: bucket.Whole, Burst: 1000, MaxDebt: 1000,
		})
		e.granted(0, 1000)
		if lost := e.at(5*time.Second).state.Excess(e.shape, 0, 200); lost != 0 {
			t.Errorf("%d written off", lost)
		}
		e.remaining(-117)
		e.denied(0, 1, 7060*time.Millisecond)
		e.at(12060*time.Millisecond).granted(0, 1)
	})
}

func TestConceptsDenial(t *testing.T) {
	third := newExample(t, bucket.Spec{Amount: 3, Interval: time.Second, Target: bucket.Whole, Burst: 1})
	third.granted(0, 1)
	third.denied(0, 1, 334*time.Millisecond)
	third.denied(0, 2, never)
	third.at(333*time.Millisecond).denied(0, 1, time.Millisecond)
	third.at(334*time.Millisecond).granted(0, 1)
}

// TestReadmeShowsAProgram: what the README shows is a program that compiles.
func TestReadmeShowsAProgram(t *testing.T) {
	program, err := os.ReadFile("examples/limiter/main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, body, found := strings.Cut(string(program), "\nfunc work(")
	if !found || !strings.Contains(string(readme), "```go\nfunc work("+body+"```\n") {
		t.Error("README.md does not show work of examples/limiter/main.go as it is")
	}
}

func TestConceptsFailingOpen(t *testing.T) {
	quarter := int64(250_000)
	limit := failopen.Fallback{
		Limit: "provider", Mode: failopen.Share, SharePPM: &quarter,
		Dimensions: []failopen.Dimension{{Name: "requests", Amount: 100, Interval: time.Second, Burst: 100}},
	}
	m, err := failopen.New(failopen.Config{Static: []failopen.Fallback{limit}})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	for range 3 {
		m.Observe(began, failopen.NoQuorum)
	}
	request := failopen.Request{Charges: []failopen.Charge{{Limit: "provider", Dimension: "requests", Amount: 1}}}
	admitted := int64(0)
	for at := time.Duration(0); at <= time.Minute; at += time.Millisecond {
		verdict := m.Decide(began.Add(at), request)
		if verdict.Admit {
			admitted++
		}
		if at == 0 && verdict.RetryAfter != 40*time.Millisecond {
			t.Errorf("at the start %+v, the page says that it waits 40 ms", verdict)
		}
		if at == 40*time.Millisecond && admitted != 1 {
			t.Errorf("%d admitted in 40 ms, the page says 1", admitted)
		}
	}
	spent := m.Summary(began.Add(time.Minute)).Spent[0]
	if admitted != 1500 || spent.Worst != 1525 || spent.Fleet != 6100 {
		t.Errorf("%d admitted, at worst %d and %d, the page says 1500, 1525 and 6100", admitted, spent.Worst, spent.Fleet)
	}
}

func TestConceptsRetryBudgets(t *testing.T) {
	rule := failopen.DefaultRetries()
	if left := rule.Headroom(400, 0); left != 101 || retry.Part(left, 3) != 34 {
		t.Errorf("%d retries beside 400 first attempts, %d at one node of three; the page says 101 and 34",
			left, retry.Part(left, 3))
	}
	for _, row := range []struct {
		retries int64
		warns   bool
		want    retry.Verdict
	}{{44, false, retry.Admit}, {45, true, retry.Admit}, {100, true, retry.Admit}, {101, true, retry.Budget}} {
		total := 400 + row.retries
		if got := rule.Decide(total, row.retries, 1); got != row.want || rule.Above(total, row.retries, 1000) != row.warns {
			t.Errorf("%d retries of %d: %v, the page says %v", row.retries, total, got, row.want)
		}
	}
	rule.MinRetries, rule.MinInterval = 10, time.Second
	if rule.Floor() != 3000 {
		t.Errorf("a floor of %d, the page says 3,000", rule.Floor())
	}
	tokens, balance := retry.TokenRule{Cap: 500, Cost: 5, Refund: 1}, retry.Tokens{}
	for range 100 {
		if !balance.Retry(0, tokens) {
			t.Fatal("fewer than a hundred retries at once")
		}
	}
	for range 5 {
		if balance.Retry(0, tokens) {
			t.Fatal("fewer than five successes pay for a retry")
		}
		balance.Success(tokens)
	}
	if !balance.Retry(0, tokens) {
		t.Error("five successes don't pay for a retry")
	}
}
