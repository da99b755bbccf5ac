package circuit

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// hub carries what gateways tell one another, at once.
type hub struct {
	inbox  []map[Key]letter
	claims map[Key]claim
	// told hears of everything that is published.
	told func(now time.Duration, key Key, n Notice)
}

type letter struct {
	Notice
	until time.Duration
}

type claim struct {
	by    int
	until time.Duration
}

func newHub(gateways int) *hub {
	h := &hub{claims: make(map[Key]claim), told: func(time.Duration, Key, Notice) {}}
	for range gateways {
		h.inbox = append(h.inbox, make(map[Key]letter))
	}
	return h
}

// seat is one gateway's place at a hub.
type seat struct {
	hub *hub
	at  int
}

func (s seat) Publish(now time.Duration, key Key, n Notice) {
	delete(s.hub.claims, key)
	for i, inbox := range s.hub.inbox {
		if i != s.at {
			old := inbox[key]
			if n.Closed && now < old.until {
				continue
			}
			inbox[key] = letter{n, max(old.until, now+n.Wait)}
		}
	}
	s.hub.told(now, key, n)
}

func (s seat) Learn(now time.Duration, key Key) (Notice, bool) {
	l, news := s.hub.inbox[s.at][key]
	delete(s.hub.inbox[s.at], key)
	l.Wait = max(0, l.until-now)
	return l.Notice, news
}

func (s seat) Claim(now time.Duration, key Key, most time.Duration) bool {
	if held := s.hub.claims[key]; held.until > now && held.by != s.at {
		return false
	}
	s.hub.claims[key] = claim{s.at, now + most}
	return true
}

func boards(t testing.TB, h *hub, c Config) (all []*Board) {
	t.Helper()
	for i := range h.inbox {
		c.Shared, c.Prober = seat{h, i}, seat{h, i}
		all = append(all, board(t, c))
	}
	return all
}

// TestShared: what one gateway was told all know, and one of them probes.
func TestShared(t *testing.T) {
	t.Run("one_probe_of_all_gateways", func(t *testing.T) {
		h := newHub(40)
		all := boards(t, h, Config{})
		throttle(all[7], 0, "a", 3, 60*second)
		probes := 0
		for i, b := range all {
			// The last one has nothing to do with the tenant until it is over.
			if i < 39 && forward(b, time.Duration(i)*second, "a") != nil {
				t.Fatal("a gateway forwards what another was told to wait with")
			}
		}
		var probe *Try
		for _, b := range all {
			if try := forward(b, 61*second, "a"); try != nil {
				probes++
				probe = try
			}
		}
		if probes != 1 {
			t.Fatalf("%d probes", probes)
		}
		probe.Done(62*second, Succeeded, 0)
		for i, b := range all {
			if forward(b, 62*second, "a") == nil {
				t.Errorf("gateway %d has not heard that it closed", i)
			}
		}
	})
}

// TestNotices: what others say, at the moments at which it could do harm.
func TestNotices(t *testing.T) {
	t.Run("a_notice_shortens_nothing", func(t *testing.T) {
		b := board(t, Config{})
		throttle(b, 0, "a", 3, 0)
		b.Learn(second, Key{Tenant: "a", Deployment: "d"}, Notice{Wait: second})
		b.Learn(second, Key{Tenant: "a", Deployment: "d"}, Notice{})
		b.Learn(second, Key{Tenant: "a", Deployment: "d"}, Notice{Closed: true})
		if left := b.Left(second, Key{Tenant: "a", Deployment: "d"}); left != 30*second {
			t.Errorf("%v left, want 30 s", left)
		}
		b.Learn(second, Key{Tenant: "a", Deployment: "d"}, Notice{Wait: 50 * second})
		if left := b.Left(second, Key{Tenant: "a", Deployment: "d"}); left != 50*second {
			t.Errorf("%v left, want 50 s", left)
		}
		b.Learn(second, Key{Tenant: "b", Deployment: "d"}, Notice{Closed: true})
		b.Learn(second, Key{Tenant: "c", Deployment: "d"}, Notice{Wait: 1000 * time.Hour})
		if s := b.Stats(); s.Keys != 2 || b.Left(second, Key{Tenant: "c", Deployment: "d"}) != time.Hour+second {
			t.Errorf("%+v, %v left", s, b.Left(second, Key{Tenant: "c", Deployment: "d"}))
		}
	})
	t.Run("a_notice_that_is_over", func(t *testing.T) {
		b := board(t, Config{})
		b.Learn(0, Key{Tenant: "a", Deployment: "d"}, Notice{})
		if try := forward(b, 0, "a"); try == nil || try.probes[tenants] == 0 {
			t.Errorf("%+v, want a probe at once", try)
		}
	})
	t.Run("a_notice_while_probing", func(t *testing.T) {
		b := board(t, Config{})
		throttle(b, 0, "a", 3, 0)
		probe := forward(b, 31*second, "a")
		b.Learn(32*second, Key{Tenant: "a", Deployment: "d"}, Notice{Wait: 5 * second})
		if probe.Stands(32 * second) {
			t.Error("the probe stands although another gateway was told to wait")
		}
		if forward(b, 38*second, "a") != nil {
			t.Error("a second probe beside the first")
		}
		probe.Done(38*second, Succeeded, 0)
		if try := forward(b, 38*second, "a"); try == nil || try.probes[tenants] == 0 {
			t.Errorf("the answer to a probe of before: %+v", try)
		}
		b = board(t, Config{})
		throttle(b, 0, "a", 3, 0)
		probe = forward(b, 31*second, "a")
		b.Learn(32*second, Key{Tenant: "a", Deployment: "d"}, Notice{})
		probe.Done(33*second, Succeeded, 0)
		if try := forward(b, 33*second, "a"); try == nil || try.probes[tenants] != 0 {
			t.Errorf("a notice that is over: %+v", try)
		}
	})
	t.Run("answers_that_come_late", func(t *testing.T) {
		h := newHub(2)
		all := boards(t, h, Config{})
		var told []Notice
		h.told = func(_ time.Duration, _ Key, n Notice) { told = append(told, n) }
		call := all[0].Call("a", "d", Shed)
		var early []*Try
		for range 3 {
			try, _ := call.Forward(0)
			early = append(early, try)
		}
		throttle(all[1], 0, "a", 3, 0)
		probe := forward(all[1], 31*second, "a")
		for _, try := range early {
			try.Done(32*second, Throttled, 60*second)
		}
		probe.Done(33*second, Succeeded, 0)
		if len(told) != 2 || told[0].Wait != 30*second || !told[1].Closed {
			t.Errorf("%+v, want one opening and one closing", told)
		}
		if left := all[0].Left(33*second, Key{Tenant: "a", Deployment: "d"}); left != 59*second {
			t.Errorf("who was told to wait 60 s at 32 s: %v left", left)
		}
	})
}

