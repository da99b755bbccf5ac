// Package httpwrap wraps what a program sends HTTP requests with, so that it asks again
// as often as it may and as late as it is told.
//
// A request that was refused for now (429, 503, 529, or whatever says "x-should-retry:
// true") is sent again: three times in all, never before the wait that the answer names,
// each program a random time later. Each try says which one it is in the header
// x-retry-attempt, by which gateways and retry budgets know a retry. What says
// "x-should-retry: false" is not sent again, and neither is what failed without an
// answer: nobody knows whether it was done.
//
// Where a gateway in between tries again itself, a program behind it needs no wrapper of
// its own: what both make multiplies, and counts as the product.
package httpwrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/quorlease/quorlease/client/gateway/provider"
)

// Marker is the header that says how many retries were made of a request, 0 first.
const Marker = "X-Retry-Attempt"

const (
	attemptsDefault = 3
	attemptsMax     = 10
	waitDefault     = time.Minute
	waitMax         = time.Hour
	// drainMax is how much of an answer is read, so that its connection can be used again.
	drainMax = 64 << 10
	// drainTime is how long is waited for that at most.
	drainTime = time.Second
	// markerMax is the largest number that a caller's own marker may have.
	markerMax = 1000
)

// Config says how a program asks again. Its zero value is ready.
type Config struct {
	// Base sends. Nil: http.DefaultTransport.
	Base http.RoundTripper
	// Attempts is how often a request is sent at most, the first time counted, 1 to 10.
	// 0: 3.
	Attempts int
	// WaitMax is the longest wait that is asked for and waited, the random part on top of it
	// left out, up to an hour. 0: a minute. Where an answer asks for more its caller gets
	// that answer.
	WaitMax time.Duration
	// Pauses is how long to wait where an answer names no wait. The zero Schedule doubles
	// from a second to a minute, the second half of each drawn.
	Pauses provider.Schedule
	// Draw is the source of chance. Nil: rand.Int64N.
	Draw func(n int64) int64
}

// Transport sends requests, again where it may. It is safe for concurrent use, and has no
// goroutine.
type Transport struct{ config Config }

// New returns a transport. The error names everything that is out of range.
func New(c Config) (*Transport, error) {
	if c.Base == nil {
		c.Base = http.DefaultTransport
	}
	if c.Attempts == 0 {
		c.Attempts = attemptsDefault
	}
	if c.WaitMax == 0 {
		c.WaitMax = waitDefault
	}
	if c.Draw == nil {
		c.Draw = rand.Int64N
	}
	var problems []error
	if c.Attempts < 1 || c.Attempts > attemptsMax {
		problems = append(problems, fmt.Errorf("attempts: %d is out of range 1..%d", c.Attempts, attemptsMax))
	}
	if c.WaitMax < 0 || c.WaitMax > waitMax {
		problems = append(problems, fmt.Errorf("wait max: %s is out of range 0s..%s", c.WaitMax, waitMax))
	}
	if err := c.Pauses.Validate(); err != nil {
		problems = append(problems, fmt.Errorf("pauses: %w", err))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("wrapper configuration: %w", err)
	}
	return &Transport{c}, nil
}

// RoundTrip sends a request, once or more. A body is sent again only where GetBody gives
// it again, as http.NewRequest sees to for bytes and strings; where that fails the caller
// gets the answer that there is. A caller whose own marker is on the request has retries
// of its own, which are counted on.
//
// The answer is the last one. The error is that of Base, or of the request's context
// where that ends during a wait.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	before := marked(r.Header)
	try, err := attempt(r, 0, before)
	for n := 0; err == nil; n++ {
		var answer *http.Response
		if answer, err = t.config.Base.RoundTrip(try); err != nil {
			break
		}
		came := time.Now()
		wait, again := t.again(r, answer, n)
		if !again {
			return answer, nil
		}
		if try, err = attempt(r, n+1, before); err != nil {
			// Without a body to send, this answer is the last one.
			return answer, nil //nolint:nilerr // the caller has an answer
		}
		drain(answer.Body)
		if err = pause(r.Context(), wait-time.Since(came)); err != nil && try.Body != nil {
			_ = try.Body.Close()
		}
	}
	return nil, err
}

// drain reads an answer so that its connection can be used again, and closes it: one that does
// not end keeps nobody waiting.
func drain(body io.ReadCloser) {
	closed := make(chan struct{})
	late := time.AfterFunc(drainTime, func() {
		_ = body.Close()
		close(closed)
	})
	_, _ = io.CopyN(io.Discard, body, drainMax)
	if late.Stop() {
		_ = body.Close()
		return
	}
	<-closed
}

// CloseIdleConnections closes those of Base, as http.Client asks for.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.config.Base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// marked is the number that a caller has put on a request, 0 without a valid one.
func marked(h http.Header) int {
	n, err := strconv.Atoi(h.Get(Marker))
	if err != nil || n < 0 || n > markerMax {
		return 0
	}
	return n
}

// attempt is the request as it is sent after n retries. The caller's own is left as it is.
func attempt(r *http.Request, n, before int) (*http.Request, error) {
	try := r.Clone(r.Context())
	if try.Header == nil {
		try.Header = make(http.Header)
	}
	try.Header.Set(Marker, strconv.Itoa(before+n))
	if n == 0 || r.Body == nil || r.Body == http.NoBody {
		return try, nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, fmt.Errorf("read the body again: %w", err)
	}
	try.Body = body
	return try, nil
}

// again says whether a request may be sent once more, and when.
func (t *Transport) again(r *http.Request, answer *http.Response, n int) (time.Duration, bool) {
	switch {
	case n+1 >= t.config.Attempts || !passes(answer):
		return 0, false
	case r.Body != nil && r.Body != http.NoBody && r.GetBody == nil:
		return 0, false
	}
	hint := provider.ParseWait(answer.Header, time.Now())
	wait := t.config.Pauses.Pause(hint, n, t.config.Draw)
	asked := wait
	if hint.Said {
		asked = hint.For
	}
	deadline, bounded := r.Context().Deadline()
	return wait, asked <= t.config.WaitMax && (!bounded || time.Until(deadline) > wait)
}

// passes says whether what an answer refuses may be granted later.
func passes(answer *http.Response) bool {
	switch answer.Header.Get("X-Should-Retry") {
	case "true":
		return true
	case "false":
		return false
	}
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, statusOverloaded:
		return true
	}
	return false
}

// statusOverloaded is what some providers say instead of 503.
const statusOverloaded = 529

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
