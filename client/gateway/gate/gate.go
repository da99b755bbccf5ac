package gate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/canon"
	"github.com/quorlease/quorlease/client/gateway/charge"
	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/client/session"
)

// Identifier says who asks, or why that is refused. *who.Book is one. A service that knows
// its callers already has one of its own: the request's context is that of the call. Of a
// gRPC call the request has the metadata as its header, the method as its path, and no
// body.
type Identifier interface {
	Identify(r *http.Request) (who.Identity, *refuse.Refusal)
}

// Config says who may call, and what a call is charged. Authority and Who are needed.
type Config struct {
	// Authority decides. *client.Client is one. It is closed after the gate.
	Authority charge.Authority
	// Who knows who calls.
	Who Identifier
	// Price says what a call is. It is asked once a call, by many at once, and waits for
	// nothing. Nil: a call is its client and its tenant.
	Price func(ctx context.Context, c *Call) Price
	// Free says which methods of gRPC's pass without a question, such as those for health: nobody
	// has to say who it is. Nil: none.
	Free func(method string) bool
	// BodyMax is how much of an HTTP request's body is held, to know it again when it comes
	// again, 1 byte to 64 MiB. Default 1 MiB; larger ones are known by their ids only.
	BodyMax int64
	// BodiesMax is how many bytes of bodies are held at once, by all HTTP requests together until
	// they are answered, BodyMax to 64 GiB. Default 64 MiB; a body for which there is no room is
	// passed on as it comes, and known by its ids only. One of unknown length needs room for
	// BodyMax until it was read.
	BodiesMax int64

	// Attempts, Hashes and Charges configure the parts. Their zero values are ready.
	Attempts attempt.Config
	Hashes   canon.Config
	Charges  charge.Config
	// Markers are the headers, or metadata, that count attempts. Nil: attempt.Markers().
	Markers []attempt.Marker
	// Draw is the source of chance, rand.Int64N by default.
	Draw refuse.Draw
}

// Call is a call that is being decided about.
type Call struct {
	// Who calls.
	Who who.Identity
	// Method is gRPC's, "/package.Service/Method", or HTTP's, such as "POST".
	Method string
	// Attempt is how many retries were made before it, 0 first.
	Attempt uint32
	// Message is the one request of a gRPC call, nil where it sends a stream of them or is
	// none of gRPC's.
	Message any
	// Request is the HTTP request, nil where it is none. Its body is not to be read here.
	Request *http.Request
}

// Price is what a call is charged.
type Price struct {
	// Attributes say what it is beside "client" and "tenant", and so which limits it is
	// charged (client.Request).
	Attributes map[string]string
	// Amounts are tokens by dimension, each 1 to 2^53. Of one that is not named it is 1.
	Amounts map[string]int64
	// MaxWait is how long it may wait in the authority's queue, up to 1 h. 0: not at all.
	MaxWait time.Duration
}

const (
	bodyDefault = 1 << 20
	bodyMax     = 64 << 20

	bodiesDefault = 64 << 20
	bodiesMax     = 64 << 30
	// hurryMax is how long is asked although the caller has less time: with a deadline that
	// is shorter than any answer he would have every call decided without the authority.
	hurryMax = 100 * time.Millisecond
)

// Gate decides about calls. It is safe for concurrent use. Make one with New.
type Gate struct {
	config   Config
	began    time.Time
	markers  *attempt.Reader
	attempts *attempt.Table
	hasher   *canon.Hasher
	desk     *charge.Desk
	// unlike numbers what is like nothing before.
	unlike                     atomic.Uint64
	passed, refused, unlimited atomic.Uint64
	// bodies is how many bytes of them are held.
	bodies atomic.Int64
}

// Stats are what a gate has done since it was made.
type Stats struct {
	// Passed and Refused count calls; Unlimited those that no limit fits, which pass.
	Passed, Refused, Unlimited uint64

	Attempts attempt.Stats
	Charges  charge.Stats
}

