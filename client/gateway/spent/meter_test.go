package spent_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/client/gateway/estimate"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/spent"
	"github.com/quorlease/quorlease/client/gateway/stream"
)

// estimated is what the prompts here are estimated to have.
const estimated = 1000

const sentence = "A token bucket lets a burst pass and keeps the rate of what follows it."

func sentenceTokens() int64 {
	var c estimate.Counter
	_, _ = c.Write([]byte(sentence))
	return c.Tokens()
}

func complete(input, output, read, creation int64) spent.Usage {
	return spent.Usage{Input: input, Output: output, CacheRead: read, CacheWrite: creation, State: spent.Complete}
}

func partial(input, output, read, creation int64) spent.Usage {
	return spent.Usage{Input: input, Output: output, CacheRead: read, CacheWrite: creation, State: spent.Partial}
}

var bodies = []struct {
	name, body string
	want       spent.Usage
}{
	{
		"chat", `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"` + sentence + `"},` +
			`"finish_reason":"stop"}],"usage":{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,` +
			`"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":5},` +
			`"completion_tokens_details":{"reasoning_tokens":128}}}`,
		complete(2006, 300, 1920, 0),
	},
	{"choices_null", `{"choices":null,"usage":{"prompt_tokens":5,"completion_tokens":7}}`, complete(5, 7, 0, 0)},
	{"completions", `{"usage":{"prompt_tokens":5,"completion_tokens":7},"choices":[{"text":"x"}]}`, complete(5, 7, 0, 0)},
	{
		"responses", `{"object":"response","output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}],` +
			`"usage":{"input_tokens":328,"input_tokens_details":{"cached_tokens":100},"output_tokens":52,` +
			`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":380}}`,
		complete(328, 52, 100, 0),
	},
	{
		"embeddings", `{"data":[{"embedding":[0.1,-2e-3],"index":0}],"usage":{"prompt_tokens":8,"total_tokens":8}}`,
		complete(8, 0, 0, 0),
	},
	{
		"messages", `{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":` +
			`{"input_tokens":21,"cache_creation_input_tokens":188,"cache_read_input_tokens":1800,"output_tokens":393,` +
			`"cache_creation":{"ephemeral_5m_input_tokens":188},"service_tier":"standard"}}`,
		complete(21+188+1800, 393, 1800, 188),
	},
	{
		"from_a_cache_alone", `{"usage":{"input_tokens":0,"cache_read_input_tokens":50,"output_tokens":3}}`,
		complete(50, 3, 50, 0),
	},
	{
		"both_names", `{"usage":{"prompt_tokens":100,"cache_read_input_tokens":90,"completion_tokens":1}}`,
		complete(100, 1, 90, 0),
	},
	{
		"contents", `{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":10,` +
			`"candidatesTokenCount":20,"thoughtsTokenCount":5,"cachedContentTokenCount":4,"totalTokenCount":35}}`,
		complete(10, 25, 4, 0),
	},
	{"camel", `{"usage":{"inputTokens":10,"outputTokens":20,"cacheReadInputTokens":3}}`, complete(13, 20, 3, 0)},
	{"a_sum_alone", `{"usage":{"total_tokens":9}}`, complete(9, 0, 0, 0)},
	{"more_from_a_cache_than_there_is", `{"usage":{"prompt_tokens":5,"cached_tokens":9}}`, complete(5, 0, 5, 0)},
	{
		"usage_missing", `{"choices":[{"message":{"role":"assistant","content":"` + sentence + `"}}]}`,
		partial(estimated, sentenceTokens(), 0, 0),
	},
	{"usage_null", `{"choices":[],"usage":null}`, spent.Usage{}},
	{"usage_of_nothing", `{"usage":{}}`, spent.Usage{}},
	{"usage_elsewhere", `{"data":{"usage":{"prompt_tokens":5}}}`, spent.Usage{}},
	{"no_numbers", `{"usage":{"prompt_tokens":"5","completion_tokens":-7,"total_tokens":1e300}}`, spent.Usage{}},
	{"an_error", `{"error":{"message":"` + sentence + `","type":"server_error"}}`, spent.Usage{}},
	{"no_json", "<html>busy</html>", spent.Usage{}},
	{"nothing", "", spent.Usage{}},
}

