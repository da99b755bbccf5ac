package front

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/bench/stat"
)

// Timed is what one side came to in one round.
type Timed struct {
	// PerSecond are answers, P50 and P99 latencies in ms; of paced calls they count from
	// the intended start.
	PerSecond float64 `json:"per_second"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	// CPU is the processor time of who answers for one call, in us. Nil: not known.
	CPU *float64 `json:"cpu_us"`
	// Answers are how many there were, and Granted those that said yes.
	Answers int64 `json:"answers"`
	Granted int64 `json:"granted"`
}

// The sides of a round, by their slugs.
const (
	proxied, fronted, slotted, committed = "proxy", "gateway", "slots", "commit"
	busyProxied, busyFronted             = "proxy-busy", "gateway-busy"
)

// sides are in the order in which they are measured; every other round goes backwards.
var sides = []string{proxied, fronted, slotted, committed, busyProxied, busyFronted}

// Round is what each side came to, by its slug: calls that come paced through a bare
// proxy (proxy), through the gateway paid from what it holds (gateway) and with a slot of
// the nodes each (slots), through the bare proxy by callers that take such a slot
// themselves before (commit), and calls that come as fast as they can through the former
// two.
type Round map[string]Timed

// cost measures all sides, round by round.
func (p *place) cost(ctx context.Context) (rounds []Round, err error) {
	c := p.config
	order := slices.Clone(sides)
	for n := range c.Rounds {
		round := Round{}
		for _, name := range order {
			if round[name], err = p.side(ctx, name); err != nil {
				return nil, fmt.Errorf("round %d: %s: %w", n+1, name, err)
			}
		}
		rounds = append(rounds, round)
		c.say("round %d of %d: p50 and p99: proxy %.2f and %.2f ms, gateway %.2f and %.2f ms", n+1, c.Rounds,
			round[proxied].P50, round[proxied].P99, round[fronted].P50, round[fronted].P99)
		slices.Reverse(order)
	}
	return rounds, nil
}

// side measures one.
func (p *place) side(ctx context.Context, name string) (Timed, error) {
	paced := p.config.Paced
	switch name {
	case proxied:
		return p.through(ctx, p.bare(), paced)
	case fronted:
		return p.through(ctx, p.front(plain), paced)
	case slotted:
		return p.through(ctx, p.front(slots), paced)
	case busyProxied:
		return p.through(ctx, p.bare(), 0)
	case busyFronted:
		return p.through(ctx, p.front(plain), 0)
	default:
		return p.committed(ctx, paced)
	}
}

// openAI is what every request for OpenAI's models has.
const openAI = "Authorization: Bearer sk-none\r\n"

// clients is how many there are behind the gateway.
const clients = 8

// front is the gateway, asked for a model.
func (p *place) front(model string) *door {
	return &door{
		address: p.programs, path: "/v1/chat/completions", header: openAI, client: "program-", clients: clients,
		body: chat(model), timeout: p.config.Timeout, cpu: p.gateway.CPU,
	}
}

// bare is the proxy.
func (p *place) bare() *door {
	d := p.front(plain)
	d.address, d.cpu = p.proxy.Address(), p.proxy.CPU
	return d
}

// through measures calls through a door, all of which have to be let through.
func (p *place) through(ctx context.Context, d *door, rate float64) (Timed, error) {
	defer d.close()
	t, err := p.config.measure(ctx, d, p.config.Callers, rate)
	if err == nil && t.Granted < t.Answers {
		err = fmt.Errorf("%d of %d were refused, with more than enough for all", t.Answers-t.Granted, t.Answers)
	}
	return t, err
}

// failedMost is how many of its questions a side may leave unanswered for its figures to
// say something, as a part.
const failedMost = 0.001

// errSilent: there is nothing to be seen.
var errSilent = errors.New("nobody was answered")

// load is how a side is loaded; rate 0: callers ask again at once.
func (c *Config) load(callers int, rate float64) load.Config {
	return load.Config{
		Callers: callers, Keys: 1, Distribution: stat.Uniform, Rate: rate, Arrivals: stat.Poisson,
		Timeout: c.Timeout, Seed: c.Seed, Warmup: c.Warmup, Length: c.Length, OnTime: load.KeepTime,
		Reason: reason,
	}
}

// measure loads a side.
func (c *Config) measure(ctx context.Context, s load.Side, callers int, rate float64) (Timed, error) {
	config := c.load(callers, rate)
	m, err := load.Run(ctx, &config, s)
	if err != nil {
		return Timed{}, err
	}
	return timed(m, config.Length)
}

// timed sums a load up.
func timed(m *load.Measured, length time.Duration) (Timed, error) {
	answers := m.Granted + m.Denied
	if float64(m.Failed) > failedMost*float64(answers) {
		var why []string
		for what, n := range m.Failures {
			why = append(why, fmt.Sprintf("%d %s", n, what))
		}
		slices.Sort(why)
		return Timed{}, fmt.Errorf("%d of %d calls failed: %s", m.Failed, m.Failed+answers, strings.Join(why, ", "))
	}
	if answers == 0 {
		return Timed{}, errSilent
	}
	t := Timed{
		PerSecond: float64(answers) / length.Seconds(), Answers: answers, Granted: m.Granted,
		P50: ms(m.Latencies.At(50)), P99: ms(m.Latencies.At(99)),
	}
	if m.CPU != nil {
		each := float64(m.CPU.Nanoseconds()) / 1000 / float64(answers)
		t.CPU = &each
	}
	return t, nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (c *Config) say(format string, values ...any) {
	if c.Progress != nil {
		fmt.Fprintf(c.Progress, format+"\n", values...)
	}
}
