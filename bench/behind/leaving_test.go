package behind_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench/upstream"
)

// leftWithin is how long a provider may go on after its client has left. It would be ten
// seconds otherwise.
const leftWithin = 500 * time.Millisecond

// TestWhoLeavesEndsTheCall: over sockets, in the middle of a stream.
func TestWhoLeavesEndsTheCall(t *testing.T) {
	t.Run("S2-22_S3-09_ended_and_settled_in_part", func(t *testing.T) {
		const allowed, reads = 1000, 30
		clock, before := upstream.Speed(1), left(t, "metered")
		p := stand(t, setting{
			deployment: "metered", authority: ask(t),
			provider: upstream.Config{
				API: upstream.Anthropic, Clock: clock, TokensPerSecond: 100, TokensPerEvent: 1, OutputTokens: allowed,
			},
		})
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		leaver := newProgram(t, p, upstream.Anthropic, "leaver")
		answer, err := leaver.send(ctx, strings.Replace(prompt("everything", `,"stream":true`), ":16,", ":1000,", 1))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		read := 0
		for lines := bufio.NewScanner(answer.Body); read < reads && lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "event: content_block_delta") {
				read++
			}
		}
		gone := clock.Now()
		leave()
		if read != reads {
			t.Fatalf("%d events came of %d", read, reads)
		}
		if !until(t.Context(), func() bool { return len(p.upstream.Ledger().Calls) == 1 }) {
			t.Fatal("the provider goes on")
		}
		call := p.upstream.Ledger().Calls[0]
		t.Logf("the provider ended %s after the client, %d tokens were written", call.Ended-gone, call.Billed.Output)
		if call.Outcome != upstream.Left || call.Ended-gone > leftWithin {
			t.Errorf("%s, %s after the client left", call.Outcome, call.Ended-gone)
		}
		if !until(t.Context(), func() bool { return inspect(t, "metered", "").GetOpenLeases() == 0 }) {
			t.Error("the call holds a lease")
		}
		spent := before - left(t, "metered")
		// It is counted from the text, as far as that came.
		if wrote := call.Billed.Output; spent < reads/2 || spent > 2*wrote+reads {
			t.Errorf("%d tokens are charged, %d were read and %d written: %+v", spent, read, wrote, p.Stats())
		}
		p.isLeft(t)
	})
}

// left is what a limit of one dimension and key has.
func left(t *testing.T, limit string) (tokens int64) {
	t.Helper()
	for _, b := range inspect(t, limit, "").GetBuckets() {
		tokens += b.GetLevel() - b.GetDebt()
	}
	return tokens
}

// isLeft wants one client to have left, and nothing to be held for it.
func (p *place) isLeft(t *testing.T) {
	t.Helper()
	if !until(t.Context(), func() bool { s := p.Stats(); return s.Gone == 1 && s.Held == 0 }) {
		t.Errorf("%d have left, %d bytes are held", p.Stats().Gone, p.Stats().Held)
	}
}

// TestWhoLedLeaves: the work of somebody who has left goes on for whoever waits for the same.
func TestWhoLedLeaves(t *testing.T) {
	t.Run("S2-11_its_follower_gets_the_answer", func(t *testing.T) {
		p := stand(t, setting{
			deployment: "deaf-led", provider: upstream.Config{API: upstream.OpenAI}, authority: ask(t),
			faults: []upstream.Fault{refuse(upstream.InputTokens, 2*time.Second, 1)},
		})
		same := newProgram(t, p, upstream.OpenAI, "same")
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		var joined sync.WaitGroup
		joined.Go(func() {
			if got, err := same.call(ctx, prompt("both", "")); err == nil {
				t.Errorf("who left was told %d %s", got.status, got.body)
			}
		})
		// It was refused, and waits to be sent again.
		if !until(t.Context(), func() bool { return p.Stats().Retried == 1 }) {
			t.Fatalf("nothing is tried again: %+v", p.Stats())
		}
		var got reply
		var err error
		joined.Go(func() { got, err = same.call(t.Context(), prompt("both", "")) })
		if !until(t.Context(), func() bool { return p.Stats().Shared.Coalesced == 1 }) {
			t.Errorf("nobody follows: %+v", p.Stats().Shared)
		}
		leave()
		joined.Wait()
		if err != nil || got.status != http.StatusOK || p.reached() != 2 {
			t.Errorf("%d %s, %v; %d calls reached the provider", got.status, got.body, err, p.reached())
		}
		p.isLeft(t)
	})
}

// TestUsageOfAStream is told to whoever has asked for it, and known to the gateway.
func TestUsageOfAStream(t *testing.T) {
	t.Run("S3-09_seen_by_who_asked", func(t *testing.T) {
		p := stand(t, setting{
			deployment: "heard-usage", authority: ask(t), provider: upstream.Config{API: upstream.OpenAI},
		})
		asker := newProgram(t, p, upstream.OpenAI, "asker")
		for i, row := range []struct {
			more string
			seen bool
		}{
			{`,"stream":true`, false},
			{`,"stream":true,"stream_options":{"include_usage":false}`, false},
			{`,"stream":true,"stream_options":{"include_usage":true}`, true},
		} {
			got, err := asker.call(t.Context(), prompt("how long", row.more))
			text := string(got.body)
			if err != nil || strings.Contains(text, `"usage"`) != row.seen || !strings.HasSuffix(text, "data: [DONE]\n\n") {
				t.Errorf("%s: %v\n%s", row.more, err, text)
			}
			heard := func() bool { e := p.Stats().Estimates; return e.Requests() == int64(i+1) }
			if !until(t.Context(), heard) {
				t.Errorf("%s: the gateway does not know what was used", row.more)
			}
		}
	})
}
