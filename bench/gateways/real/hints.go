package real

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// hinting tells the time to gateways as they know it: what a provider says of the
// scenario's minutes, they have to hear in seconds.
type hinting struct {
	next  http.Handler
	clock *clock
	pace  int
	// start is the provider's date at the clock's 0.
	start time.Time
}

// ServeHTTP has the provider answer.
func (h *hinting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.next.ServeHTTP(&hinted{ResponseWriter: w, by: h}, r)
}

// hinted is an answer on its way.
type hinted struct {
	http.ResponseWriter
	by   *hinting
	head bool
}

// WriteHeader shortens what the headers say of time.
func (w *hinted) WriteHeader(status int) {
	w.head = true
	for name, values := range w.Header() {
		for i := range values {
			values[i] = w.by.shorter(strings.ToLower(name), values[i])
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes on.
func (w *hinted) Write(p []byte) (int, error) {
	if !w.head {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is what writes.
func (w *hinted) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// shorter is a header's value for who lives as many times as slowly. What is no time
// stays.
func (h *hinting) shorter(name, value string) string {
	pace := float64(h.pace)
	switch {
	case name == "retry-after" || name == "retry-after-ms":
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			return strconv.FormatFloat(n/pace, 'f', 3, 64)
		}
	case strings.HasPrefix(name, "x-ratelimit-reset-"):
		if d, err := time.ParseDuration(value); err == nil {
			return (d / time.Duration(h.pace)).String()
		}
	case strings.HasPrefix(name, "anthropic-ratelimit-") && strings.HasSuffix(name, "-reset"):
		if at, err := time.Parse(time.RFC3339, value); err == nil {
			left := at.Sub(h.start.Add(h.clock.Now()))
			return time.Now().Add(left / time.Duration(h.pace)).UTC().Format(time.RFC3339Nano)
		}
	}
	return value
}
