package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/canon"
	"github.com/quorlease/quorlease/client/gateway/charge"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/coalesce"
	"github.com/quorlease/quorlease/client/gateway/estimate"
	"github.com/quorlease/quorlease/client/gateway/fallback"
	"github.com/quorlease/quorlease/client/gateway/internal/address"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/replay"
	"github.com/quorlease/quorlease/client/gateway/told"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/client/names"
	"github.com/quorlease/quorlease/fsm/retry"
)

// Config says what a gateway stands in front of. Authority, Who and at least one
// Deployment are needed.
type Config struct {
	// Authority decides. *client.Client is one.
	Authority Authority
	// Who knows who asks.
	Who *who.Book
	// Deployments are where requests go, at most 256. The first one that has the request's
	// route and names its model takes it, or else the first that has the route and names
	// no model. What is no work for a model goes to the first of all.
	Deployments []Deployment
	// Classes say how long requests wait, at most 64. One that is not among them waits like
	// the first. Default: one without a name, with the defaults of Class.
	Classes []Class

	// Tries is how often one request is sent to a provider at most, 1 to 10. Default 3 (S2-19).
	Tries int
	// RetryTokens pay for each further try to a deployment, and its successes refund them (S3-25).
	// Default: 500, a try costs 5, a success gives back 1, and one try a second is free.
	RetryTokens retry.TokenRule
	// Pauses is how long to wait before a further try of what the provider gave no hint for.
	// Default: from a second to a minute, doubling (S3-30).
	Pauses provider.Schedule
	// Fallback bounds what of a day's money goes to fallbacks. Default: a tenth.
	Fallback fallback.Bound
	// BodyMax is the largest body that is taken, in bytes, 1 KiB to 1 GiB. Default 32 MiB.
	// It is held until an answer begins.
	BodyMax int64
	// BodiesMax is how much all of these may hold together, at least BodyMax. Default 256 MiB.
	// Beyond it requests are refused, with 503.
	BodiesMax int64
	// BodiesClientMax is how much those of one client may hold together, BodyMax to BodiesMax.
	// Default: a quarter of BodiesMax, or BodyMax where that is more. Beyond it requests of that
	// client are refused, with 429.
	BodiesClientMax int64

	// Attempts, Hashes, Circuits, Shared, Estimates, Charges and Told configure the parts.
	// Their zero values are ready; what joins them is set here.
	Attempts  attempt.Config
	Hashes    canon.Config
	Circuits  circuit.Config
	Shared    coalesce.Config
	Estimates estimate.Options
	Charges   charge.Config
	Told      told.Config
	// Probes names the limit whose slots say which gateway probes a circuit (told.Prober).
	// Empty: each gateway probes for itself.
	Probes string
	// Markers are the headers that count attempts. Nil: attempt.Markers().
	Markers []attempt.Marker
	// NoSharing: equal requests in flight are each sent. A single request asks for that
	// with the header "x-coalesce: false".
	NoSharing bool
	// Replays says which answers of requests with an idempotency key are kept, and who has to have
	// one. The zero value is ready.
	Replays replay.Config
	// Shadow: every request is forwarded as it came, once and at once, and what would have become
	// of it is reported (Gateway.Shadow).
	Shadow bool

	// Transport sends to providers. Default: one that keeps connections, waits 10 s for one
	// and is not compressed.
	Transport http.RoundTripper
	// Draw is the source of chance, rand.Int64N by default.
	Draw func(n int64) int64
	// Logger gets what a person has to know: a spend cap, a client whose SDK retries.
	// Default: slog.Default().
	Logger *slog.Logger
}

