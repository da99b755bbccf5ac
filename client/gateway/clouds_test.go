package gateway_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/stream"
)

// in is a gateway in front of a deployment in a cloud.
func in(t *testing.T, cloud, host, key string) func(*gateway.Config) {
	t.Helper()
	table, err := provider.Named(cloud)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *gateway.Config) {
		c.Deployments = []gateway.Deployment{{
			Name: cloud, Provider: table, Upstream: &url.URL{Scheme: "https", Host: host}, Key: key,
		}}
	}
}

// askAt sends a body to an address through the gateway.
func (w *world) askAt(address, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(w.t.(*testing.T).Context(), http.MethodPost, address, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:1234"
	r.Header.Set("X-Client-Id", "a")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return w.serve(r)
}

const (
	contents  = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":9}}`
	converse  = `{"messages":[{"role":"user","content":[{"text":"hi"}]}],"inferenceConfig":{"maxTokens":300}}`
	atGemini  = "http://localhost/v1beta/models/gemini-2.5-flash"
	atBedrock = "http://localhost/model/us.anthropic.claude-sonnet-4-20250514-v1%3A0/converse"
	bedrockAt = "bedrock-runtime.us-east-1.amazonaws.com"
)

func TestKeysOfClouds(t *testing.T) {
	t.Run("gemini_in_a_header_or_the_query", func(t *testing.T) {
		bubble(t, in(t, provider.NameGemini, "g.example", "theirs"), func(t *testing.T, w *world) {
			w.askAt(atGemini+":generateContent?key=mine&%61ccess_token=x&alt=json", contents, "X-Goog-Api-Key", "mine")
			got := w.all()[0]
			if got.path != "https://g.example/v1beta/models/gemini-2.5-flash:generateContent?alt=json" ||
				got.header.Get("X-Goog-Api-Key") != "theirs" {
				t.Errorf("%s %v", got.path, got.header)
			}
		})
	})
	t.Run("gemini_as_the_client_sends_it", func(t *testing.T) {
		bubble(t, in(t, provider.NameGemini, "g.example", ""), func(t *testing.T, w *world) {
			w.askAt(atGemini+":generateContent?key=mine", contents, "X-Goog-Api-Key", "mine")
			got := w.all()[0]
			if !strings.HasSuffix(got.path, "?key=mine") || got.header.Get("X-Goog-Api-Key") != "mine" {
				t.Errorf("%s %v", got.path, got.header)
			}
		})
	})
	const signature = "AWS4-HMAC-SHA256 Credential=AKIA/20261201/us-east-1/bedrock/aws4_request, Signature=00"
	for _, row := range []struct {
		name, key, host, authorization string
		want                           string
	}{
		{"bedrock_by_a_key_of_the_deployment", "theirs", bedrockAt, signature, "Bearer theirs"},
		{"bedrock_by_a_key_of_the_client", "", bedrockAt, "Bearer mine", "Bearer mine"},
		{"bedrock_signed_for_its_own_host", "", "localhost", signature, signature},
		{"bedrock_signed_for_the_gateway", "", bedrockAt, signature, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, in(t, provider.NameBedrock, row.host, row.key), func(t *testing.T, w *world) {
				got := w.askAt(atBedrock, converse, "Authorization", row.authorization, "X-Amz-Security-Token", "session")
				if row.want == "" {
					if got.Code != http.StatusBadRequest || w.hits.Load() != 0 ||
						got.Header().Get("X-Amzn-Errortype") != "ValidationException" ||
						!strings.Contains(got.Body.String(), `signed for the host \"localhost\"`) {
						t.Errorf("%d %s", got.Code, got.Body)
					}
					return
				}
				sent := w.all()[0]
				token := sent.header.Get("X-Amz-Security-Token")
				if sent.header.Get("Authorization") != row.want || (token == "") != (row.key != "") ||
					!strings.HasSuffix(sent.path, "/model/us.anthropic.claude-sonnet-4-20250514-v1%3A0/converse") {
					t.Errorf("%s %v", sent.path, sent.header)
				}
			})
		})
	}
}

