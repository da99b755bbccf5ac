package provider

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/client/feedback"
	"github.com/quorlease/quorlease/client/gateway/stream"
)

var wall = time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC)

// answerOf is an answer as it comes: of a stream its first event.
func answerOf(t *testing.T, status int, h http.Header, body string) Answer {
	t.Helper()
	a := Answer{Status: status, Header: h, Body: []byte(body), Wall: wall}
	if a.isStream() {
		f, err := stream.NewReader(strings.NewReader(body), stream.Options{}).First()
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		a.Body, a.Event = f.Data, f.Event
	}
	return a
}

func testAnswers(t *testing.T, list []answered) {
	t.Helper()
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			table, err := Named(c.table)
			if err != nil {
				t.Fatal(err)
			}
			a := answerOf(t, c.status, c.header, c.body)
			a.Configured = map[string]int64{Tokens: 100000}
			v := table.Classify(a)
			got := answered{
				c.name, c.table, c.status, c.header, c.body,
				v.Class, v.Scope, v.Dimension, v.Reason, v.Wait.For, v.MayRetry(),
			}
			if diff := cmp.Diff(c, got, cmp.AllowUnexported(answered{})); diff != "" {
				t.Errorf("%s %d %v %s (-want +got):\n%s", c.table, c.status, c.header, c.body, diff)
			}
			if found := v.Row != (Seen{}); found != (c.want != None && c.want != Other) {
				t.Errorf("row %+v of %s", v.Row, v.Class)
			}
		})
	}
}

// TestEveryCode is the list of what providers were seen to answer.
func TestEveryCode(t *testing.T) {
	t.Run("S3-27_openai", func(t *testing.T) { testAnswers(t, openAIAnswers) })
	t.Run("S3-27_anthropic", func(t *testing.T) { testAnswers(t, anthropicAnswers) })
	t.Run("S3-27_azure", func(t *testing.T) { testAnswers(t, azureAnswers) })
	t.Run("S3-27_compatible", func(t *testing.T) { testAnswers(t, compatibleAnswers) })
	t.Run("S3-27_gemini", func(t *testing.T) { testAnswers(t, geminiAnswers) })
	t.Run("S3-27_vertex", func(t *testing.T) { testAnswers(t, vertexAnswers) })
	t.Run("S3-27_bedrock", func(t *testing.T) { testAnswers(t, bedrockAnswers) })
}

func TestWhatASpendCapTells(t *testing.T) {
	t.Run("S3-27_no_wait_and_the_day_of_its_end", func(t *testing.T) {
		v := anthropic.Classify(Answer{
			Status: 400, Body: []byte(an("invalid_request_error",
				"You have reached your specified API usage limits. You will regain access on 2026-09-01 at 00:00 UTC.")),
			Wall: wall, Header: header("Retry-After", "5", "Anthropic-Ratelimit-Requests-Remaining", "7"),
		})
		if want := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC); !v.Resumes.Equal(want) {
			t.Errorf("resumes %s, want %s", v.Resumes, want)
		}
		a, told := v.Answer()
		want := feedback.Answer{Kind: feedback.SpendCap, Reason: "invalid_request_error"}
		if diff := cmp.Diff(want, a); !told || diff != "" {
			t.Errorf("told %t (-want +got):\n%s", told, diff)
		}
	})
	for _, message := range []string{
		"access on 2026-08-20", "access on 2020-01-01 at 00:00 UTC", "on 2029-01-01", "on 2026-13-45",
		"on 2026-09-01 at 77:00", "",
	} {
		if got := resumes(message, wall); !got.IsZero() {
			t.Errorf("%q resumes %s, want never", message, got)
		}
	}
}