// Deployment is an account with a provider, for some models.
type Deployment struct {
	// Name is what limits and circuits call it: 1 to 63 of a-z, 0-9, '_', '.', '-'.
	Name string
	// Provider is how it answers.
	Provider *provider.Table
	// Upstream is where it is: scheme, host, and what stands before each path.
	Upstream *url.URL
	// Models are those that go here, at most 1,024; in a path, the names of deployments.
	// Empty: all that no other takes.
	Models []string
	// Key is the secret that the provider wants. Empty: what the client has sent stays.
	Key string
	// Header has this in every request, such as a version or an organization.
	Header http.Header
	// PerMinute are the limits that it is configured with, by dimension (provider.Tokens and
	// so on), so that a provider that lowers one is noticed. May be empty.
	PerMinute map[string]int64
	// OutputMax is the most that a model of it puts out, in tokens, for providers that
	// assume as much where a request does not say. 0: not known.
	OutputMax int64
	// Attributes are said to the authority of each request beside the gateway's own (S3-16).
	Attributes map[string]string
	// NoUsage: it is not asked to report what a stream used where the client had not asked.
	// For what speaks as OpenAI does and does not know stream_options.
	NoUsage bool
	// Fallback is what it costs, and who stands in for it.
	Fallback fallback.Model
}

// Class is a priority class as limits know it.
type Class struct {
	Name string
	// MaxWait is how long a request may wait in all, in the authority's queue and between
	// tries, up to 1 h. Default 30 s. -1: not at all.
	MaxWait time.Duration
	// Closed is what becomes of it while a circuit is open: shed or deferred, the latter for
	// as long as MaxWait allows (S2-15). Default circuit.Shed.
	Closed circuit.Action
	// Manner is how it goes about refusals (S2-33). With fallback.Defer Closed is circuit.Defer.
	Manner fallback.Manner
}

// Bounds of the configuration.
const (
	deploymentsMax = 256
	modelsMax      = 1024
	classesMax     = 64
	triesDefault   = 3
	triesMax       = 10
	bodyMin        = 1 << 10
	bodyDefault    = 32 << 20
	bodyMax        = 1 << 30
	bodiesDefault  = 256 << 20
	// bodiesShare is which part of it one client may have.
	bodiesShare = 4
	waitDefault = 30 * time.Second
	waitMax     = time.Hour
)

// check fills in the defaults and names everything that is wrong.
func (c *Config) check() error {
	var wrong []error
	bad := func(field, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("gateway %s: %s", field, fmt.Sprintf(format, args...)))
	}
	if c.Authority == nil {
		bad("authority", "is missing")
	}
	if c.Who == nil {
		bad("who", "is missing")
	}
	if err := c.Replays.Check(); err != nil {
		bad("idempotency", "%v", err)
	}
	c.checkBounds(bad)
	c.checkDeployments(bad)
	c.checkClasses(bad)
	return errors.Join(wrong...)
}

func (c *Config) checkBounds(bad func(string, string, ...any)) {
	if c.Tries == 0 {
		c.Tries = triesDefault
	}
	if c.Tries < 1 || c.Tries > triesMax {
		bad("tries", "%d is out of range 1..%d", c.Tries, triesMax)
	}
	if c.RetryTokens == (retry.TokenRule{}) {
		c.RetryTokens = retry.TokenRule{Cap: 500, Cost: 5, Refund: 1, MinRetries: 1, MinInterval: time.Second}
	}
	if err := c.RetryTokens.Validate(); err != nil {
		bad("retry_tokens", "%v", err)
	}
	if err := c.Fallback.Validate(); err != nil {
		bad("fallback", "%v", err)
	}
	if err := c.Pauses.Validate(); err != nil {
		bad("pauses", "%v", err)
	}
	if c.BodyMax == 0 {
		c.BodyMax = bodyDefault
	}
	if c.BodyMax < bodyMin || c.BodyMax > bodyMax {
		bad("body_max", "%d is out of range %d..%d", c.BodyMax, int64(bodyMin), int64(bodyMax))
	}
	if c.BodiesMax == 0 {
		c.BodiesMax = max(bodiesDefault, c.BodyMax)
	}
	if c.BodiesMax < c.BodyMax {
		bad("bodies_max", "%d is less than body_max, %d", c.BodiesMax, c.BodyMax)
	}
	if c.BodiesClientMax == 0 {
		c.BodiesClientMax = max(c.BodiesMax/bodiesShare, c.BodyMax)
	}
	if c.BodiesClientMax < c.BodyMax || c.BodiesClientMax > max(c.BodiesMax, c.BodyMax) {
		bad("bodies_client_max", "%d is out of range body_max, %d, to bodies_max, %d",
			c.BodiesClientMax, c.BodyMax, c.BodiesMax)
	}
}