func TestBodies(t *testing.T) {
	t.Parallel()
	for _, row := range bodies {
		t.Run(row.name, func(t *testing.T) {
			for _, src := range []io.Reader{
				strings.NewReader(row.body), iotest.OneByteReader(strings.NewReader(row.body)),
				strings.NewReader(row.body + "\n"),
			} {
				m := spent.New(estimated)
				relayed, err := io.ReadAll(io.TeeReader(src, m))
				if err != nil || strings.TrimSpace(string(relayed)) != row.body {
					t.Errorf("%q was relayed, %v", relayed, err)
				}
				if diff := cmp.Diff(row.want, m.End()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestBodyThatIsCut(t *testing.T) {
	t.Parallel()
	body := bodies[0].body
	for at := range len(body) {
		m := spent.New(estimated)
		_, _ = m.Write([]byte(body[:at]))
		got := m.Cut()
		most := sentenceTokens()
		if strings.Contains(body[:at], "audio_tokens\":5},\"completion_tokens_details") {
			most = 300
		}
		if got.State != spent.Partial || got.Input != estimated && got.Input != 2006 || got.Output > most {
			t.Fatalf("cut at %d: %+v", at, got)
		}
	}
	m := spent.New(estimated)
	_, _ = m.Write([]byte(body))
	if diff := cmp.Diff(bodies[0].want, m.Cut()); diff != "" {
		t.Errorf("cut behind its end (-want +got):\n%s", diff)
	}
}

const (
	chunk = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"` + sentence +
		`"},"logprobs":{"content":[{"token":"` + sentence + `"}]}}],"usage":null}` + "\n\n"
	finish   = `data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}` + "\n\n"
	reported = `data: {"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":70,` +
		`"prompt_tokens_details":{"cached_tokens":40}}}` + "\n\n"
	done = "data: [DONE]\n\n"

	messageStart = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"stop_reason\":null," +
		"\"usage\":{\"input_tokens\":25,\"cache_creation_input_tokens\":100,\"cache_read_input_tokens\":200," +
		"\"output_tokens\":1}}}\n\n"
	messageStartOfNothing = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{" +
		"\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}}\n\n"
	ping         = "event: ping\ndata: {\"type\": \"ping\"}\n\n"
	contentDelta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":" +
		"{\"type\":\"text_delta\",\"text\":\"" + sentence + "\"}}\n\n"
	signature = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":" +
		"{\"type\":\"signature_delta\",\"signature\":\"" + sentence + sentence + "\"}}\n\n"
	messageDeltaSoFar = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":null}," +
		"\"usage\":{\"output_tokens\":40}}\n\n"
	messageDelta = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"," +
		"\"stop_sequence\":null},\"usage\":{\"output_tokens\":55}}\n\n"
	messageDeltaInput = "event: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"}," +
		"\"usage\":{\"input_tokens\":30,\"cache_read_input_tokens\":8,\"output_tokens\":55}}\n\n"
	messageDeltaNothing = "event: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"}," +
		"\"usage\":{\"input_tokens\":0,\"cache_read_input_tokens\":0,\"output_tokens\":55}}\n\n"
	messageStop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	failed      = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"

	responseDelta = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"" +
		sentence + "\"}\n\n"
	responseText = "event: response.output_text.done\ndata: {\"type\":\"response.output_text.done\",\"text\":\"" +
		sentence + "\"}\n\n"
	responseCompleted = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[" +
		"{\"content\":[{\"text\":\"" + sentence + "\"}]}],\"usage\":{\"input_tokens\":37,\"output_tokens\":11," +
		"\"input_tokens_details\":{\"cached_tokens\":7}}}}\n\n"

	candidate = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"" + sentence + "\"}]}}]," +
		"\"usageMetadata\":{\"promptTokenCount\":4,\"candidatesTokenCount\":3}}\n\n"
	candidateLast = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"finishReason\":\"STOP\"}]," +
		"\"usageMetadata\":{\"promptTokenCount\":4,\"candidatesTokenCount\":30}}\n\n"
)

// streamed is a stream, and what it used when it has come to its end and when it was cut
// there.
type streamed struct {
	name, stream string
	end, cut     spent.Usage
}

func streams() []streamed {
	one := sentenceTokens()
	both := func(name, stream string, want spent.Usage) streamed { return streamed{name, stream, want, want} }
	return []streamed{
		both("chat", chunk+finish+reported+done, complete(50, 70, 40, 0)),
		both("chat_before_it_says_that_it_is_done", chunk+finish+reported, complete(50, 70, 40, 0)),
		both("chat_choices_null", chunk+finish+strings.Replace(reported, "[]", "null", 1), complete(50, 70, 40, 0)),
		both("chat_without_usage", chunk+finish+done, partial(estimated, one, 0, 0)),
		both("chat_cut", chunk, partial(estimated, one, 0, 0)),
		both("chat_usage_each_time", strings.Replace(chunk, "null", `{"prompt_tokens":50,"completion_tokens":2}`, 1),
			partial(50, one, 0, 0)),
		both("messages", messageStart+ping+contentDelta+messageDeltaSoFar+messageDelta+messageStop,
			complete(325, 55, 200, 100)),
		both("messages_before_they_stop", messageStart+contentDelta+messageDelta, complete(325, 55, 200, 100)),
		both("messages_cut_at_once", messageStart, partial(325, 1, 200, 100)),
		both("messages_cut", messageStart+contentDelta+signature, partial(325, one, 200, 100)),
		both("messages_cut_after_usage", messageStart+contentDelta+messageDeltaSoFar, partial(325, 40, 200, 100)),
		both("messages_input_at_the_end", messageStartOfNothing+contentDelta+messageDeltaInput+messageStop,
			complete(38, 55, 8, 0)),
		both("messages_input_taken_back", messageStart+messageDeltaNothing, complete(325, 55, 200, 100)),
		both("messages_input_never", messageStartOfNothing+contentDelta, partial(estimated, one, 0, 0)),
		both("messages_failed", messageStart+contentDelta+failed, partial(325, one, 200, 100)),
		both("responses", responseDelta+responseText+responseCompleted, complete(37, 11, 7, 0)),
		both("responses_cut", responseDelta+responseText, partial(estimated, one, 0, 0)),
		both("contents", candidate+candidateLast, complete(4, 30, 0, 0)),
		both("contents_cut", candidate, partial(4, one, 0, 0)),
		{"failed_at_once", failed, spent.Usage{}, partial(estimated, 0, 0, 0)},
		{"nothing", "", spent.Usage{}, partial(estimated, 0, 0, 0)},
		{"no_json", "data: hello\n\ndata: {\"choices\n\n", spent.Usage{}, partial(estimated, 0, 0, 0)},
	}
}

// watch reads a stream to its end.
func watch(t testing.TB, text string, pieces int) *spent.Meter {
	t.Helper()
	m := spent.New(estimated)
	var src io.Reader = strings.NewReader(text)
	if pieces == 1 {
		src = iotest.OneByteReader(src)
	}
	relay := stream.Relay{To: io.Discard, Seen: m.Frame}
	if err := relay.Run(t.Context(), stream.NewReader(src, stream.Options{})); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestStreams(t *testing.T) {
	t.Parallel()
	for _, row := range streams() {
		t.Run(row.name, func(t *testing.T) {
			for pieces := range 2 {
				if diff := cmp.Diff(row.end, watch(t, row.stream, pieces).End()); diff != "" {
					t.Errorf("at its end (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(row.cut, watch(t, row.stream, pieces).Cut()); diff != "" {
					t.Errorf("cut (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestWhatWasSaidIsNotAddedUp: each usage of a stream is that of all of it so far.
func TestWhatWasSaidIsNotAddedUp(t *testing.T) {
	t.Parallel()
	t.Run("S3-09_the_last_report_counts", func(t *testing.T) {
		m := watch(t, messageStart+strings.Repeat(messageDeltaSoFar, 50)+messageDelta+messageStop, 0)
		if diff := cmp.Diff(complete(325, 55, 200, 100), m.End()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestLongFramesAreNotLookedAt(t *testing.T) {
	t.Parallel()
	long := strings.Replace(chunk, sentence, strings.Repeat("x", 10_000), 1)
	m := spent.New(estimated)
	relay := stream.Relay{To: io.Discard, Seen: m.Frame}
	r := stream.NewReader(strings.NewReader(long+reported+done), stream.Options{FrameMax: 1})
	if err := relay.Run(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(complete(50, 70, 40, 0), m.End()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAClientThatLeaves: what was generated until then is counted although it was not
// all passed on.
func TestAClientThatLeaves(t *testing.T) {
	t.Parallel()
	gone := errors.New("connection reset")
	m := spent.New(estimated)
	client := &leaver{after: 3, err: gone}
	relay := stream.Relay{To: client, Seen: m.Frame}
	text := messageStart + strings.Repeat(contentDelta, 10) + messageDelta + messageStop
	err := relay.Run(t.Context(), stream.NewReader(strings.NewReader(text), stream.Options{}))
	if !errors.Is(err, stream.ErrClient) {
		t.Fatal(err)
	}
	got := m.Cut()
	// Three frames went out, the first of them without text, and a fourth was seen.
	if want := 3 * sentenceTokens(); got.State != spent.Partial || got.Input != 325 || got.Output > want ||
		got.Output < want-3 {
		t.Errorf("%+v, want about %d of output", got, want)
	}
}

type leaver struct {
	after int
	err   error
}

func (l *leaver) Write(p []byte) (int, error) {
	if l.after--; l.after < 0 {
		return 0, l.err
	}
	return len(p), nil
}

// TestCutIsBounded: wherever a stream is cut, at least the prompt is
// used, and no more output than all of it has.
func TestCutIsBounded(t *testing.T) {
	t.Parallel()
	all := streams()
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.SampledFrom(all).Draw(t, "stream")
		at := rapid.IntRange(0, len(row.stream)).Draw(t, "at")
		m := spent.New(estimated)
		relay := stream.Relay{To: io.Discard, Seen: m.Frame}
		r := stream.NewReader(strings.NewReader(row.stream[:at]), stream.Options{})
		if err := relay.Run(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		got := m.Cut()
		most := max(row.end.Output, row.cut.Output, sentenceTokens())
		if got.State == spent.None || got.Input < 1 || got.Output > most || got.CacheRead+got.CacheWrite > got.Input {
			t.Fatalf("%s cut at %d: %+v", row.name, at, got)
		}
	})
}

func TestCounted(t *testing.T) {
	t.Parallel()
	want := provider.Usage{Fresh: 50, CacheRead: 30, CacheWrite: 20, Output: 7}
	if got := complete(100, 7, 30, 20).Counted(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for state, want := range map[spent.State]string{
		spent.None: "none", spent.Partial: "partial", spent.Complete: "complete",
	} {
		if got := state.String(); got != want {
			t.Errorf("%d is %q, want %q", state, got, want)
		}
	}
}

// FuzzMeter: whatever an answer says, numbers stay in their bounds, and where it is cut
// into reads does not matter.
func FuzzMeter(f *testing.F) {
	for _, row := range bodies {
		f.Add([]byte(row.body), uint(7), false)
	}
	for _, row := range streams() {
		f.Add([]byte(row.stream), uint(7), true)
	}
	f.Fuzz(func(t *testing.T, answer []byte, at uint, streamed bool) {
		cut := int(at % uint(len(answer)+1))
		var got [2]spent.Usage
		for i, parts := range [][]byte{answer[:0], answer[:cut]} {
			m := spent.New(estimated)
			src := io.MultiReader(strings.NewReader(string(parts)), strings.NewReader(string(answer[len(parts):])))
			if streamed {
				relay := stream.Relay{To: io.Discard, Seen: m.Frame}
				if err := relay.Run(t.Context(), stream.NewReader(src, stream.Options{})); err != nil {
					t.Fatal(err)
				}
			} else if _, err := io.Copy(m, src); err != nil {
				t.Fatal(err)
			}
			got[i] = m.End()
			u := m.Cut()
			if u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0 ||
				u.CacheRead+u.CacheWrite > u.Input || u.State == spent.None {
				t.Fatalf("%q: %+v", answer, u)
			}
		}
		if got[0] != got[1] {
			t.Fatalf("%q: %+v, cut at %d %+v", answer, got[0], cut, got[1])
		}
	})
}

func TestAMeterHoldsNothingOfABody(t *testing.T) {
	piece := []byte(strings.Repeat(`{"message":{"content":"a \n b"}},`, 1000))
	m := spent.New(0)
	_, _ = m.Write([]byte(`{"choices":[`))
	_, _ = m.Write(piece)
	if n := testing.AllocsPerRun(100, func() { _, _ = m.Write(piece) }); n > 0 {
		t.Errorf("%v allocations for %d bytes", n, len(piece))
	}
}
