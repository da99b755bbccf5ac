package failopen

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world drives a Machine and keeps what it must not do. Its source of chance is
// rapid or bytes.
type world struct {
	t interface {
		Helper()
		Fatalf(format string, args ...any)
	}
	pick func(label string, most int) int
	m    *Machine
	// twin gets the same calls.
	twin *Machine
	now  time.Time
	// began is when the incident did, last what the last change was.
	began time.Time
	last  Change
	// spent are the share's tokens in this incident, all of them ever.
	spent, all map[string]int64
	rule       Fallback
}

// shares that the limit "share" may have, and its rates.
var (
	worldPPM   = []int64{0, 1, 250_000, 333_333, WholePPM}
	worldRates = []Dimension{
		{"d", 1, time.Minute, 1},
		{"d", 100, time.Second, 100},
		{"d", 7, 86_400 * time.Second, 7},
		{"d", 1_000_003, time.Second, 5},
	}
	worldKeys   = []string{"", "a", "b", "c", "d"}
	worldLimits = []string{"share", "closed", "open", "unknown"}
)

func newWorld(t *world) *world {
	t.now = start
	t.spent, t.all = make(map[string]int64), make(map[string]int64)
	t.last = Ended
	ppm := worldPPM[t.pick("ppm", len(worldPPM)-1)]
	t.rule = Fallback{
		Limit: "share", Mode: Share, SharePPM: &ppm,
		Dimensions: []Dimension{worldRates[t.pick("rate", len(worldRates)-1)]},
	}
	config := Config{
		KeysMax: 1 + t.pick("keys", 6), ClientsMax: 2,
		Static: []Fallback{t.rule, {Limit: "closed", Mode: Closed}},
	}
	for _, m := range []**Machine{&t.m, &t.twin} {
		var err error
		if *m, err = New(config); err != nil {
			t.t.Fatalf("%v", err)
		}
	}
	return t
}

// step does one thing at random.
func (w *world) step() {
	w.t.Helper()
	pauses := []time.Duration{0, 1, time.Millisecond, 40 * time.Millisecond, time.Second, time.Minute, -time.Millisecond}
	w.now = w.now.Add(pauses[w.pick("pause", len(pauses)-1)])
	if w.pick("what", 2) == 0 {
		s := []Signal{Answered, Answered, Slow, NoLeader, NoQuorum, Unreachable}[w.pick("signal", 5)]
		for range 1 + w.pick("times", leaveGood) {
			w.observe(s)
		}
	} else {
		w.decide()
	}
}

func (w *world) observe(s Signal) {
	w.t.Helper()
	change := w.m.Observe(w.now, s)
	if other := w.twin.Observe(w.now, s); other != change {
		w.t.Fatalf("the same calls: %v and %v", change, other)
	}
	if change == None {
		return
	}
	if change == w.last {
		w.t.Fatalf("%v twice in a row", change)
	}
	w.last = change
	if change == Started {
		w.began = w.now
		clear(w.spent)
	}
}

func (w *world) decide() {
	w.t.Helper()
	r := Request{
		Client: worldKeys[w.pick("client", len(worldKeys)-1)], Attempt: uint32(w.pick("attempt", 4)),
		Class: worldKeys[w.pick("class", 1)],
	}
	closed := false
	for range 1 + w.pick("charges", 2) {
		c := Charge{
			Limit: worldLimits[w.pick("limit", len(worldLimits)-1)], Key: worldKeys[w.pick("key", len(worldKeys)-1)],
			Dimension: "d", Amount: int64(1 + w.pick("amount", 30)),
		}
		closed = closed || c.Limit == "closed"
		r.Charges = append(r.Charges, c)
	}
	before := len(w.m.mu.accounts.byKey)
	got := w.m.Decide(w.now, r)
	if other := w.twin.Decide(w.now, r); other != got {
		w.t.Fatalf("the same calls: %+v and %+v", got, other)
	}
	if !got.Admit {
		whole := got.RetryAfter > 0 && got.RetryAfter%time.Millisecond == 0
		if got.Reason == Granted || got.Never == whole {
			w.t.Fatalf("refused with %+v", got)
		}
		if after := len(w.m.mu.accounts.byKey); after != before {
			w.t.Fatalf("a refusal made %d accounts", after-before)
		}
		return
	}
	if closed || r.Attempt > DefaultRetries().MaxRetries {
		w.t.Fatalf("admitted %+v", r)
	}
	for _, c := range r.Charges {
		w.all[c.Limit] += c.Amount
		if c.Limit == "share" {
			w.spend(c)
		}
	}
}

// spend checks the bound: what a key has taken since the incident began is at
// most the share of the rate, because the bucket starts empty.
func (w *world) spend(c Charge) {
	w.t.Helper()
	if w.last != Started {
		w.t.Fatalf("a share was spent while the authority is there")
	}
	w.spent[c.Key] += c.Amount
	d := w.rule.Dimensions[0]
	most := big.NewRat(d.Amount, int64(d.Interval))
	most.Mul(most, big.NewRat(*w.rule.SharePPM, WholePPM))
	// Observers overtake one another by a millisecond.
	away := w.now.Sub(w.began) + time.Millisecond
	most.Mul(most, big.NewRat(int64(away), 1))
	if new(big.Rat).SetInt64(w.spent[c.Key]).Cmp(most) > 0 {
		w.t.Fatalf("key %q: %d admitted in %v, exactly %s", c.Key, w.spent[c.Key], away, most.FloatString(3))
	}
}

// finish checks the books.
func (w *world) finish() {
	w.t.Helper()
	counted := make(map[string]int64)
	for _, one := range w.m.Admitted() {
		counted[one.Limit] += one.Tokens
	}
	// Limits that found no place are counted without a name.
	missing := counted[""]
	for limit, tokens := range w.all {
		missing -= tokens - counted[limit]
	}
	if missing != 0 {
		w.t.Fatalf("admitted %v, counted %v", w.all, counted)
	}
	for _, s := range w.m.Summary(w.now.Add(time.Second)).Spent {
		if s.Mode == Share && (!s.Bounded || s.Tokens > s.Worst || s.Worst > s.Fleet) && s.Keys > 0 {
			w.t.Fatalf("published %+v", s)
		}
	}
}

func TestAnySequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(&world{t: t, pick: func(label string, most int) int {
			return rapid.IntRange(0, most).Draw(t, label)
		}})
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			w.step()
		}
		w.finish()
	})
}

// FuzzSequence plays the bytes as observations and decisions.
func FuzzSequence(f *testing.F) {
	f.Add([]byte{2, 1, 3, 0, 0, 3, 0, 0, 3, 0, 0, 3, 5, 1, 0, 0, 0, 0, 0, 1, 0})
	f.Add([]byte{4, 0, 6, 0, 0, 4, 4, 0, 4, 4, 1, 0, 0, 0, 2, 0, 1, 9, 3, 1, 0, 0, 2, 5, 1, 1})
	f.Add([]byte{1, 3, 0, 0, 0, 2, 5, 0, 2, 5, 0, 2, 0, 1, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newWorld(&world{t: t, pick: func(_ string, most int) int {
			if len(data) == 0 {
				return 0
			}
			value := int(data[0]) % (most + 1)
			data = data[1:]
			return value
		}})
		for steps := 0; len(data) > 0 && steps < 500; steps++ {
			w.step()
		}
		w.finish()
	})
}
