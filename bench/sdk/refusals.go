package sdk

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
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

// Gateway are the refusals that a gateway sends, as a client sees them.
func Gateway() []Refusal {
	const never, budget = "x-should-retry", "x-retry-budget-exceeded"
	return []Refusal{
		{"budget", 429, map[string]string{
			"Retry-After": "60", "retry-after-ms": "60000", never: "false", budget: "true",
		}, 0},
		{"spend_cap", 429, map[string]string{never: "false"}, 0},
		{"own_limit", 429, map[string]string{"Retry-After": "59"}, 0},
		{"own_limit_in_ms", 429, map[string]string{"Retry-After": "2", "retry-after-ms": "1250.5"}, 0},
		{"circuit", 503, map[string]string{"Retry-After": "30"}, 0},
		{"capacity", 503, nil, 0},
		{"not_known", 401, nil, 0},
		{"forbidden", 403, nil, 0},
		{"too_large", 413, nil, 0},
	}
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
