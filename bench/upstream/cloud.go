package upstream

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/quorlease/quorlease/client/gateway/stream"
)

// The shapes of clouds.
const (
	contents shape = "contents"
	converse shape = "converse"
)

// cloudPaths are where the clouds' routes are: a model, and what it is to do.
var cloudPaths = map[API]*regexp.Regexp{
	Gemini: regexp.MustCompile(`^/v1(?:beta|alpha)?/models/([^/:]+):(\w+)$`),
	Vertex: regexp.MustCompile(
		`^/v1(?:beta1)?/(?:projects/[^/]+/locations/[^/]+/)?publishers/(?:google|anthropic)/models/([^/:]+):(\w+)$`),
	Bedrock: regexp.MustCompile(`^/model/(.+)/([\w-]+)$`),
}

// cloudWork is what a model can be asked to do, and whether that streams.
var cloudWork = map[string]struct {
	what    shape
	streams bool
}{
	"generateContent": {contents, false}, "streamGenerateContent": {contents, true},
	"rawPredict": {messages, false}, "streamRawPredict": {messages, true},
	"converse": {converse, false}, "converse-stream": {converse, true},
	"invoke": {messages, false}, "invoke-with-response-stream": {messages, true},
}

// cloudRoute is route for a cloud.
func cloudRoute(api API, path string) (what shape, model string, streams bool) {
	match := cloudPaths[api].FindStringSubmatch(path)
	if match == nil {
		return "", "", false
	}
	work := cloudWork[match[2]]
	return work.what, match[1], work.streams
}

func (a API) isCloud() bool { return cloudPaths[a] != nil }

// contentsVoice is Gemini's.
type contentsVoice struct{ *call }

func (v contentsVoice) chunk(text, reason string) map[string]any {
	candidate := map[string]any{
		"index": 0, "content": map[string]any{"role": "model", "parts": []any{map[string]any{"text": text}}},
	}
	if reason != "" {
		candidate["finishReason"] = reason
	}
	return map[string]any{
		"candidates": []any{candidate}, "modelVersion": v.request.Model, "responseId": v.id,
		"usageMetadata": map[string]any{
			"promptTokenCount": v.prompt.tokens, "candidatesTokenCount": v.written,
			"totalTokenCount": v.prompt.tokens + v.written,
		},
	}
}

func (v contentsVoice) reason() string {
	if v.cut() {
		return "MAX_TOKENS"
	}
	return "STOP"
}

func (v contentsVoice) plain() any               { return v.chunk(v.text(0), v.reason()) }
func (contentsVoice) open() []event              { return nil }
func (v contentsVoice) part(text string) []event { return []event{{"", v.chunk(text, "")}} }
func (v contentsVoice) close() []event           { return []event{{"", v.chunk("", v.reason())}} }

// converseVoice is Bedrock's own.
type converseVoice struct{ *call }

func (v converseVoice) usage() map[string]any {
	return map[string]any{
		"inputTokens": v.prompt.tokens, "outputTokens": v.written, "totalTokens": v.prompt.tokens + v.written,
	}
}

func (v converseVoice) reason() string {
	if v.cut() {
		return "max_tokens"
	}
	return "end_turn"
}

func (v converseVoice) metrics() map[string]any {
	return map[string]any{"latencyMs": v.s.config.Latency.Milliseconds()}
}

func (v converseVoice) plain() any {
	return map[string]any{
		"output": map[string]any{"message": map[string]any{
			"role": "assistant", "content": []any{map[string]any{"text": v.text(0)}},
		}},
		"stopReason": v.reason(), "usage": v.usage(), "metrics": v.metrics(),
	}
}

func (converseVoice) open() []event {
	return []event{{"messageStart", map[string]any{"role": "assistant"}}}
}

func (converseVoice) part(text string) []event {
	return []event{{"contentBlockDelta", map[string]any{
		"contentBlockIndex": 0, "delta": map[string]any{"text": text},
	}}}
}

func (v converseVoice) close() []event {
	return []event{
		{"contentBlockStop", map[string]any{"contentBlockIndex": 0}},
		{"messageStop", map[string]any{"stopReason": v.reason()}},
		{"metadata", map[string]any{"usage": v.usage(), "metrics": v.metrics()}},
	}
}

// cloudBody is a refusal in the shape of a cloud.
func (r refusal) cloudBody(api API, message string, wait time.Duration) map[string]any {
	if api == Bedrock {
		return map[string]any{"message": message}
	}
	const prefix = "type.googleapis.com/google.rpc."
	details := []any{}
	if r.code != "" {
		details = append(details, map[string]any{"@type": prefix + "QuotaFailure", "violations": []any{
			map[string]any{"quotaId": r.code, "quotaMetric": "generativelanguage.googleapis.com/" + r.code},
		}})
	}
	if wait > 0 {
		details = append(details, map[string]any{
			"@type": prefix + "RetryInfo", "retryDelay": fmt.Sprintf("%gs", wait.Seconds()),
		})
	}
	return map[string]any{"error": map[string]any{
		"code": r.status, "message": message, "status": r.kind, "details": details,
	}}
}

const amzError = ":http://internal.amazon.com/coral/com.amazon.bedrock/"

// framed is an event as a stream of this call has it.
func (c *call) framed(e event, data string) []byte {
	switch {
	case c.s.config.API == Bedrock && e.name == exception:
		name := refusals[Bedrock][c.fault.Cause].kind
		return stream.AppendMessage(nil, data, ":exception-type", strings.ToLower(name[:1])+name[1:],
			":content-type", "application/json", ":message-type", "exception")
	case c.s.config.API == Bedrock:
		name := e.name
		if c.what == messages {
			wrapped, err := json.Marshal(map[string]string{"bytes": base64.StdEncoding.EncodeToString([]byte(data))})
			if err != nil {
				panic(fmt.Sprintf("text has no encoding: %v", err))
			}
			name, data = "chunk", string(wrapped)
		}
		return stream.AppendMessage(nil, data, ":event-type", name, ":content-type", "application/json",
			":message-type", "event")
	case c.elements:
		before := ",\r\n"
		if c.sentAny {
			return []byte(before + data)
		}
		c.sentAny = true
		return []byte("[" + data)
	case e.name != "":
		data = "event: " + e.name + "\ndata: " + data
	default:
		data = "data: " + data
	}
	return []byte(data + "\n\n")
}

// exception is what an error within a stream of Bedrock's is called here.
const exception = "exception"

// contentType is that of a stream.
func (c *call) contentType() string {
	switch {
	case c.s.config.API == Bedrock:
		return "application/vnd.amazon.eventstream"
	case c.elements:
		return "application/json; charset=UTF-8"
	default:
		return "text/event-stream; charset=utf-8"
	}
}
