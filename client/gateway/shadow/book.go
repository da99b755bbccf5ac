package shadow

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorlease/quorlease/client/gateway/refuse"
)

const (
	reasons = int(refuse.Malformed) + 1
	// rowsMax is how many rows there are. What is new then is counted for Others.
	rowsMax = 1000
	// lineEvery is how often a line is written.
	lineEvery = time.Minute
)

// Others is the client of rows for which there was no room.
const Others = "(others)"

// Report is what a shadow has found since it was made. It says of each request what a gateway would
// have done, and beside that what the limiter that is there has done: it has refused what was
// answered with 429 or 503.
type Report struct {
	// On: it is a shadow now.
	On    bool      `json:"shadow"`
	Since time.Time `json:"since"`
	// Requests counts what was forwarded. It is Passed, Refused, Waited and Undecided together.
	Requests uint64 `json:"requests"`
	// Passed would have passed, and Refused not. Waited would have waited first. Of Undecided nobody
	// knows: there were too many at once, no room for the body, or nobody who answered.
	Passed    uint64 `json:"passed"`
	Refused   uint64 `json:"refused"`
	Waited    uint64 `json:"waited"`
	Undecided uint64 `json:"undecided"`
	// RefusedThere counts what the limiter that is there has refused of Passed.
	RefusedThere uint64 `json:"refused_there"`
	// Rows are Refused and Waited, the most frequent first.
	Rows []Row `json:"rows"`
}

// Row is what would have become of some requests.
type Row struct {
	// Outcome is "refused" or "waited".
	Outcome string `json:"outcome"`
	// Reason is the gateway's word in small letters, such as "rate".
	Reason string `json:"reason"`
	Client string `json:"client"`
	Class  string `json:"class"`
	Count  uint64 `json:"count"`
	// RefusedThere counts what the limiter that is there has refused of it, too.
	RefusedThere uint64 `json:"refused_there"`
	// WaitMeanMs and WaitMaxMs are for how long it would have waited, or been told to, in milliseconds.
	WaitMeanMs int64 `json:"wait_mean_ms"`
	WaitMaxMs  int64 `json:"wait_max_ms"`
}

// outcomes of rows.
const (
	refused = "refused"
	waited  = "waited"
)

// rowKey tells rows apart.
type rowKey struct {
	reason        refuse.Reason
	waits         bool
	client, class string
}

// row is a Row as it grows.
type row struct {
	count, there uint64
	sum, longest time.Duration
}

// book is what was found. It is safe for concurrent use.
type book struct {
	mu     sync.Mutex
	rows   map[rowKey]*row // guarded by mu
	totals Report          // guarded by mu
	// last is when a line was written, before are the totals then.
	last   time.Time // guarded by mu
	before Report    // guarded by mu
	// minute counts reasons since then.
	minute map[refuse.Reason]uint64 // guarded by mu
}

func newBook() *book {
	now := time.Now()
	return &book{
		rows: map[rowKey]*row{}, totals: Report{Since: now}, last: now, minute: map[refuse.Reason]uint64{},
	}
}

// add takes in one request, and the status of its answer.
func (b *book) add(v *verdict, status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	there := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	t := &b.totals
	t.Requests++
	switch {
	case v.passed:
		t.Passed++
		if there {
			t.RefusedThere++
		}
		return
	case v.no.Reason == nobodyKnows:
		t.Undecided++
		return
	case v.no.waits():
		t.Waited++
	default:
		t.Refused++
		b.minute[v.no.Reason]++
	}
	at := b.rowLocked(&v.no)
	at.count++
	if there {
		at.there++
	}
	at.sum += v.no.Wait
	at.longest = max(at.longest, v.no.Wait)
}

func (b *book) rowLocked(no *No) *row {
	key := rowKey{no.Reason, no.waits(), no.Client, no.Class}
	at := b.rows[key]
	if at == nil && len(b.rows) >= rowsMax {
		key.client, key.class = Others, ""
		at = b.rows[key]
	}
	if at == nil {
		at = &row{}
		b.rows[key] = at
	}
	return at
}

// report is what was found so far.
func (b *book) report() Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.totals
	r.Rows = make([]Row, 0, len(b.rows))
	for key, at := range b.rows {
		outcome := refused
		if key.waits {
			outcome = waited
		}
		r.Rows = append(r.Rows, Row{
			Outcome: outcome, Reason: word(key.reason), Client: key.client, Class: key.class,
			Count: at.count, RefusedThere: at.there, WaitMaxMs: at.longest.Milliseconds(),
			WaitMeanMs: (at.sum / time.Duration(at.count)).Milliseconds(),
		})
	}
	slices.SortFunc(r.Rows, func(x, y Row) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.Outcome, y.Outcome),
			cmp.Compare(x.Reason, y.Reason), cmp.Compare(x.Client, y.Client), cmp.Compare(x.Class, y.Class))
	})
	return r
}

// word is a reason in small letters.
func word(r refuse.Reason) string { return strings.ToLower(r.String()) }

// Stats are the figures that have no client's name in them.
type Stats struct {
	Passed, Undecided, Waited uint64
	// Refused is by refuse.Reason.
	Refused [reasons]uint64
	// RefusedThere is what the limiter that is there has refused of Passed.
	RefusedThere uint64
}

// Stats are the figures now.
func (m *Mirror) Stats() Stats {
	b := m.book
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Stats{
		Passed: b.totals.Passed, Undecided: b.totals.Undecided, Waited: b.totals.Waited, RefusedThere: b.totals.RefusedThere,
	}
	for key, at := range b.rows {
		if !key.waits {
			s.Refused[key.reason] += at.count
		}
	}
	return s
}

// log writes what the last minute has brought, where it is over.
func (m *Mirror) log() {
	b := m.book
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if now.Sub(b.last) < lineEvery {
		return
	}
	t, was := &b.totals, &b.before
	var reasons []string
	for reason, n := range b.minute {
		reasons = append(reasons, fmt.Sprintf("%s=%d", word(reason), n))
	}
	slices.Sort(reasons)
	m.config.Logger.Info("the shadow has refused nobody",
		"requests", t.Requests-was.Requests, "refused", t.Refused-was.Refused, "waited", t.Waited-was.Waited,
		"undecided", t.Undecided-was.Undecided, "reasons", strings.Join(reasons, ","))
	b.last, b.before = now, *t
	clear(b.minute)
}
