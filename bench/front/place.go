package front

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/upstream"
)

const (
	nodes = 3
	// readyWait is how long everything may take to be ready.
	readyWait = time.Minute
	// looked is how long lies between two looks at what is not ready.
	looked = 20 * time.Millisecond
)

// What is asked for: a model of each is a deployment with limits of its own.
const (
	// plain is paid from what the gateway holds, slots takes a slot of the nodes for each
	// call, and sized is short.
	plain, slots, sized = "plain", "slots", "sized"
)

// The limit that is short, in tokens of input: what the provider lets in a second, and
// the part that is handed out.
const (
	sizedRate   = 200_000
	sizedTarget = "96%"
	// sizedBurst is how much time's worth the provider's bucket holds, of which the limit
	// gives half at once.
	sizedBurst = time.Second
)

var limits = fmt.Sprintf(`
limits:
- {name: %[1]s, match: {deployment: %[1]s}, per: [deployment],
   rate: {requests: 1_000_000/s, tokens: 1_000_000_000/s}, burst: {requests: 1_000_000, tokens: 1_000_000_000}}
- {name: %[2]s, match: {deployment: %[2]s}, per: [deployment], concurrency: 10_000}
- {name: %[3]s, match: {deployment: %[3]s}, per: [deployment], target: %[4]s,
   rate: {input_tokens: %[5]d/s}, burst: {input_tokens: %[6]d}}
retry_budgets: [{name: everybody, match: {client: "*"}}]
`, plain, slots, sized, sizedTarget, sizedRate, sizedRate/2)

// place is three nodes, a provider that answers at once, another one that is short, and
// a gateway and a bare proxy in front of them.
type place struct {
	config *Config
	nodes  *bench.Nodes
	// short is the provider whose limit is used up.
	short         *upstream.Server
	clock         upstream.Clock
	fast, limited *upstream.Listening
	gateway       *bench.Gateway
	// programs and admin are where the gateway listens.
	programs, admin string
	proxy           *bench.Child
}

// open starts everything and waits until it is ready.
func open(ctx context.Context, c *Config) (p *place, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	p = &place{config: c, clock: upstream.Speed(1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
			p = nil
		}
	}()
	if p.nodes, err = bench.StartNodes(bench.NodesConfig{
		Binary: c.Binary, Dir: c.Dir, Count: nodes, Log: c.Log,
	}); err != nil {
		return p, err
	}
	if err := p.providers(); err != nil {
		return p, err
	}
	if err := p.limit(ctx); err != nil {
		return p, err
	}
	log := c.Log
	if p.proxy, err = bench.StartChild(log, c.Binary, "bench", "proxy-server", p.fast.URL); err != nil {
		return p, err
	}
	return p, p.stand(ctx)
}

// providers listen.
func (p *place) providers() (err error) {
	// What has been answered is nobody's business.
	fast, err := upstream.New(upstream.Config{
		API: upstream.OpenAI, Clock: p.clock, Start: time.Now(), OutputTokens: 8, LedgerMax: 1,
	})
	if err != nil {
		return err
	}
	if p.fast, err = upstream.Listen(fast); err != nil {
		return err
	}
	rules := upstream.Usual(upstream.Anthropic, provider.Limits{Input: sizedRate * 60})
	rules.Options.Capacity = sizedBurst
	if p.short, err = upstream.New(upstream.Config{
		API: upstream.Anthropic, Rules: rules, Clock: p.clock, Start: time.Now(), OutputTokens: 8, LedgerMax: 1e6,
		Latency: shortLatency,
	}); err != nil {
		return err
	}
	p.limited, err = upstream.Listen(p.short)
	return err
}

// limit waits for the nodes and applies the limits.
func (p *place) limit(ctx context.Context) error {
	if err := p.nodes.Healthy(ctx); err != nil {
		return err
	}
	request, err := limitsfile.Parse([]byte(limits))
	if err != nil {
		return fmt.Errorf("read the limits: %w", err)
	}
	conn, err := p.nodes.Conn(0)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := quorleasev1.NewLimitsClient(conn)
	if err := until(ctx, func() (bool, error) {
		// On a busy machine there may be an election; the same limits again are no change.
		_, err := client.Apply(ctx, request)
		if err != nil && bench.MayHaveHappened(err) {
			return false, nil
		}
		return true, err
	}); err != nil {
		return fmt.Errorf("apply the limits: %w", err)
	}
	// A node that has not heard of a limit finds none that fits.
	_, _, err = p.nodes.SameState(ctx)
	return err
}

// endpoints are the nodes.
func (p *place) endpoints() (all []string) {
	for i := range p.nodes.Len() {
		all = append(all, p.nodes.GRPC(i))
	}
	return all
}

// stand starts the gateway and waits until it is ready.
func (p *place) stand(ctx context.Context) error {
	// Equal bodies in flight would be one call.
	text := fmt.Sprintf(`coalesce: false
deployments:
- {name: %[1]s, provider: openai, upstream: %[2]q, models: [%[1]s]}
- {name: %[3]s, provider: openai, upstream: %[2]q, models: [%[3]s]}
- {name: %[4]s, provider: anthropic, upstream: %[5]q, models: [%[4]s]}
`, plain, p.fast.URL, slots, sized, p.limited.URL)
	gateway, err := bench.StartGateway(bench.GatewayConfig{
		Binary: p.config.Binary, Name: "gateway", Dir: p.config.Dir, Text: text, Endpoints: p.endpoints(), Log: p.config.Log,
	})
	if err != nil {
		return err
	}
	p.gateway = gateway
	if err := gateway.Listening(ctx); err != nil {
		return err
	}
	p.programs, p.admin = gateway.Address(), gateway.Admin()
	if err := until(ctx, func() (bool, error) {
		select {
		case <-p.gateway.Ended():
			return false, errors.New("it has ended before it was ready")
		default:
			return p.ready(ctx), nil
		}
	}); err != nil {
		return fmt.Errorf("wait for the gateway: %w", err)
	}
	return nil
}

// until waits until something holds, or an error.
func until(ctx context.Context, holds func() (bool, error)) error {
	tick := time.NewTicker(looked)
	defer tick.Stop()
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ready says whether the gateway may be asked.
func (p *place) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.admin+"/readyz", nil)
	if err != nil {
		return false
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// close ends everything, in the order in which one asks the other.
func (p *place) close() error {
	var errs []error
	if p.gateway != nil {
		p.gateway.Kill()
	}
	if p.proxy != nil {
		errs = append(errs, p.proxy.Close())
	}
	for _, listening := range []*upstream.Listening{p.fast, p.limited} {
		if listening != nil {
			errs = append(errs, listening.Close())
		}
	}
	if p.nodes != nil {
		errs = append(errs, p.nodes.Close())
	}
	return errors.Join(errs...)
}
