package spent_test

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/client/gateway/spent"
	"github.com/quorlease/quorlease/client/gateway/stream"
)

// watched is what a meter makes of events.
func watched(events ...string) spent.Usage {
	m := spent.New(estimated)
	for _, data := range events {
		m.Frame(stream.Frame{Data: []byte(data), Whole: true})
	}
	return m.End()
}

func TestClouds(t *testing.T) {
	t.Parallel()
	said := `{"contentBlockIndex":0,"delta":{"text":"` + sentence + `"},"p":"abcdefgh"}`
	signed := base64.StdEncoding.EncodeToString([]byte(sentence))
	for name, row := range map[string]struct {
		events []string
		want   spent.Usage
	}{
		"converse": {
			[]string{
				`{"role":"assistant"}`, said, `{"stopReason":"end_turn"}`,
				`{"usage":{"inputTokens":20,"outputTokens":9,"cacheReadInputTokens":5,"totalTokens":34},"metrics":{"latencyMs":7}}`,
			},
			complete(25, 9, 5, 0),
		},
		"converse_that_is_cut": {[]string{said}, partial(estimated, sentenceTokens(), 0, 0)},
		"claude_on_bedrock": {
			[]string{
				`{"type":"message_start","message":{"usage":{"input_tokens":21,"output_tokens":1}}}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":30}}`,
				`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":21,"outputTokenCount":30}}`,
			},
			complete(21, 30, 0, 0),
		},
		"nova_on_bedrock": {
			[]string{
				`{"contentBlockDelta":{}}`, `{"amazon-bedrock-invocationMetrics":{"inputTokenCount":4,"outputTokenCount":2}}`,
			},
			partial(4, 2, 0, 0),
		},
		"contents": {
			[]string{
				`{"candidates":[{"content":{"parts":[{"text":"a","thoughtSignature":"` + signed + `"}]}}],` +
					`"usageMetadata":{"promptTokenCount":11}}`,
				`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":11,` +
					`"candidatesTokenCount":20,"thoughtsTokenCount":5,"cachedContentTokenCount":4}}`,
			},
			complete(11, 25, 4, 0),
		},
	} {
		if diff := cmp.Diff(row.want, watched(row.events...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestHeadersThatCount: a body that says nothing, or is no JSON at all, is counted by what stands
// before it.
func TestHeadersThatCount(t *testing.T) {
	t.Parallel()
	header := http.Header{}
	header.Set("X-Amzn-Bedrock-Input-Token-Count", "12")
	header.Set("X-Amzn-Bedrock-Output-Token-Count", "34")
	for _, body := range []string{`{"generation":"a","stop_reason":"stop"}`, "\x00\x01"} {
		m := spent.New(estimated)
		m.Header(header)
		_, _ = m.Write([]byte(body))
		if diff := cmp.Diff(complete(12, 34, 0, 0), m.End()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", body, diff)
		}
	}
	m := spent.New(estimated)
	header.Set("X-Amzn-Bedrock-Input-Token-Count", "-1")
	header.Set("X-Amzn-Bedrock-Output-Token-Count", "1e9")
	m.Header(header)
	_, _ = m.Write([]byte(`{}`))
	if got := m.End(); got != (spent.Usage{}) {
		t.Errorf("%+v of headers that say nothing", got)
	}
}
