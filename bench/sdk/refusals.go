package sdk

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/quorlease/quorlease/client/gateway/refuse"
)

// Refusal is one answer that is no success.
type Refusal struct {
	// Name is one word.
	Name   string
	Status int
	// Header is what tells the client what to do.
	Header map[string]string
	// Date, where it is not 0, is a Retry-After of that wait as a date.
	Date time.Duration
}

// Gateway are the refusals that a gateway sends (client/gateway/refuse), as a client sees
// them.
func Gateway() []Refusal {
	return []Refusal{
		told("budget", refuse.RetryBudget, 0),
		told("spend_cap", refuse.SpendCap, 0),
		told("own_limit", refuse.Rate, time.Hour),
		told("own_limit_in_ms", refuse.Rate, 1250*time.Millisecond),
		told("circuit", refuse.CircuitOpen, 30*time.Second),
		told("capacity", refuse.Capacity, 0),
		told("not_known", refuse.Unidentified, 0),
		told("forbidden", refuse.Forbidden, 0),
		told("too_large", refuse.TooLarge, 0),
		told("quota", refuse.Quota, 2*time.Hour),
	}
}

// told is what a gateway tells, with the longest of its random waits.
func told(name string, reason refuse.Reason, wait time.Duration) Refusal {
	r := refuse.Refusal{Reason: reason, Wait: wait}
	answer := r.HTTP(refuse.Asker{}, func(n int64) int64 { return n - 1 })
	header := make(map[string]string)
	for _, field := range []string{"Retry-After", "retry-after-ms", "x-should-retry", "x-retry-budget-exceeded"} {
		if value := answer.Header.Get(field); value != "" {
			header[field] = value
		}
	}
	return Refusal{Name: name, Status: answer.Status, Header: header}
}

// Edges are refusals that a gateway had better not send, or that providers do.
func Edges() []Refusal {
	after := func(text string) map[string]string { return map[string]string{"Retry-After": text} }
	edges := []Refusal{
		{"budget_by_hint_alone", 429, map[string]string{"Retry-After": "60", "retry-after-ms": "60000"}, 0},
		{"no_hint", 429, nil, 0},
		{"61_seconds", 429, after("61"), 0},
		{"121_seconds", 429, after("121"), 0},
		{"an_hour", 429, after("3600"), 0},
		{"half_a_second", 429, after("0.5"), 0},
		{"half_a_millisecond", 429, map[string]string{"Retry-After": "2", "retry-after-ms": "1250.5"}, 0},
		{"no_time", 429, after("0"), 0},
		{"no_time_in_ms", 429, map[string]string{"Retry-After": "2", "retry-after-ms": "0"}, 0},
		{"less_than_none", 429, after("-5"), 0},
		{"no_number", 429, after("soon"), 0},
		{"a_date", 429, nil, 30 * time.Second},
		{"told_to", 400, map[string]string{"x-should-retry": "true", "Retry-After": "7"}, 0},
		{"overloaded", 529, map[string]string{"Retry-After": "5"}, 0},
	}
	for name, status := range map[string]int{
		"status_400": 400, "status_402": 402, "status_404": 404, "status_408": 408, "status_409": 409, "status_422": 422,
		"status_425": 425, "status_500": 500, "status_502": 502, "status_504": 504,
	} {
		edges = append(edges, Refusal{name, status, nil, 0})
	}
	return edges
}

// Attempt is one that a Refuser has seen.
type Attempt struct {
	// Retries is what x-stainless-retry-count said.
	Retries string
}

// Refuser stands for a gateway that refuses everything: below /name/ with the
// refusal of that name. It may be called by many goroutines.
type Refuser struct {
	refusals map[string]Refusal
	mu       struct {
		sync.Mutex
		attempts map[string][]Attempt
	}
}

// attemptsMax is how many attempts are kept of each refusal.
const attemptsMax = 1000

// NewRefuser has these refusals.
func NewRefuser(refusals ...Refusal) *Refuser {
	r := &Refuser{refusals: make(map[string]Refusal)}
	r.mu.attempts = make(map[string][]Attempt)
	for _, refusal := range refusals {
		r.refusals[refusal.Name] = refusal
	}
	return r
}

// Attempts are those that met the refusal of this name, the first 1,000.
func (r *Refuser) Attempts(name string) []Attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Attempt(nil), r.mu.attempts[name]...)
}

// ServeHTTP refuses in the shape that the path asks for.
func (r *Refuser) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	name, path, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "/")
	refusal, known := r.refusals[name]
	if !known {
		http.NotFound(w, request)
		return
	}
	r.mu.Lock()
	if attempts := r.mu.attempts[name]; len(attempts) < attemptsMax {
		r.mu.attempts[name] = append(attempts, Attempt{request.Header.Get("x-stainless-retry-count")})
	}
	r.mu.Unlock()
	h := w.Header()
	for field, value := range refusal.Header {
		h.Set(field, value)
	}
	if refusal.Date > 0 {
		h.Set("Retry-After", time.Now().Add(refusal.Date).UTC().Format(http.TimeFormat))
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(refusal.Status)
	failure := map[string]any{"message": "refused: " + name, "type": "refused", "code": name, "param": nil}
	body := map[string]any{"error": failure}
	if strings.HasSuffix(path, "v1/messages") {
		body = map[string]any{"type": "error", "error": map[string]any{"type": "refused", "message": "refused: " + name}}
	}
	// Who has left does not hear it.
	_ = json.NewEncoder(w).Encode(body)
}