// New returns a gate. The error names everything that is wrong with the configuration.
func New(c Config) (*Gate, error) {
	if c.BodyMax == 0 {
		c.BodyMax = bodyDefault
	}
	if c.BodiesMax == 0 {
		c.BodiesMax = bodiesDefault
	}
	var problems []error
	if c.Authority == nil {
		problems = append(problems, errors.New("authority: missing"))
	}
	if c.Who == nil {
		problems = append(problems, errors.New("who: missing"))
	}
	if c.BodyMax < 1 || c.BodyMax > bodyMax {
		problems = append(problems, fmt.Errorf("body max: %d, 1 to %d", c.BodyMax, int64(bodyMax)))
	}
	if c.BodiesMax < c.BodyMax || c.BodiesMax > bodiesMax {
		problems = append(problems,
			fmt.Errorf("bodies max: %d, %d (body max) to %d", c.BodiesMax, c.BodyMax, int64(bodiesMax)))
	}
	if c.Draw == nil {
		c.Draw = rand.Int64N
	}
	g := &Gate{config: c, began: time.Now()}
	var err error
	if g.markers, err = attempt.NewReader(c.Markers); err != nil {
		problems = append(problems, err)
	}
	if g.attempts, err = attempt.NewTable(c.Attempts); err != nil {
		problems = append(problems, err)
	}
	if g.hasher, err = canon.New(c.Hashes); err != nil {
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		c.Charges.Authority = c.Authority
		if g.desk, err = charge.New(c.Charges); err != nil {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("gate configuration: %w", err)
	}
	return g, nil
}

// Close gives back what is held, settles what was used, and joins every goroutine. Calls that
// come later are refused. It is idempotent.
func (g *Gate) Close() error { return g.desk.Close() }

// Stats are the figures now.
func (g *Gate) Stats() Stats {
	return Stats{
		Passed: g.passed.Load(), Refused: g.refused.Load(), Unlimited: g.unlimited.Load(),
		Attempts: g.attempts.Stats(), Charges: g.desk.Stats(),
	}
}

func (g *Gate) now() time.Duration { return time.Since(g.began) }

// other is the work of a call that is like none before.
func (g *Gate) other() canon.Sum {
	n := g.unlike.Add(1)
	return g.hasher.Join(canon.Sum{}, "unlike", fmt.Sprint(n))
}

// admit decides about a call of somebody who is known. work is a hash of what it asks for. The
// refusal is nil where it passes, and then end has to be called for what it returns.
func (g *Gate) admit(ctx context.Context, c *Call, h http.Header, work canon.Sum) (*Admitted, *refuse.Refusal) {
	a := &Admitted{Who: c.Who, gate: g}
	a.call = g.attempts.Begin(g.now(), &attempt.Request{
		Client: c.Who.Client, Deployment: c.Method, Work: work,
		IDs: attempt.ReadIDs(g.hasher, h), Declared: g.markers.Read(h),
	})
	// What panics on the way has failed.
	outcome, passed := attempt.Failed, false
	defer func() {
		if !passed {
			a.call.End(g.now(), outcome)
		}
	}()
	a.Attempt = a.call.Attempt
	c.Attempt = a.call.Attempt
	var price Price
	if g.config.Price != nil {
		price = g.config.Price(ctx, c)
	}
	no := g.charge(ctx, a, price)
	if no == nil {
		g.passed.Add(1)
		passed = true
		return a, nil
	}
	outcome = attempt.OutcomeOf(no.Reason.Status())
	switch {
	case no.Reason == refuse.RetryBudget || no.Reason == refuse.Attempts:
		outcome, no.Client = attempt.Refused, c.Who.Client
	case ctx.Err() != nil:
		outcome = attempt.Canceled
	}
	return nil, no
}

// charge asks the retry budget and the limits.
func (g *Gate) charge(ctx context.Context, a *Admitted, price Price) *refuse.Refusal {
	work := charge.Work{
		Client: a.Who.Client, Class: a.Who.Class, Attempt: a.call.Ceiling,
		Attributes: map[string]string{}, Amounts: price.Amounts, MaxWait: price.MaxWait,
	}
	maps.Copy(work.Attributes, price.Attributes)
	work.Attributes["client"], work.Attributes["tenant"] = a.Who.Client, a.Who.Tenant
	asking, stop := patient(ctx)
	defer stop()
	held, decision, err := g.desk.Take(asking, work)
	var bad *client.BadRequestError
	switch {
	case session.Reason(err) == "LIMIT_NOT_FOUND":
		g.unlimited.Add(1)
		return g.budget(&work)
	case errors.As(err, &bad):
		return &refuse.Refusal{Reason: refuse.Malformed, Param: bad.Field, Detail: bad.Error()}
	case err != nil:
		return &refuse.Refusal{Reason: refuse.Undecided}
	case held == nil:
		no := refuse.Denied(decision)
		return &no
	case ctx.Err() != nil:
		// Callers who leave no time must not hold slots until their leases end.
		held.Release()
		return &refuse.Refusal{Reason: refuse.Undecided}
	}
	a.Decision, a.charge = decision, held
	return nil
}

// patient is the context in which is asked. A caller who has gone is asked for no longer.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	if !bounded || time.Until(deadline) >= hurryMax {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), hurryMax)
}

// budget is the retry budget alone, for what no limit fits.
func (g *Gate) budget(work *charge.Work) *refuse.Refusal {
	verdict := g.config.Authority.TriesOf(work.Client).Permit(work.Attempt)
	switch {
	case verdict.Admit:
		return nil
	case verdict.Never:
		return &refuse.Refusal{Reason: refuse.Attempts}
	default:
		return &refuse.Refusal{Reason: refuse.RetryBudget}
	}
}
