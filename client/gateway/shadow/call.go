package shadow

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client/gateway/refuse"
)

// No is a refusal that nobody was told.
type No struct {
	Reason refuse.Reason
	// Client and Class are whose it would have been. Empty: nobody knows.
	Client, Class string
	// Wait is about how long until it would pass. 0: not known.
	Wait time.Duration
	// Patience is for how long it may wait, and Defers says that it waits for a closed circuit, too.
	Patience time.Duration
	Defers   bool
}

// mayWait says whether what is refused for a reason may wait in a queue, or for a circuit, in place of that.
func mayWait(reason refuse.Reason) bool {
	switch reason {
	case refuse.Rate, refuse.Quota, refuse.Concurrency, refuse.Paused, refuse.CircuitOpen:
		return true
	default:
		return false
	}
}

// waits says whether it would have waited in place of being refused.
func (n *No) waits() bool {
	return mayWait(n.Reason) && (n.Defers || n.Reason != refuse.CircuitOpen) &&
		n.Patience > 0 && n.Wait <= n.Patience
}

// verdict is what would have become of a request: passed, a no, or neither where nobody knows.
type verdict struct {
	passed bool
	no     No
}

// Call is one request that is forwarded.
type Call struct {
	mirror  *Mirror
	request *http.Request
	// text is its body as far as it was read.
	text []byte
	// unseen: it is not decided about.
	unseen bool
	// users are the halves that need the body, and room is what it takes.
	users atomic.Int32
	room  int64

	// head is closed when answer or failed says what came.
	head   chan struct{}
	told   sync.Once
	answer *http.Response
	failed error
	tape   *tape

	mu struct {
		sync.Mutex
		verdict *verdict
		// answered: status is what the client was told, 0 where it got no answer.
		answered bool
		status   int
	}
}

// Begin takes a request, and reads its body, most bytes of it and one more. What is 0 or less is
// not read. End has to be called.
func (m *Mirror) Begin(r *http.Request, most int64) *Call {
	c := &Call{mirror: m, request: r, head: make(chan struct{}), tape: newTape(&m.taped, tapesMax)}
	c.users.Store(1)
	if most > 0 && r.Body != nil && r.Body != http.NoBody {
		c.hold(most + 1)
	}
	return c
}

// hold reads as much of a body as there is room for.
func (c *Call) hold(most int64) {
	r, m := c.request, c.mirror
	room := most
	if r.ContentLength >= 0 {
		room = min(r.ContentLength, most)
	}
	if m.held.Add(room) > heldMax {
		m.held.Add(-room)
		c.unseen = true
		return
	}
	var broken error
	c.text, broken = io.ReadAll(io.LimitReader(r.Body, most))
	c.room = int64(len(c.text))
	m.held.Add(c.room - room)
	var rest io.Reader = r.Body
	if broken != nil {
		rest = failing{broken}
		c.unseen = true
	}
	c.request = r.WithContext(r.Context())
	c.request.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(c.text), rest), r.Body}
}

// failing is the end of a body that could not be read.
type failing struct{ err error }

// Read fails.
func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Text is the body as far as it was read. Nobody may change it.
func (c *Call) Text() []byte { return c.text }

// Question is the request for the second half, in a context that says so and does not end. It is
// false where nothing is to be decided; else Answered has to be called when that half ends.
func (c *Call) Question() (*http.Request, bool) {
	if !c.unseen && c.mirror.deciding.Add(1) > decidingMax {
		c.mirror.deciding.Add(-1)
		c.unseen = true
	}
	if c.unseen {
		return nil, false
	}
	c.users.Add(1)
	q := c.request.WithContext(context.WithValue(context.Background(), callKey{}, c))
	q.Body = io.NopCloser(bytes.NewReader(c.text))
	if len(c.text) == 0 {
		q.Body = http.NoBody
	}
	return q, true
}

// Refused says that it would not have passed, unless it has: then that is the no of whoever has
// answered. It returns the status that the client was told, when that is known, or else that of one
// who has gone.
func (c *Call) Refused(no No) int {
	c.decide(&verdict{no: no})
	<-c.head
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.mu.status, http.StatusRequestTimeout)
}

// Answered ends the second half, also one that panics: it is to be deferred.
func (c *Call) Answered() {
	if cause := recover(); cause != nil {
		c.mirror.config.Logger.Error("deciding about a request ended in a panic",
			"cause", cause, "stack", string(debug.Stack()))
	}
	c.decide(nil)
	_ = c.tape.Close()
	c.leave()
}

// decide takes in what would have become of it, nil: nobody knows. Only the first one counts.
func (c *Call) decide(v *verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.verdict != nil {
		return
	}
	if v == nil {
		v = &verdict{no: No{Reason: nobodyKnows}}
	}
	c.mu.verdict = v
	c.mirror.deciding.Add(-1)
	if !v.passed {
		_ = c.tape.Close()
	}
	c.noteLocked()
}

// nobodyKnows is no reason.
const nobodyKnows refuse.Reason = -1

// tell says what came, once.
func (c *Call) tell(answer *http.Response, status int, err error) {
	c.told.Do(func() {
		c.answer, c.failed = answer, err
		defer close(c.head)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.mu.answered, c.mu.status = true, status
		c.noteLocked()
	})
}

// noteLocked writes it down when both halves are known.
func (c *Call) noteLocked() {
	if c.mu.answered && c.mu.verdict != nil {
		c.mirror.book.add(c.mu.verdict, c.mu.status)
	}
}

// errGone is why there is no answer where the client has not waited.
var (
	errGone = errors.New("the client has not waited for an answer")
	// errUpgraded is the end of what became another protocol.
	errUpgraded = errors.New("it has become another protocol")
)

// End ends the first half.
func (c *Call) End() {
	c.tell(nil, 0, errGone)
	c.tape.finish(io.ErrUnexpectedEOF)
	if c.unseen {
		c.mirror.book.add(&verdict{no: No{Reason: nobodyKnows}}, 0)
	}
	c.leave()
	c.mirror.log()
}

// leave lets go of the body.
func (c *Call) leave() {
	if c.users.Add(-1) == 0 {
		c.mirror.held.Add(-c.room)
	}
}