func (c *Config) checkDeployments(bad func(string, string, ...any)) {
	if n := len(c.Deployments); n == 0 || n > deploymentsMax {
		bad("deployments", "%d are out of range 1..%d", n, deploymentsMax)
	}
	seen := map[string]bool{}
	for i := range c.Deployments {
		d := &c.Deployments[i]
		d.check(fmt.Sprintf("deployments[%d]", i), bad)
		if seen[d.Name] {
			bad(fmt.Sprintf("deployments[%d].name", i), "%q is there twice", d.Name)
		}
		seen[d.Name] = true
	}
	c.CheckFallbacks(bad)
}

// CheckFallbacks names what is wrong with the prices and fallbacks of Deployments, each with
// its place.
func (c *Config) CheckFallbacks(bad func(at, format string, args ...any)) {
	var rows []fallback.Row
	for i := range c.Deployments {
		d := &c.Deployments[i]
		rows = append(rows, fallback.Row{Name: d.Name, Provider: d.Provider, OutputMax: d.OutputMax, Model: &d.Fallback})
	}
	fallback.Check(rows, bad)
}

func (d *Deployment) check(at string, bad func(string, string, ...any)) {
	if problem := names.LimitProblem(d.Name); problem != "" {
		bad(at+".name", "%s", problem)
	}
	if d.Provider == nil {
		bad(at+".provider", "is missing")
	}
	if problem := address.Problem(d.Upstream); problem != "" {
		bad(at+".upstream", "%s", problem)
	}
	if len(d.Models) > modelsMax {
		bad(at+".models", "%d are more than %d", len(d.Models), modelsMax)
	}
	if d.OutputMax < 0 || d.OutputMax > estimate.CountMax {
		bad(at+".output_max", "%d is out of range 0..%d", d.OutputMax, int64(estimate.CountMax))
	}
	if strings.ContainsAny(d.Key, "\r\n\x00") {
		bad(at+".key", "has characters that no header may have")
	}
	for name := range d.Attributes {
		if slices.Contains(ownAttributes, name) {
			bad(at+".attributes", "%q is the gateway's own", name)
		}
	}
}

func (c *Config) checkClasses(bad func(string, string, ...any)) {
	if len(c.Classes) == 0 {
		c.Classes = []Class{{}}
	}
	if n := len(c.Classes); n > classesMax {
		bad("classes", "%d are more than %d", n, classesMax)
	}
	// The caller's array stays as it is.
	c.Classes = slices.Clone(c.Classes)
	seen := map[string]bool{}
	for i := range c.Classes {
		class := &c.Classes[i]
		at := fmt.Sprintf("classes[%d]", i)
		if seen[class.Name] {
			bad(at+".name", "%q is there twice", class.Name)
		}
		seen[class.Name] = true
		switch {
		case class.MaxWait == 0:
			class.MaxWait = waitDefault
		case class.MaxWait == -1:
			class.MaxWait = 0
		case class.MaxWait < 0 || class.MaxWait > waitMax:
			bad(at+".max_wait", "%s is out of range 0s..%s", class.MaxWait, waitMax)
		}
		if class.Closed > circuit.Defer {
			bad(at+".closed", "can only be shed or defer")
		}
		if err := class.Manner.Validate(); err != nil {
			bad(at, "%v", err)
		}
		if class.Manner.Mode == fallback.Defer {
			class.Closed = circuit.Defer
		}
	}
}
