package provider

import (
	"net/http"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// FuzzClassify wants whatever a provider answers to be something that the authority
// takes, and money never to be retried.
func FuzzClassify(f *testing.F) {
	for _, list := range [][]answered{
		openAIAnswers, anthropicAnswers, azureAnswers, compatibleAnswers, geminiAnswers, vertexAnswers, bedrockAnswers,
	} {
		for _, c := range list {
			f.Add(c.status, c.header.Get("Retry-After"), "", []byte(c.body))
		}
	}
	f.Add(429, "1e400", "", []byte(`[[[{"error":{"details":[{"error_code":1}]}}]]]`))
	f.Add(200, "", "error", []byte("{\"error\":{\"code\":5e2}}"))
	f.Fuzz(func(t *testing.T, status int, after, event string, body []byte) {
		h := http.Header{}
		h.Set("Retry-After", after)
		if event != "" {
			h.Set("Content-Type", "text/event-stream")
		}
		for _, table := range tables {
			if table.Errors != "" {
				h.Set(table.Errors, event)
			}
			v := table.Classify(Answer{
				Status: status, Header: h, Body: body, Event: event, Wall: wall, Fault: event != "" && event != "error",
			})
			if v.Class == HardQuota && v.MayRetry() || v.Class == TooLarge && v.MayRetry() {
				t.Errorf("%s may be retried", v.Class)
			}
			if v.Wait.For < 0 || v.Wait.For > WaitMax || !v.Wait.Said && v.Wait.For != 0 {
				t.Errorf("wait %+v", v.Wait)
			}
			if !v.Resumes.IsZero() && (v.Resumes.Before(wall) || v.Class != HardQuota) {
				t.Errorf("%s resumes %s", v.Class, v.Resumes)
			}
			if v.Class.String() == "UNKNOWN" || status == 429 && v.Class == Other {
				t.Errorf("%d is %s", status, v.Class)
			}
			a, told := v.Answer()
			if len(a.Reason) > codeMax || !utf8.ValidString(a.Reason) {
				t.Errorf("reason %q", a.Reason)
			}
			for _, r := range a.Reason {
				if !unicode.IsPrint(r) {
					t.Errorf("reason %q", a.Reason)
				}
			}
			if told && (a.Kind == 0 || a.Wait < 0 || a.Wait > 24*time.Hour) {
				t.Errorf("told %+v", a)
			}
		}
	})
}

// FuzzHeaders wants whatever headers say to be a wait, a count and a time, or
// garbage.
func FuzzHeaders(f *testing.F) {
	for _, value := range []string{
		"22", "1.5", "-1", "1e300", "NaN", "0x10", "120ms", "6m0s", "23h18m29.144s", "2026-08-20T12:00:45Z",
		"Thu, 20 Aug 2026 12:00:30 GMT", "", "9223372036854775808", "1h-1h", "0001-01-01T00:00:00Z",
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, table := range tables {
			h := http.Header{}
			for i := range table.Headers {
				h.Set(table.Headers[i].Limit, value)
				h.Set(table.Headers[i].Remaining, value)
				h.Set(table.Headers[i].Reset, value)
			}
			for _, w := range waitHeaders {
				h.Set(w.name, value)
			}
			limits := table.ParseLimits(h, wall, nil)
			for _, seen := range limits.Seen {
				if seen.Limit < -1 || seen.Limit > countMax || seen.Remaining < -1 || seen.Remaining > countMax ||
					seen.Full < 0 || seen.Full > fullMax {
					t.Errorf("%q: %+v", value, seen)
				}
			}
			for dimension, left := range limits.Remaining() {
				if left < 0 || left > countMax || dimension == "" {
					t.Errorf("%q: %d of %q", value, left, dimension)
				}
			}
			if w := ParseWait(h, wall); w.For < 0 || w.For > WaitMax || !w.Said && w.Garbage != len(waitHeaders) {
				t.Errorf("%q: %+v", value, w)
			}
		}
	})
}
