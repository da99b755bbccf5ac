package benches

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/upstream"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/netaddr"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
)

const providerLong = `Play a provider of language models on this machine, to try a gateway without an
account. It answers chat completions, responses, embeddings or messages, streams
too, with text that means nothing, counts what they use, and refuses what is more
than its account has, as that provider does. It wants a key, and takes any.

Ctrl-C stops it, and it says what it has seen.`

// playing says what a simulated provider is like.
type playing struct {
	api, listen             string
	requests, tokens, speed int64
}

// countMax is the most that a flag of it can be.
const countMax = 1_000_000_000

func simulated(a *App) *cobra.Command {
	o := &playing{}
	cmd := &cobra.Command{
		Use:   "provider",
		Short: "Play a provider of language models, to try a gateway",
		Long:  providerLong,
		Example: `  quorlease bench provider
  quorlease bench provider --api anthropic --listen 127.0.0.1:7502 --tokens 400000`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.CheckFormat(); err != nil {
				return err
			}
			return o.run(c.Context(), a)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.api, "api", string(upstream.OpenAI),
		"whose answers it gives: openai, azure, anthropic, gemini, vertex or bedrock")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:7501", "loopback `address` for programs, or for a gateway")
	flags.Int64Var(&o.requests, "requests", 500, "how many `requests` a minute its account has; 0: any number")
	flags.Int64Var(&o.tokens, "tokens", 200_000,
		"how many `tokens` a minute its account has, of Anthropic's input tokens; 0: any number")
	flags.Int64Var(&o.speed, "speed", 100, "how many `tokens` a second it writes; 0: all at once")
	for _, name := range []string{"requests", "tokens"} {
		setting.Range(flags, name, "0 to 1000000000")
	}
	setting.Range(flags, "speed", "0 to 1000000")
	return cmd
}

// check names what is wrong with the flags.
func (o *playing) check() error {
	if err := netaddr.Check("--listen", o.listen); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(o.listen)
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return exit.Usagef("--listen %s is not on loopback: what is only played is for this machine", o.listen)
	}
	for _, flag := range []struct {
		name string
		n    int64
		most int64
	}{{"requests", o.requests, countMax}, {"tokens", o.tokens, countMax}, {"speed", o.speed, 1_000_000}} {
		if flag.n < 0 || flag.n > flag.most {
			return exit.Usagef("--%s %d is outside 0 to %d", flag.name, flag.n, flag.most)
		}
	}
	if !slices.Contains(upstream.APIs(), upstream.API(o.api)) {
		return exit.Usagef("--api %q is none of openai, azure, anthropic, gemini, vertex and bedrock", o.api)
	}
	return nil
}

// run serves until the context ends.
func (o *playing) run(ctx context.Context, a *App) error {
	if err := o.check(); err != nil {
		return err
	}
	api := upstream.API(o.api)
	server, err := upstream.New(upstream.Config{
		API: api, Rules: upstream.Usual(api, provider.Limits{Requests: o.requests, Input: o.tokens}),
		Clock: upstream.Speed(1), TokensPerSecond: o.speed,
	})
	if err != nil {
		return exit.Usagef("%w", err)
	}
	listener, err := netaddr.Listen(ctx, "--listen", o.listen)
	if err != nil {
		return err
	}
	serving := upstream.Serve(listener, server)
	if err := a.Write(o.banner(serving.URL)); err != nil {
		_ = serving.Close()
		return err
	}
	<-ctx.Done()
	if err := serving.Close(); err != nil {
		return &exit.Error{Code: exit.Failed, Err: err}
	}
	seen := server.Ledger()
	return a.Write(fmt.Appendf(nil, "served %d, refused %d; %d tokens in and %d out\n",
		seen.Outcomes[upstream.Served], seen.Outcomes[upstream.Refused], seen.Billed.Input, seen.Billed.Output))
}

// banner says where it is and what to type next.
func (o *playing) banner(url string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s at %s; requests a minute: %s; tokens: %s\n\n", o.api, url, limit(o.requests), limit(o.tokens))
	fmt.Fprintf(&out, "In a second terminal:\n\n  quorlease gateway --upstream %s --provider %s\n\n", url, o.api)
	out.WriteString("Ctrl-C stops it.\n")
	return out.Bytes()
}

// limit is a limit for people.
func limit(n int64) string {
	if n == 0 {
		return "any number"
	}
	return fmt.Sprint(n)
}