// world is three gateways, and what is true of them whatever happens.
type world struct {
	now    time.Duration
	boards []*Board
	// closedUntil is until when what was published forbids a key, and open whether it was
	// not published since that it closed.
	closedUntil map[Key]time.Duration
	open        map[Key]bool
	tries       []sent
}

type sent struct {
	try *Try
	at  time.Duration
}

// TestProperties: never more than one probe of a key at a time over all gateways, nothing
// but probes before it closes, and nothing at all before its time.
func TestProperties(t *testing.T) {
	t.Run("any_course", rapid.MakeCheck(func(t *rapid.T) {
		h := newHub(3)
		w := &world{closedUntil: make(map[Key]time.Duration), open: make(map[Key]bool)}
		h.told = func(now time.Duration, key Key, n Notice) {
			w.open[key] = !n.Closed
			w.closedUntil[key] = max(w.closedUntil[key], now+n.Wait)
		}
		for i := range h.inbox {
			b, err := New(Config{
				Least: 3, Idle: 24 * time.Hour, HintMax: 2 * time.Minute, Shared: seat{h, i}, Prober: seat{h, i},
				Jitter: func(most time.Duration) time.Duration {
					return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, "jitter"))
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			w.boards = append(w.boards, b)
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				w.now += time.Duration(rapid.Int64Range(0, int64(20*second)).Draw(t, "wait"))
			},
			"forward": w.forward,
			"answer":  w.answer,
			"": func(t *rapid.T) {
				for key := range w.open {
					w.check(t, key)
				}
			},
		})
	}))
}

func (w *world) forward(t *rapid.T) {
	b := rapid.SampledFrom(w.boards).Draw(t, "gateway")
	call := b.Call(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"), "d", Shed)
	for range rapid.IntRange(1, 4).Draw(t, "tries") {
		try, v := call.Forward(w.now)
		if try == nil {
			if v.Left <= 0 || v.Action == Forward {
				t.Fatalf("refused with %+v", v)
			}
			return
		}
		for i, key := range call.keys {
			if w.now < w.closedUntil[key] {
				t.Fatalf("%v: %v is forwarded %v too soon", w.now, key, w.closedUntil[key]-w.now)
			}
			if w.open[key] && try.probes[i] == 0 {
				t.Fatalf("%v: %v is forwarded and is no probe", w.now, key)
			}
		}
		if !try.Stands(w.now) {
			t.Fatalf("%v: a try that was permitted just now does not stand", w.now)
		}
		w.tries = append(w.tries, sent{try, w.now})
		if rapid.Bool().Draw(t, "at once") {
			w.tries = w.tries[:len(w.tries)-1]
			w.end(t, try)
		}
	}
}

func (w *world) answer(t *rapid.T) {
	if len(w.tries) == 0 {
		t.Skip("nothing was sent")
	}
	i := rapid.IntRange(0, len(w.tries)-1).Draw(t, "try")
	try := w.tries[i].try
	w.tries = append(w.tries[:i], w.tries[i+1:]...)
	w.end(t, try)
}

func (w *world) end(t *rapid.T, try *Try) {
	o := rapid.SampledFrom([]Outcome{Throttled, Throttled, Overloaded, Succeeded, Other}).Draw(t, "outcome")
	hint := time.Duration(rapid.Int64Range(0, int64(3*time.Minute)).Draw(t, "hint"))
	try.Done(w.now, o, hint)
}

// check counts the probes of a key that are on their way.
func (w *world) check(t *rapid.T, key Key) {
	probes := 0
	for _, s := range w.tries {
		for i, k := range s.try.call.keys {
			if k == key && s.try.probes[i] != 0 && w.now < s.at+time.Minute {
				probes++
			}
		}
	}
	if probes > 1 {
		t.Fatalf("%v: %d probes of %v", w.now, probes, key)
	}
}
