package sdk

import (
	"maps"
	"math"
	"strconv"
	"time"
)

// Behaviour is what an SDK does when it is refused, unless its user says otherwise.
type Behaviour struct {
	SDK Name
	// Version is the one in which it was seen.
	Version string
	// Retries is how often it tries again: attempts are one more.
	Retries int
	// HintMax is the longest hint that it waits out; what is longer it takes for none.
	HintMax time.Duration
	// HintZero: a hint of no time is one, and it comes back at once. Otherwise it is
	// taken for none.
	HintZero bool
	// HintAny: a hint is obeyed whatever it says: less than no time, and what is no
	// number, bring it back at once.
	HintAny bool
	// Classes are those of the errors that its user gets, by status; 500 is for those
	// above that have none of their own, and 0 for an error inside a stream.
	Classes map[int]string
	// SpendCap is the class for the spend cap of its provider.
	SpendCap string
	// Silent: an error inside a stream of responses is one more event to its user, and no
	// error.
	Silent bool
	// Note is what is known of its relatives.
	Note string
}

// longest is what a timer can hold.
const longest = time.Duration(math.MaxInt32) * time.Millisecond

// Behaviours are those of the versions that Install has. All of them retry connections
// that fail, 408, 409, 429 and from 500 on, obey x-should-retry before any status,
// prefer retry-after-ms to Retry-After, count their retries in
// x-stainless-retry-count, from 0 on, and read nothing in a body. Where there is no
// hint they wait half a second, doubled with each retry up to 8 s, less up to a
// quarter.
func Behaviours() []Behaviour {
	openai := Behaviour{
		SDK: OpenAI7, Version: "7.59.0", Retries: 2, HintMax: time.Minute, HintZero: true,
		Classes: classes(nil), SpendCap: "RateLimitError",
		Note: "60 s are waited out, 61 s are not: it is back after half a second. " +
			"The one for Python of August 2026 waits out 120 s, and does not retry at all above.",
	}
	azure := openai
	azure.SDK, azure.Note = Azure7, "As OpenAI's, of which it is part: it sends what the deployment's path has."
	older := openai
	older.SDK, older.Version, older.HintMax, older.HintZero, older.HintAny = OpenAI6, "6.49.0", longest, false, true
	older.Silent = true
	older.Note = "It waits out whatever it is told, an hour too, and is back at once where that is less than nothing " +
		"or no number. A stream of responses that fails ends as if it were whole, for whoever looks at no event."
	return []Behaviour{openai, older, azure, {
		SDK: Anthropic1, Version: "1.14.0", Retries: 2, HintMax: longest,
		Classes: classes(map[int]string{
			402: "PaymentRequiredError", 408: "RequestTimeoutError", 413: "ContentTooLargeError",
			503: "ServiceUnavailableError", 504: "GatewayTimeoutError", 529: "OverloadedError",
		}),
		SpendCap: "EnforcedSpendLimitReachedError",
		Note: "It waits out what a timer can hold, an hour too, and knows a spend cap, which it retries all the same. " +
			"The one for Python of August 2026 waits out 60 s, and is back after half a second above.",
	}}
}

// Expected is what a call comes to.
type Expected struct {
	// Attempts at the server.
	Attempts int
	// Waits between them, each from the shortest that it may be to the longest.
	Waits [][2]time.Duration
}

// Expect is what an SDK does with a refusal that never ends.
func (b Behaviour) Expect(r Refusal) Expected {
	retry := r.Status == 408 || r.Status == 409 || r.Status == 429 || r.Status >= 500
	switch r.Header["x-should-retry"] {
	case "true":
		retry = true
	case "false":
		retry = false
	}
	if !retry {
		return Expected{Attempts: 1}
	}
	e := Expected{Attempts: 1 + b.Retries}
	for n := range b.Retries {
		e.Waits = append(e.Waits, b.wait(r, n))
	}
	return e
}

// wait is the one after so many retries.
func (b Behaviour) wait(r Refusal, retries int) [2]time.Duration {
	if r.Date > 0 {
		// A date has whole seconds, and is some time on the way.
		return [2]time.Duration{r.Date - 10*time.Second, r.Date}
	}
	if hint, ok := b.hint(r); ok {
		return [2]time.Duration{hint, hint}
	}
	most := min(8*time.Second, time.Second/2<<retries)
	return [2]time.Duration{most * 3 / 4, most}
}

// hint is what the headers say to this SDK.
func (b Behaviour) hint(r Refusal) (time.Duration, bool) {
	for _, header := range []struct {
		name string
		unit time.Duration
	}{{"retry-after-ms", time.Millisecond}, {"Retry-After", time.Second}} {
		text, there := r.Header[header.name]
		n, err := strconv.ParseFloat(text, 64)
		hint := time.Duration(n * float64(header.unit))
		switch {
		case !there, hint == 0 && header.unit == time.Millisecond && !b.HintZero:
			// Most take 0 ms for a header that is not there.
			continue
		case b.HintAny:
			return hint, true
		default:
			return hint, err == nil && (hint > 0 && hint <= b.HintMax || hint == 0 && b.HintZero)
		}
	}
	return 0, false
}

// classes are those that all SDKs have, with more.
func classes(more map[int]string) map[int]string {
	classes := map[int]string{
		0: "APIError", 400: "BadRequestError", 401: "AuthenticationError", 403: "PermissionDeniedError",
		404: "NotFoundError", 409: "ConflictError", 422: "UnprocessableEntityError", 429: "RateLimitError",
		500: "InternalServerError",
	}
	maps.Copy(classes, more)
	return classes
}

// Class is the class of the error that its user gets for a status; "APIError" where
// there is none of its own.
func (b Behaviour) Class(status int) string {
	switch class := b.Classes[status]; {
	case class != "":
		return class
	case status >= 500:
		return b.Classes[500]
	default:
		return b.Classes[0]
	}
}