// binary is a stream of Bedrock's.
func binary(messages ...[]byte) *http.Response {
	answer := says(http.StatusOK, string(bytes.Join(messages, nil)), "Content-Type", "application/vnd.amazon.eventstream")
	answer.ContentLength = -1
	return answer
}

func eventOf(name, payload string) []byte {
	return stream.AppendMessage(nil, payload, ":event-type", name, ":message-type", "event")
}

func TestStreamsOfClouds(t *testing.T) {
	t.Run("S3-18_an_exception_after_a_200_of_bedrock", func(t *testing.T) {
		bubble(t, in(t, provider.NameBedrock, bedrockAt, "k"), func(t *testing.T, w *world) {
			said := [][]byte{
				eventOf("messageStart", `{"role":"assistant"}`), eventOf("messageStop", `{"stopReason":"end_turn"}`),
				eventOf("metadata", `{"usage":{"inputTokens":20,"outputTokens":40}}`),
			}
			w.answer = func(*http.Request) *http.Response {
				if w.hits.Load() == 1 {
					return binary(stream.AppendMessage(nil, `{"message":"Too many tokens, please wait."}`,
						":exception-type", "throttlingException", ":message-type", "exception"))
				}
				return binary(said...)
			}
			got := w.askAt(atBedrock+"-stream", converse)
			want := bytes.Join(said, nil)
			if got.Code != http.StatusOK || !bytes.Equal(got.Body.Bytes(), want) || w.hits.Load() != 2 {
				t.Errorf("%d %q after %d tries", got.Code, got.Body, w.hits.Load())
			}
			pass(time.Second)
			if e := w.Stats().Estimates; e.Requests() != 1 {
				t.Errorf("%d answers said what they used", e.Requests())
			}
		})
	})
	t.Run("S3-18_an_element_that_is_an_error_of_gemini", func(t *testing.T) {
		bubble(t, in(t, provider.NameGemini, "g.example", "k"), func(t *testing.T, w *world) {
			const elements = "[{\"candidates\":[]}\n,\r\n{\"candidates\":[{\"finishReason\":\"STOP\"}]," +
				"\"usageMetadata\":{\"promptTokenCount\":7,\"candidatesTokenCount\":3}}\n]\n"
			w.answer = func(*http.Request) *http.Response {
				answer := says(http.StatusOK, elements)
				if w.hits.Load() == 1 {
					answer = says(http.StatusOK, `[{"error":{"code":503,"message":"Busy.","status":"UNAVAILABLE"}}]`)
				}
				answer.ContentLength = -1
				return answer
			}
			got := w.askAt(atGemini+":streamGenerateContent", contents)
			if got.Code != http.StatusOK || got.Body.String() != elements || w.hits.Load() != 2 {
				t.Errorf("%d %q after %d tries", got.Code, got.Body, w.hits.Load())
			}
			pass(time.Second)
			if e := w.Stats().Estimates; e.Requests() != 1 {
				t.Errorf("%d answers said what they used", e.Requests())
			}
		})
	})
}

// TestOutputThatCountsMoreThanOnce: what a model's output counts is told to the authority.
func TestOutputThatCountsMoreThanOnce(t *testing.T) {
	t.Run("S3-09_five_times_at_bedrock", func(t *testing.T) {
		const slow = `
limits:
- {name: deployment, match: {deployment: "*"}, exact: true, rate: {tokens: 0/h}, burst: {tokens: 10_000}}
`
		limited(t, slow, in(t, provider.NameBedrock, bedrockAt, "k"), func(t *testing.T, w *world) {
			w.answer = func(*http.Request) *http.Response {
				return says(http.StatusOK, `{"output":{"message":{"content":[{"text":"a"}]}},"stopReason":"end_turn",`+
					`"usage":{"inputTokens":20,"outputTokens":100,"cacheReadInputTokens":1000}}`)
			}
			if got := w.askAt(atBedrock, converse); got.Code != http.StatusOK {
				t.Fatalf("%d %s", got.Code, got.Body)
			}
			pass(time.Second)
			if levels, _ := w.level("deployment", ""); levels["tokens"] != 10_000-20-5*100 {
				t.Errorf("%d are left", levels["tokens"])
			}
		})
	})
}
