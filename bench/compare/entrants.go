package compare

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/bench/bare"
	"github.com/quorlease/quorlease/bench/compare/etcd"
	"github.com/quorlease/quorlease/bench/compare/gubernator"
	"github.com/quorlease/quorlease/bench/compare/page"
	"github.com/quorlease/quorlease/bench/compare/peer"
	"github.com/quorlease/quorlease/bench/compare/quorlease"
	"github.com/quorlease/quorlease/bench/compare/ratelimit"
	"github.com/quorlease/quorlease/bench/compare/redis"
)

// entrant is one system, with all that is measured of it.
type entrant struct {
	name string
	// needs are programs of others.
	needs  []peer.Program
	start  func(ctx context.Context, c peer.Config) (peer.System, error)
	sides  []side
	trials []trial
}

// side is one way into it.
type side struct {
	slug, name string
	kind       page.Kind
	way        peer.Way
}

// trial is one of its promises.
type trial struct {
	slug, name, copies, disk string
	way                      peer.Way
}

// starting makes a start of one that returns its own type.
func starting[S peer.System](start func(context.Context, peer.Config) (S, error)) func(
	context.Context, peer.Config) (peer.System, error,
) {
	return func(ctx context.Context, c peer.Config) (peer.System, error) {
		s, err := start(ctx, c)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

// Ready says who of those that are required is not there, and how to get it. Nil: all
// are. Run begins with it.
func Ready(c *Config) error {
	_, missing := c.programs(entrants())
	return c.required(missing)
}

// programs are what each entrant needs, nil for one who is missing.
func (c *Config) programs(all []entrant) (found []map[string]string, missing []page.Missing) {
	found = make([]map[string]string, len(all))
	for i, e := range all {
		var absent *page.Missing
		if found[i], absent = c.find(e); absent != nil {
			missing = append(missing, *absent)
		}
	}
	return found, missing
}

func (c *Config) required(missing []page.Missing) error {
	for _, m := range missing {
		if slices.Contains(c.Require, m.System) {
			return fmt.Errorf("--require %s: %s; get it by: %s", m.System, m.Why, m.How)
		}
	}
	return nil
}

// find looks for what an entrant needs.
func (c *Config) find(e entrant) (map[string]string, *page.Missing) {
	found := map[string]string{quorlease.Program: c.Binary}
	if slices.Contains(c.Without, e.name) {
		return nil, &page.Missing{System: e.name, Why: "left out"}
	}
	var missing, how []string
	for _, program := range e.needs {
		path := peer.Find(c.Peers, program)
		if path == "" {
			missing = append(missing, program.Name)
			how = append(how, program.How)
		}
		found[program.Name] = path
	}
	if len(missing) > 0 {
		return nil, &page.Missing{
			System: e.name, Why: "there is no " + strings.Join(missing, " and no "), How: strings.Join(how, "; "),
		}
	}
	return found, nil
}

// The ways of the echo.
const (
	echoUnary  peer.Way = "unary"
	echoStream peer.Way = "stream"
)

// echoed is the bare echo as a system.
type echoed struct{ *bare.Server }

func startEcho(_ context.Context, c peer.Config) (echoed, error) {
	server, err := bare.Start(c.Programs[quorlease.Program], c.Log)
	return echoed{server}, err
}

// Open connects; the stream lives as long as ctx.
func (e echoed) Open(ctx context.Context, way peer.Way, _ peer.Bucket) (peer.Door, error) {
	return e.Server.Open(ctx, way == echoStream)
}

// entrants are all of them, in the order of the table.
func entrants() []entrant {
	return append(ours(), theirs()...)
}

// ours are those that need nothing but this program.
func ours() []entrant {
	return []entrant{
		{
			name: "echo", start: starting(startEcho),
			sides: []side{
				{"echo-unary", "bare gRPC echo, unary", page.Unary, echoUnary},
				{"echo-stream", "bare gRPC echo, stream", page.Stream, echoStream},
			},
		},
		{
			name: "quorlease", start: starting(quorlease.Start),
			sides: []side{
				{"escrow-unary", "Quorlease from escrow, unary", page.Unary, quorlease.EscrowUnary},
				{"consensus-unary", "Quorlease by consensus, unary", page.Unary, quorlease.ConsensusUnary},
				{"escrow-session", "Quorlease from escrow, session", page.Stream, quorlease.EscrowSession},
				{"consensus-session", "Quorlease by consensus, session", page.Stream, quorlease.ConsensusSession},
				{"escrow-paced", "Quorlease from escrow, session", page.Paced, quorlease.EscrowSession},
			},
			trials: []trial{
				{
					page.EscrowTrial, "Quorlease from escrow", "2 of 3 nodes, before it is asked for", "synced",
					quorlease.EscrowSession,
				},
				{page.ConsensusTrial, "Quorlease by consensus", "2 of 3 nodes", "synced", quorlease.ConsensusSession},
			},
		},
	}
}

// theirs are what people use today.
func theirs() []entrant {
	return []entrant{
		{
			name: "ratelimit", needs: []peer.Program{ratelimit.Program, redis.Program}, start: starting(ratelimit.Start),
			sides: []side{{"ratelimit", "envoyproxy/ratelimit + Redis", page.Unary, ratelimit.Unary}},
			trials: []trial{
				{"ratelimit", "envoyproxy/ratelimit + Redis", "1 server's memory", "no", ratelimit.Unary},
			},
		},
		{
			name: "redis-memory", needs: []peer.Program{redis.Program}, start: starting(redis.Start),
			sides: []side{
				{"redis-memory-single", "Redis script, no AOF, a call a connection", page.Unary, redis.Single},
				{"redis-memory-pipelined", "Redis script, no AOF, pipelined", page.Stream, redis.Pipelined},
			},
			trials: []trial{{"redis-memory", "Redis, no AOF", "1 server's memory", "no", redis.Pipelined}},
		},
		{
			name: "redis-always", needs: []peer.Program{redis.Program}, start: starting(redis.StartDurable),
			sides: []side{
				{"redis-always-single", "Redis script, appendfsync always, a call a connection", page.Unary, redis.Single},
				{"redis-always-pipelined", "Redis script, appendfsync always, pipelined", page.Stream, redis.Pipelined},
			},
			trials: []trial{{"redis-always", "Redis, appendfsync always", "1 server", "synced", redis.Pipelined}},
		},
		{
			name: "gubernator", needs: []peer.Program{gubernator.Program, etcd.Program}, start: starting(gubernator.Start),
			sides:  []side{{"gubernator", "Gubernator, 3 nodes", page.Unary, gubernator.Unary}},
			trials: []trial{{"gubernator", "Gubernator, 3 nodes", "1 node's memory", "no", gubernator.Unary}},
		},
		{
			name: "etcd", needs: []peer.Program{etcd.Program}, start: starting(etcd.Start),
			sides: []side{
				{"etcd-put", "etcd, 3 nodes, a put that decides nothing", page.Unary, etcd.Put},
				{"etcd-take", "etcd, 3 nodes, read and conditional write", page.Unary, etcd.Take},
			},
			trials: []trial{{"etcd", "etcd, 3 nodes", "2 of 3 nodes", "synced", etcd.Take}},
		},
	}
}
