package provider

import (
	"encoding/json"
	"testing"
	"time"
	_ "time/tzdata" // what the rule is compared with

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/client/feedback"
)

// google is a body of an error of Google's, with the ids of quotas and a delay.
func google(code int, status, message, delay string, quotas ...string) string {
	details := []any{}
	var violations []any
	for _, id := range quotas {
		violations = append(violations, map[string]any{
			"quotaId": id, "quotaMetric": "generativelanguage.googleapis.com/x", "quotaDimensions": map[string]any{"model": "m"},
		})
	}
	if violations != nil {
		details = append(details, map[string]any{
			"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations,
		})
	}
	if delay != "" {
		details = append(details, map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
	}
	text, err := json.Marshal(map[string]any{"error": map[string]any{
		"code": code, "message": message, "status": status, "details": details,
	}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

const (
	exhausted = "RESOURCE_EXHAUSTED"
	current   = "You exceeded your current quota, please check your plan and billing details."
	perMinute = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
	perDay    = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
	inputs    = "GenerateContentInputTokensPerModelPerMinute-FreeTier"
)

var geminiAnswers = []answered{
	{
		"a_minute_of_requests", NameGemini, 429, nil,
		google(429, exhausted, current+" Please retry in 33.4s.", "33s", perMinute),
		Transient, Project, Requests, "generaterequestsperminuteperprojectpermodel-freetier", 33400 * time.Millisecond, true,
	},
	{
		"a_minute_of_tokens", NameGemini, 429, nil, google(429, exhausted, current, "33.5s", inputs),
		Transient, Project, InputTokens, "generatecontentinputtokenspermodelperminute-freetier",
		33500 * time.Millisecond, true,
	},
	{
		"a_day_though_it_says_seconds", NameGemini, 429, nil, google(429, exhausted, current, "52s", perMinute, perDay),
		HardQuota, Project, "", "generaterequestsperminuteperprojectpermodel-freetier", 52 * time.Second, false,
	},
	{
		"a_model_without_any", NameGemini, 429, nil,
		google(429, exhausted, current+"\n* Quota exceeded for metric: x, limit: 0, model: m\nPlease retry in 45s.",
			"45s", perMinute),
		HardQuota, Project, "", "generaterequestsperminuteperprojectpermodel-freetier", 45 * time.Second, false,
	},
	{
		"hours", NameGemini, 429, nil, google(429, exhausted, current, "30000s"),
		HardQuota, Project, "", "resource_exhausted", 30000 * time.Second, false,
	},
	{
		"no_hint_at_all", NameGemini, 429, nil, google(429, exhausted, "Resource has been exhausted (e.g. check quota).", ""),
		HardQuota, Project, "", "resource_exhausted", 0, false,
	},
	{
		"a_hint_and_no_quota", NameGemini, 429, nil, google(429, exhausted, current, "7s"),
		Transient, "", "", "resource_exhausted", 7 * time.Second, true,
	},
	{
		"newer_rate", NameGemini, 429, nil, google(429, "rate_limit_exceeded", "Slower.", ""),
		Transient, Project, "", "rate_limit_exceeded", 0, true,
	},
	{
		"newer_day", NameGemini, 429, nil, google(429, "quota_exceeded", "Tomorrow.", ""),
		HardQuota, Project, "", "quota_exceeded", 0, false,
	},
	{
		"spend_over_ten_minutes", NameGemini, 429, nil, google(429, exhausted, "A spend-based limit is reached.", ""),
		Transient, Project, "", "resource_exhausted", 0, true,
	},
	{
		"spend_of_a_month", NameGemini, 429, nil, google(429, exhausted, "Your project has reached its spend cap.", "3s"),
		HardQuota, Project, "", "resource_exhausted", 3 * time.Second, false,
	},
	{"billing", NameGemini, 402, nil, "", HardQuota, Project, "", "", 0, false},
	{
		"busy", NameGemini, 503, nil, google(503, "UNAVAILABLE", "The model is overloaded.", ""),
		Overload, Everybody, "", "unavailable", 0, true,
	},
	{
		"busy_in_a_stream", NameGemini, 200, header("Content-Type", "text/event-stream"),
		"data: " + google(503, "UNAVAILABLE", "The model is overloaded.", "") + "\n\n",
		Overload, Everybody, "", "unavailable", 0, true,
	},
	{
		"a_bad_request", NameGemini, 400, nil, google(400, "INVALID_ARGUMENT", "limit: 0", ""),
		Other, "", "", "invalid_argument", 0, false,
	},
}

var vertexAnswers = []answered{
	{
		"what_everybody_shares", NameVertex, 429, nil,
		google(429, exhausted, "Resource exhausted, please try again later.", ""),
		Overload, Everybody, "", "resource_exhausted", time.Second, true,
	},
	{
		"what_is_paid_for", NameVertex, 429, nil,
		google(429, exhausted, "Too many requests. Exceeded the Provisioned Throughput.", ""),
		Transient, Deployment, "", "resource_exhausted", 0, true,
	},
	{
		"a_quota", NameVertex, 429, nil,
		google(429, exhausted, "Quota exceeded for aiplatform.googleapis.com/"+
			"generate_content_requests_per_minute_per_project_per_base_model with base model: m.", ""),
		Transient, Project, Requests, "resource_exhausted", 0, true,
	},
	{
		"claude_is_busy", NameVertex, 529, nil, an("overloaded_error", "Overloaded"),
		Overload, Everybody, "", "overloaded_error", 0, true,
	},
	{
		"busy", NameVertex, 503, nil, google(503, "UNAVAILABLE", "Unavailable.", ""),
		Overload, Everybody, "", "unavailable", 0, true,
	},
}

func aws(name string) []string {
	return []string{"X-Amzn-Errortype", name + ":http://internal.amazon.com/coral/com.amazon.bedrock/"}
}

var bedrockAnswers = []answered{
	{
		"tokens", NameBedrock, 429, header(aws("ThrottlingException")...),
		`{"message":"Too many tokens, please wait before trying again."}`,
		Transient, Organization, Tokens, "throttlingexception", 0, true,
	},
	{
		"requests", NameBedrock, 429, nil,
		`{"__type":"com.amazon.coral.service#ThrottlingException","message":"Too many requests, please wait."}`,
		Transient, Organization, Requests, "throttlingexception", 0, true,
	},
	{
		"a_day", NameBedrock, 429, header(aws("ThrottlingException")...),
		`{"message":"Too many tokens per day, please wait before trying again."}`,
		LongWindow, Organization, Tokens, "throttlingexception", time.Hour, true,
	},
	{
		"cold", NameBedrock, 429, header(aws("ModelNotReadyException")...), `{"message":"The model is not ready."}`,
		Overload, Deployment, "", "modelnotreadyexception", 0, true,
	},
	{
		"capacity", NameBedrock, 503, header(aws("ServiceUnavailableException")...), `{"message":"Bedrock is unable."}`,
		Overload, Everybody, "", "serviceunavailableexception", 0, true,
	},
	{
		"quota", NameBedrock, 400, header(aws("ServiceQuotaExceededException")...), `{"message":"A quota."}`,
		HardQuota, Organization, "", "servicequotaexceededexception", 0, false,
	},
	{
		"a_bad_request", NameBedrock, 400, header(aws("ValidationException")...), `{"message":"Too many tokens"}`,
		Other, "", "", "validationexception", 0, false,
	},
}

func TestWhatAFramedExceptionMeans(t *testing.T) {
	t.Run("S3-27_bedrock_in_a_stream", func(t *testing.T) {
		v := bedrock.Classify(Answer{
			Status: 200, Framed: true, Fault: true, Event: "throttlingException",
			Body: []byte(`{"message":"Too many tokens, please wait before trying again."}`), Wall: wall,
		})
		if v.Class != Transient || v.Dimension != Tokens || v.Reason != "throttlingexception" {
			t.Errorf("%+v", v)
		}
		v = bedrock.Classify(Answer{
			Status: 200, Framed: true, Event: "contentBlockDelta", Body: []byte(`{"delta":{"text":"error"}}`), Wall: wall,
		})
		if v.Class != None {
			t.Errorf("an event is %s", v.Class)
		}
		busy := google(503, "UNAVAILABLE", "Overloaded.", "")
		if v = gemini.Classify(Answer{Status: 200, Framed: true, Body: []byte(busy), Wall: wall}); v.Class != Overload {
			t.Errorf("an element that is an error is %s", v.Class)
		}
	})
}

// TestADayEndsByItself: a quota of a day is over at midnight Pacific, and one of hours when
// they have passed, without anybody doing anything.
func TestADayEndsByItself(t *testing.T) {
	t.Run("S3-27_a_day_of_gemini", func(t *testing.T) {
		v := gemini.Classify(Answer{Status: 429, Wall: wall, Body: []byte(google(429, exhausted, current, "52s", perDay))})
		if want := time.Date(2026, 8, 21, 7, 0, 0, 0, time.UTC); !v.Resumes.Equal(want) {
			t.Errorf("resumes %s, want %s", v.Resumes, want)
		}
		a, told := v.Answer()
		if !told || a.Kind != feedback.SpendCap || a.Wait != 0 {
			t.Errorf("told %+v", a)
		}
	})
	t.Run("S3-27_hours_of_gemini", func(t *testing.T) {
		v := gemini.Classify(Answer{Status: 429, Wall: wall, Body: []byte(google(429, exhausted, current, "7200s"))})
		if want := wall.Add(2 * time.Hour); !v.Resumes.Equal(want) {
			t.Errorf("resumes %s, want %s", v.Resumes, want)
		}
	})
}

// TestMidnightPacific compares the rule with the time zone's table.
func TestMidnightPacific(t *testing.T) {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(rapid.Int64Range(1_200_000_000, 2_000_000_000).Draw(t, "now"), 0)
		local := now.In(zone)
		want := time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, zone)
		if got := midnightPacific(now); !got.Equal(want) {
			t.Fatalf("at %s: %s, want %s", local, got.In(zone), want)
		}
	})
}

func TestCloudAmounts(t *testing.T) {
	work := Work{Input: 2500, CacheRead: 2000, MaxOutput: 300}
	usage := Usage{Fresh: 100, CacheRead: 2000, CacheWrite: 400, Output: 250}
	claude := usage
	claude.Model = "us.anthropic.claude-sonnet-4-20250514-v1:0"
	for _, c := range []struct {
		name         string
		table        *Table
		usage        Usage
		charge, uses map[string]int64
	}{
		{
			"S3-04_gemini_counts_input", &gemini, usage,
			map[string]int64{Requests: 1, InputTokens: 2500},
			map[string]int64{InputTokens: 2500},
		},
		{
			"S3-04_vertex_counts_both", &vertex, usage,
			map[string]int64{Requests: 1, InputTokens: 2500, OutputTokens: 1},
			map[string]int64{InputTokens: 2500, OutputTokens: 250},
		},
		{
			"S3-04_bedrock_reserves_what_the_cache_has", &bedrock, usage,
			map[string]int64{Requests: 1, Tokens: 2800},
			map[string]int64{Tokens: 750},
		},
		{
			"S3-09_bedrock_counts_output_of_claude_five_times", &bedrock, claude,
			map[string]int64{Requests: 1, Tokens: 2800},
			map[string]int64{Tokens: 1750},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.charge, c.table.Counting.Charge(work)); diff != "" {
				t.Errorf("charge (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.uses, c.table.Counting.Settle(c.usage)); diff != "" {
				t.Errorf("settle (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCloudRoutes(t *testing.T) {
	const claude = "us.anthropic.claude-sonnet-4-20250514-v1:0"
	for _, c := range []struct {
		table      *Table
		path       string
		deployment string
		kind       Kind
		body       Body
		streams    bool
	}{
		{&gemini, "/v1beta/models/gemini-2.5-flash:generateContent", "gemini-2.5-flash", Chat, GoogleBody, false},
		{&gemini, "/v1beta/models/gemini-2.5-flash:streamGenerateContent", "gemini-2.5-flash", Chat, GoogleBody, true},
		{&gemini, "/v1/models/e:embedContent", "e", Embeddings, GoogleBody, false},
		{&gemini, "/v1beta/models/gemini-2.5-flash:countTokens", "", "", 0, false},
		{&gemini, "/v1beta/models/:generateContent", "", "", 0, false},
		{&gemini, "/v1beta/models/gemini-2.5-flash", "", "", 0, false},
		{
			&vertex, "/v1beta1/projects/p/locations/l/publishers/google/models/g:streamGenerateContent", "g", Chat,
			GoogleBody, true,
		},
		{&vertex, "/v1/publishers/google/models/g:generateContent", "g", Chat, GoogleBody, false},
		{
			&vertex, "/v1/projects/p/locations/l/publishers/anthropic/models/claude:streamRawPredict", "claude", Messages,
			AnthropicBody, false,
		},
		{&vertex, "/v1/projects/p/locations//publishers/google/models/g:generateContent", "", "", 0, false},
		{&bedrock, "/model/" + claude + "/converse", claude, Chat, AWSBody, false},
		{&bedrock, "/model/" + claude + "/converse-stream", claude, Chat, AWSBody, true},
		{&bedrock, "/model/" + claude + "/invoke", claude, Invoke, AWSBody, false},
		{
			&bedrock, "/model/arn:aws:bedrock:us-east-1:1:inference-profile/" + claude + "/invoke-with-response-stream",
			claude, Invoke, AWSBody, true,
		},
		{&bedrock, "/model/x/y/invoke", "", "", 0, false},
	} {
		m, ok := c.table.Route(c.path)
		if ok != (c.kind != "") {
			t.Errorf("%s: %t", c.path, ok)
			continue
		}
		if ok && (m.Deployment != c.deployment || m.Kind != c.kind || m.Body != c.body || m.Streams != c.streams) {
			t.Errorf("%s: %q %+v", c.path, m.Deployment, m.Route)
		}
	}
}
