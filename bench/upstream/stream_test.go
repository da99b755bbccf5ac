package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/upstream"
)

// happened is the events of a stream: their names, or "data", and how many times in
// a row; last has the data of the last with each name.
func happened(t *testing.T, stream io.Reader) (names []string, last map[string]map[string]any) {
	t.Helper()
	last = make(map[string]map[string]any)
	name := "data"
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		line := lines.Text()
		if after, ok := strings.CutPrefix(line, "event: "); ok {
			name = after
			continue
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			names = append(names, data)
			continue
		}
		var value map[string]any
		if err := json.Unmarshal([]byte(data), &value); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if n := len(names); n == 0 || names[n-1] != name {
			names = append(names, name)
		}
		last[name], name = value, "data"
	}
	return names, last
}

func TestChatStream(t *testing.T) {
	t.Parallel()
	for _, api := range []upstream.API{upstream.OpenAI, upstream.Azure} {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := open(t, upstream.Config{API: api, Latency: time.Second, TokensPerSecond: 10})
				begun := time.Now()
				plain := ask(t, s, paths[api], body(`,"stream":true`))
				if took := time.Since(begun); took != 3*time.Second {
					t.Errorf("20 tokens took %v, want 1 s and 20 tenths", took)
				}
				text := plain.Body.String()
				if strings.Contains(text, `"usage"`) || !strings.HasSuffix(text, "data: [DONE]\n\n") {
					t.Errorf("usage that nobody asked for, or no end: %s", text)
				}
				asked := ask(t, s, paths[api], body(`,"stream":true,"stream_options":{"include_usage":true}`))
				_, last := happened(t, asked.Body)
				want := map[string]any{"prompt_tokens": 8.0, "completion_tokens": 20.0, "total_tokens": 28.0}
				usage, _ := last["data"]["usage"].(map[string]any)
				got := map[string]any{}
				for name := range want {
					got[name] = usage[name]
				}
				if diff := cmp.Diff(want, got); diff != "" || len(last["data"]["choices"].([]any)) != 0 {
					t.Errorf("the last chunk is %v (-want +got):\n%s", last["data"], diff)
				}
			})
		})
	}
}

func TestStreamSaysWhatPlainSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, upstream.Config{API: upstream.Anthropic, Seed: 7, TokensPerEvent: 3})
		var plain struct {
			Content []struct{ Text string }
			Usage   map[string]any
			Reason  string `json:"stop_reason"`
		}
		if err := json.Unmarshal(ask(t, s, "/v1/messages", body("")).Body.Bytes(), &plain); err != nil {
			t.Fatal(err)
		}
		streamed := ""
		for line := range strings.Lines(ask(t, s, "/v1/messages", body(`,"stream":true`)).Body.String()) {
			var event struct{ Delta struct{ Text string } }
			if data, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(data), &event) == nil {
				streamed += event.Delta.Text
			}
		}
		if streamed == "" || len(plain.Content) != 1 || streamed != plain.Content[0].Text || plain.Reason != "max_tokens" {
			t.Errorf("streamed %q, plain %+v", streamed, plain)
		}
		other := open(t, upstream.Config{API: upstream.Anthropic, Seed: 8})
		if strings.Contains(ask(t, other, "/v1/messages", body("")).Body.String(), streamed) {
			t.Error("another seed gives the same text")
		}
	})
}

func TestMessagesStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// 12 tokens take 6 s, a second longer than it is silent; the other 8 take 4 s.
		s := open(t, upstream.Config{API: upstream.Anthropic, OutputTokens: 100, TokensPerEvent: 12, TokensPerSecond: 2})
		answer := ask(t, s, "/v1/messages", body(`,"stream":true`))
		if pings := strings.Count(answer.Body.String(), "event: ping"); pings != 2 {
			t.Errorf("%d pings, want one at the beginning and one in a silence", pings)
		}
		names, last := happened(t, answer.Body)
		want := []string{
			"message_start", "content_block_start", "ping", "content_block_delta", "content_block_stop", "message_delta",
			"message_stop",
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		start := last["message_start"]["message"].(map[string]any)["usage"].(map[string]any)
		end := last["message_delta"]["usage"].(map[string]any)
		if start["input_tokens"] != 8.0 || start["output_tokens"] != 1.0 || end["output_tokens"] != 20.0 {
			t.Errorf("usage %v, then %v", start, end)
		}
	})
}

func TestResponsesStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, upstream.Config{API: upstream.OpenAI})
		request := `{"model":"m","input":"aaaa aaaa","stream":true,"max_output_tokens":100}`
		names, last := happened(t, ask(t, s, "/v1/responses", request).Body)
		want := []string{
			"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
			"response.output_text.delta", "response.output_text.done", "response.content_part.done",
			"response.output_item.done", "response.completed",
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		whole := last["response.completed"]
		usage := whole["response"].(map[string]any)["usage"].(map[string]any)
		if whole["sequence_number"] != 4.0+64+3 || usage["input_tokens"] != 2.0 || usage["output_tokens"] != 64.0 {
			t.Errorf("the last event is %v", whole)
		}
	})
}

func TestEmbeddings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, upstream.Config{API: upstream.OpenAI})
		answer := ask(t, s, "/v1/embeddings", `{"model":"m","input":["a","bb"],"dimensions":4}`)
		var got struct {
			Data []struct {
				Index     int
				Embedding []float64
			}
			Usage map[string]int64
		}
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", answer.Body, err)
		}
		if len(got.Data) != 2 || len(got.Data[1].Embedding) != 4 || got.Data[1].Index != 1 ||
			got.Usage["total_tokens"] != 2 {
			t.Errorf("%s", answer.Body)
		}
		base64 := ask(t, s, "/v1/embeddings", `{"model":"m","input":"a","dimensions":4,"encoding_format":"base64"}`)
		if !strings.Contains(base64.Body.String(), `"embedding":"`) {
			t.Errorf("%s", base64.Body)
		}
		if l := s.Ledger(); l.Billed != (provider.Call{Input: 3}) || l.Calls[0].Estimated != (provider.Call{Input: 1}) {
			t.Errorf("ledger %+v", l)
		}
	})
}