func TestWhatTheAuthorityHears(t *testing.T) {
	left := header("Retry-After", "22", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Remaining-Requests", "40")
	remaining := map[string]int64{Tokens: 0, Requests: 40}
	cases := []struct {
		name   string
		answer Answer
		want   feedback.Answer
		told   bool
	}{
		{
			"S1-05_a_wait_and_nothing_left",
			Answer{Status: 429, Header: left},
			feedback.Answer{Kind: feedback.Throttled, Wait: 22 * time.Second, Remaining: remaining},
			true,
		},
		{
			"S3-30_no_hint_is_none",
			Answer{Status: 429},
			feedback.Answer{Kind: feedback.Throttled},
			true,
		},
		{
			"S3-01_what_an_answer_says_is_left",
			Answer{Status: 200, Header: left},
			feedback.Answer{Kind: feedback.Observed, Remaining: remaining},
			true,
		},
		{"nothing_of_an_answer_without_headers", Answer{Status: 200}, feedback.Answer{Kind: feedback.Observed}, false},
		{
			"nobody's_limit_is_used_up_by_overload",
			Answer{Status: 503, Header: left},
			feedback.Answer{Kind: feedback.Overloaded, Wait: 22 * time.Second},
			true,
		},
		{
			"growth",
			Answer{Status: 429, Body: []byte(oa("rate_limit_error", "slow_down", ""))},
			feedback.Answer{Kind: feedback.Acceleration, Reason: "slow_down"},
			true,
		},
		{
			"another_error_has_headers_too",
			Answer{Status: 400, Header: left, Body: []byte(oa("x", "y", "z"))},
			feedback.Answer{Kind: feedback.Observed, Remaining: remaining},
			true,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := openAI.Classify(c.answer)
			got, told := v.Answer()
			if diff := cmp.Diff(c.want, got); told != c.told || diff != "" {
				t.Errorf("told %t, want %t (-want +got):\n%s", told, c.told, diff)
			}
		})
	}
	t.Run("the_advertised_limit", func(t *testing.T) {
		v := azure.Classify(Answer{
			Status: 429, Header: header("X-Ratelimit-Limit-Tokens", "60000"), Configured: map[string]int64{Tokens: 100000},
		})
		if v.Class != Adapt || v.Advertised != 60000 {
			t.Errorf("%s of %d, want ADAPT of 60000", v.Class, v.Advertised)
		}
	})
}

func TestHostileBodies(t *testing.T) {
	deep := strings.Repeat(`{"error":[`, 1<<16)
	for name, body := range map[string]string{
		"deep": deep, "cut": `{"error":{"code":"slow_down","message":"half of`, "not_closed": `{"error":{"code":"slow_down"`,
		"huge": `{"error":{"code":"slow_down","message":"` + strings.Repeat("x", 1<<20) + `"}}`,
		"keys": `{"` + strings.Repeat("k", 1<<17) + `":1}`, "binary": "\xff\x00\xfe", "long": strings.Repeat("a", 1<<20),
		"code": `{"error":{"code":"` + strings.Repeat("\u00e9\x01", 1000) + `"}}`,
	} {
		v := openAI.Classify(Answer{Status: 429, Body: []byte(body)})
		want := Transient
		if strings.Contains(body, "slow_down") {
			want = Acceleration
		}
		if v.Class != want || len(v.Reason) > codeMax {
			t.Errorf("%s: %s because of %d bytes, want %s", name, v.Class, len(v.Reason), want)
		}
	}
	within := func(arrays int) Class {
		body := strings.Repeat("[", arrays) + `{"error":{"code":"slow_down"}}`
		v := openAI.Classify(Answer{Status: 429, Body: []byte(body)})
		return v.Class
	}
	if near, far := within(depthMax-2), within(depthMax+2); near != Acceleration || far != Transient {
		t.Errorf("%s within few arrays, %s within too many, want ACCELERATION and TRANSIENT_RATE", near, far)
	}
}

// An event is read as an error however that is spelled, and not where a text speaks of one.
func TestEventsThatMayBeErrors(t *testing.T) {
	t.Parallel()
	openAI, err := Named(NameOpenAI)
	if err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string]Class{
		`{"error":{"code":"insufficient_quota","type":"insufficient_quota"}}`:      HardQuota,
		`{"\u0065rror":{"code":"insufficient_quota","type":"insufficient_quota"}}`: HardQuota,
		`{"choices":[{"delta":{"content":"the error insufficient_quota"}}]}`:       None,
		`{"choices":[{"delta":{"content":"\u00e9"}}]}`:                             None,
	} {
		v := openAI.Classify(Answer{
			Status: 200, Header: header("Content-Type", "text/event-stream"), Body: []byte(data), Wall: wall,
		})
		if v.Class != want {
			t.Errorf("%s is %s, want %s", data, v.Class, want)
		}
	}
}
