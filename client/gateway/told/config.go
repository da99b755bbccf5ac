package told

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/quorlease/quorlease/client/feedback"
	"github.com/quorlease/quorlease/client/gateway/internal/bound"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/names"
)

// Feedbacker tells the authority what providers answered, at most 64 answers at once, all
// or none, and returns what became of each. *client.Client is one.
type Feedbacker interface {
	Feedback(ctx context.Context, answers ...feedback.Answer) ([]feedback.Controlled, error)
}

// Config says what is told, and how often. Only Authority is needed.
type Config struct {
	Authority Feedbacker
	// Queue is how many answers wait or are remembered at once, 64 to 2^20. Default 4,096.
	// Beyond it the oldest headers go first, then the oldest refusals; spend caps last.
	Queue int
	// Batch is how many answers are told in one report, 1 to 64. Default 64. It is less for
	// a while where so many buckets hear of them that the authority refuses the report.
	Batch int
	// HeadersGap is the least time between two reports of the headers about the same work,
	// 10 ms to 1 min. Default 250 ms.
	HeadersGap time.Duration
	// Moment is the least time between two reports of equal refusals, 100 ms to 1 min.
	// Default 1 s: sooner the authority lowers nothing a second time.
	Moment time.Duration
	// Keep is for how long a refusal is worth telling that could not be told, 1 s to 1 h, or
	// until its wait is over, if that is later. Default 10 s. Spend caps always are, headers
	// for 2 s.
	Keep time.Duration

	// LeastPause is the shortest time for which the authority closes something that circuits
	// hear of, 1 ms to 1 h. Default 5 s. What passes sooner is waited out in the authority's
	// queue, while an open circuit would refuse it.
	LeastPause time.Duration
	// Keys is how many circuits are remembered that others have closed, 16 to 2^20. Default
	// 16,384. Beyond it what is closed is found out by asking.
	Keys int
	// Circuits names the limit that hears of tenants' circuits: one that is per tenant and
	// deployment, in this order, such as that of what each tenant may use of it. Empty:
	// they are told to nobody. By its attributes a limit of the whole deployment would hear
	// of it, and one tenant's circuit would stop all tenants (S2-16).
	Circuits string
	// Deployments names the limit, per deployment, that hears of deployments' circuits. Empty:
	// they are told to nobody.
	Deployments string

	// OnSpendCap hears of each incident once, when it is known whether the authority has
	// taken it: who is called twice is called once too often. OnCleared hears of its end.
	// Both are called one after the other from one goroutine, and must not block:
	// alert.Notifier's Notify does not. Nil: nobody, beside Logger.
	OnSpendCap, OnCleared func(SpendCap)
	// Recheck is how often the authority is asked whether a spend cap was cleared, 1 s to
	// 1 h. Default 10 s.
	Recheck time.Duration

	// Logger gets spend caps, answers that the authority refuses, and that reports fail,
	// each once. Nil: nobody.
	Logger *slog.Logger
	// Now is the time. Default time.Now. What a Teller is given as time is not used.
	Now func() time.Time
	// CloseWithin is how long Close goes on telling, up to 1 min. Default 2 s.
	CloseWithin time.Duration
}

// batchMax is what one report may have.
const batchMax = 64

func (c *Config) defaults() {
	bound.Default(&c.Queue, 4096)
	bound.Default(&c.Batch, batchMax)
	bound.Default(&c.HeadersGap, 250*time.Millisecond)
	bound.Default(&c.Moment, time.Second)
	bound.Default(&c.Keep, 10*time.Second)
	bound.Default(&c.LeastPause, 5*time.Second)
	bound.Default(&c.Keys, 16_384)
	bound.Default(&c.Recheck, 10*time.Second)
	bound.Default(&c.CloseWithin, 2*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.OnSpendCap == nil {
		c.OnSpendCap = func(SpendCap) {}
	}
	if c.OnCleared == nil {
		c.OnCleared = func(SpendCap) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

func (c *Config) validate() error {
	problems := []error{
		bound.Within("queue", c.Queue, batchMax, 1<<20),
		bound.Within("batch", c.Batch, 1, batchMax),
		bound.Within("headers gap", c.HeadersGap, 10*time.Millisecond, time.Minute),
		bound.Within("moment", c.Moment, 100*time.Millisecond, time.Minute),
		bound.Within("keep", c.Keep, time.Second, time.Hour),
		bound.Within("least pause", c.LeastPause, time.Millisecond, time.Hour),
		bound.Within("keys", c.Keys, 16, 1<<20),
		limit("circuits", c.Circuits),
		limit("deployments", c.Deployments),
		bound.Within("recheck", c.Recheck, time.Second, time.Hour),
		bound.Within("close within", c.CloseWithin, time.Millisecond, time.Minute),
	}
	if c.Authority == nil {
		problems = append(problems, errors.New("authority: missing"))
	}
	if c.Circuits != "" && c.Circuits == c.Deployments {
		problems = append(problems, fmt.Errorf("deployments: %q is that of circuits, whose keys are others", c.Circuits))
	}
	return errors.Join(problems...)
}

func limit(name, value string) error {
	if value == "" {
		return nil
	}
	if problem := names.LimitProblem(value); problem != "" {
		return fmt.Errorf("%s: %s", name, problem)
	}
	return nil
}

// About is the work that was answered.
type About struct {
	// Tenant and Deployment name the circuits.
	Tenant, Deployment string
	// Attributes are those of the work's acquire: every limit hears that they fit and that
	// stands for a provider. The authority takes this client's name for that of the work
	// unless "client" is among them, and no class unless "class" is.
	// Empty: tenant and deployment.
	Attributes map[string]string
	// Limit and Key name what the work was charged to, instead of Attributes.
	Limit, Key string
}

// Stats are what a Teller has done since it was made, and what it holds.
type Stats struct {
	// Told counts answers that were told, in Reports reports, and Asked what was only told to
	// hear what is closed. Failed counts reports that were not answered.
	Told, Asked, Reports, Failed uint64
	// Merged counts answers that were told by a report about an equal one, and notices of
	// what is closed for long enough already.
	Merged uint64
	// Stale counts answers that were over before they could be told, Lost answers for which
	// there was no room, Refused those that the authority does not take.
	Stale, Lost, Refused uint64
	// Unheard counts answers of which nobody at the authority heard: no limit with a target
	// or that is adaptive fits the work.
	Unheard uint64
	// Learned counts news that circuits got.
	Learned uint64
	// Waiting is how many answers wait, and Capped how many spend caps are not cleared.
	Waiting, Capped int
}

// SpendCap is an incident: a provider has said that money is used up. No waiting helps.
type SpendCap struct {
	Deployment string
	// Reason is the provider's own word, at most 256 bytes. It may be empty.
	Reason string
	// Tenant is for whom the work was that was told first.
	Tenant string
	// Scope is whom the provider says it is about, empty where it does not say.
	Scope provider.Scope
	// Resumes is the day on which it ends by itself, where the answer names one.
	Resumes time.Time
	// Blocked: the authority refuses such work until a person clears it, and alerts by
	// itself, once over all gateways. Otherwise nobody else does.
	Blocked bool
}