// A client that leaves has used what was written until then.
func TestWhoLeavesHasUsedWhatWasWritten(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{"", `,"stream":true`} {
		t.Run("stream"+stream, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := open(t, upstream.Config{
					API: upstream.Anthropic, Latency: time.Second, TokensPerSecond: 2,
					Rules: provider.Rules{Limits: provider.Limits{Input: 60, Output: 60}},
				})
				ctx, cancel := context.WithTimeout(t.Context(), 3600*time.Millisecond)
				defer cancel()
				s.ServeHTTP(httptest.NewRecorder(), post(t, "/v1/messages", body(stream)).WithContext(ctx))
				call := s.Ledger().Calls[0]
				if call.Outcome != upstream.Left || call.Billed != (provider.Call{Input: 8, Output: 5}) ||
					call.Ended != 3600*time.Millisecond {
					t.Errorf("ledger %+v, want 5 tokens after 1 s and 2.6 s", call)
				}
			})
		})
	}
}

func TestFaultsInStreams(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		fault   upstream.Fault
		api     upstream.API
		names   []string
		outcome upstream.Outcome
		output  int64
	}{
		{
			"first_event",
			upstream.Fault{Kind: upstream.Spoil},
			upstream.Anthropic,
			[]string{"error"},
			upstream.Spoilt, 0,
		},
		{
			"after_three",
			upstream.Fault{Kind: upstream.Spoil, After: 3},
			upstream.Anthropic,
			[]string{"message_start", "content_block_start", "ping", "content_block_delta", "error"},
			upstream.Spoilt, 3 + 1,
		},
		{"openai", upstream.Fault{Kind: upstream.Spoil, After: 3}, upstream.OpenAI, []string{"data"}, upstream.Spoilt, 3 + 1},
		{
			"over",
			upstream.Fault{Kind: upstream.Spoil, Span: provider.Span{From: time.Hour}},
			upstream.OpenAI,
			[]string{"data", "[DONE]"},
			upstream.Served, 20,
		},
		{
			"somebody_else",
			upstream.Fault{Kind: upstream.Spoil, Client: "b"},
			upstream.OpenAI,
			[]string{"data", "[DONE]"},
			upstream.Served, 20,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := open(t, upstream.Config{API: row.api})
				if err := s.SetFaults(row.fault); err != nil {
					t.Fatal(err)
				}
				answer := ask(t, s, paths[row.api], body(`,"stream":true`))
				names, last := happened(t, answer.Body)
				if diff := cmp.Diff(row.names, names); diff != "" || answer.Code != http.StatusOK {
					t.Errorf("%d (-want +got):\n%s", answer.Code, diff)
				}
				call := s.Ledger().Calls[0]
				if call.Outcome != row.outcome || call.Billed.Output != row.output {
					t.Errorf("ledger %+v, want %s with %d", call, row.outcome, row.output)
				}
				if row.outcome == upstream.Spoilt && last["error"] == nil && last["data"]["error"] == nil {
					t.Errorf("the last event is %v", last)
				}
			})
		})
	}
}

func TestOverLoopback(t *testing.T) {
	t.Parallel()
	// A minute takes a second.
	s := open(t, upstream.Config{
		API: upstream.OpenAI, Clock: upstream.Speed(60), Latency: 6 * time.Second, TokensPerSecond: 2,
	})
	l, err := upstream.Listen(s)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	begin := func(ctx context.Context, fault upstream.Fault, more string) (*http.Response, error) {
		if err := s.SetFaults(fault); err != nil {
			t.Fatal(err)
		}
		url := l.URL + "/v1/chat/completions"
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body(more)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("api-key", "key")
		return client.Do(r)
	}
	send := func(fault upstream.Fault, more string) (string, error) {
		answer, err := begin(t.Context(), fault, more)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return string(text), err
	}
	never := upstream.Fault{Kind: upstream.Refuse, Span: provider.Span{From: 1000 * time.Hour}}
	if text, err := send(never, `,"stream":true`); err != nil || !strings.HasSuffix(text, "[DONE]\n\n") {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := send(upstream.Fault{Kind: upstream.Break}, ""); err == nil {
		t.Errorf("a broken call answered %q", text)
	}
	text, err := send(upstream.Fault{Kind: upstream.Break, After: 2}, `,"stream":true`)
	if !errors.Is(err, io.ErrUnexpectedEOF) || strings.Count(text, "data: ") != 3 {
		t.Errorf("a stream broken after two events: %q, %v", text, err)
	}
	// The client leaves a stream that hangs.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answer, err := begin(ctx, upstream.Fault{Kind: upstream.Hang, After: 1}, `,"stream":true`)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	// Two events, each with an empty line behind it.
	for n := 0; n < 4 && lines.Scan(); n++ {
	}
	cancel()
	if lines.Scan() {
		t.Errorf("a stream that hangs went on with %q", lines.Text())
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	outcomes := map[upstream.Outcome]int64{upstream.Served: 1, upstream.Broken: 2, upstream.Left: 1}
	if diff := cmp.Diff(outcomes, s.Ledger().Outcomes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if took := s.Ledger().Calls[0]; took.Ended-took.Arrived < 16*time.Second {
		t.Errorf("%v of the scenario for 6 s and 20 tokens at 2 a second", took.Ended-took.Arrived)
	}
}
