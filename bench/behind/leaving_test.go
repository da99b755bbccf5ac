package behind_test

import (
	"bufio"
	"context"
	"strings"
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
		const allowed, burst, reads = 1000, 1000, 30
		clock := upstream.Speed(1)
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
		left := clock.Now()
		leave()
		if read != reads {
			t.Fatalf("%d events came of %d", read, reads)
		}
		if !until(t.Context(), func() bool { return len(p.upstream.Ledger().Calls) == 1 }) {
			t.Fatal("the provider goes on")
		}
		call := p.upstream.Ledger().Calls[0]
		t.Logf("the provider ended %s after the client, %d tokens were written", call.Ended-left, call.Billed.Output)
		if call.Outcome != upstream.Left || call.Ended-left > leftWithin {
			t.Errorf("%s, %s after the client left", call.Outcome, call.Ended-left)
		}
		if !until(t.Context(), func() bool { return inspect(t, "metered", "").GetOpenLeases() == 0 }) {
			t.Error("the call holds a lease")
		}
		spent := int64(-1)
		for _, b := range inspect(t, "metered", "").GetBuckets() {
			spent = burst - b.GetLevel() + b.GetDebt()
		}
		// It is counted from the text, as far as that came.
		if wrote := call.Billed.Output; spent < reads/2 || spent > 2*wrote+reads {
			t.Errorf("%d tokens are charged, %d were read and %d written", spent, read, wrote)
		}
		if s := p.Stats(); s.Gone != 1 || s.Held != 0 {
			t.Errorf("%+v", s)
		}
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
