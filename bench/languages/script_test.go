package languages_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Scripted is one answer of a scripted node.
type Scripted struct {
	Status  int
	Body    map[string]any
	Raw     string
	Headers map[string]string
	DelayMS int64 `json:"delay_ms"`
	// Drop ends the connection without an answer.
	Drop bool
	// Endless is a body that comes byte by byte and does not end, Long one of two megabytes.
	Endless, Long bool
}

// scripted is a node that answers as it is written, the last answer again and again.
type scripted struct {
	answers []Scripted
	mu      sync.Mutex
	seen    []map[string]any // guarded by mu
}

// serveScript starts a node for each script, and returns where they are.
func serveScript(t *testing.T, scripts [][]Scripted) (nodes []*scripted, endpoints []any) {
	t.Helper()
	for _, answers := range scripts {
		node := &scripted{answers: answers}
		server := httptest.NewServer(node)
		t.Cleanup(func() {
			server.CloseClientConnections()
			server.Close()
		})
		nodes, endpoints = append(nodes, node), append(endpoints, server.URL)
	}
	return nodes, endpoints
}

func (n *scripted) requests() []map[string]any {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen
}

func (n *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request map[string]any
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(data, &request)
	}
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" ||
		!strings.HasPrefix(r.URL.Path, "/v1/admission:") {
		http.Error(w, "it is no request to a node", http.StatusTeapot)
		return
	}
	if r.URL.Path == "/v1/admission:report" {
		_, _ = w.Write([]byte(`{"booked":[],"controlled":[]}`))
		return
	}
	n.mu.Lock()
	answer := n.answers[min(len(n.seen), len(n.answers)-1)]
	n.seen = append(n.seen, request)
	n.mu.Unlock()
	select {
	case <-time.After(time.Duration(answer.DelayMS) * time.Millisecond):
	case <-r.Context().Done():
	}
	answer.write(w, r, request)
}

func (a *Scripted) write(w http.ResponseWriter, r *http.Request, request map[string]any) {
	if a.Drop {
		panic(http.ErrAbortHandler)
	}
	id, _ := request["lease_id"].(string)
	text := a.Raw
	if a.Body != nil {
		data, err := json.Marshal(a.Body)
		if err != nil {
			panic(err)
		}
		text = string(data)
	}
	for name, value := range a.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.Status)
	if a.Long {
		text = strings.Repeat(" ", 2<<20) + "{}"
	}
	_, _ = io.WriteString(w, strings.ReplaceAll(text, "{lease_id}", id))
	for a.Endless && r.Context().Err() == nil {
		_, _ = io.WriteString(w, " ")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(20 * time.Millisecond):
		case <-r.Context().Done():
		}
	}
}

// scriptedCases are those that speak HTTP, with a client that an adapter drives.
func scriptedCases(t *testing.T, d *driver, cases []Case) {
	t.Helper()
	for _, c := range cases {
		t.Run(title(c.Name), func(t *testing.T) {
			nodes, endpoints := serveScript(t, c.Script)
			d.open(t, endpoints, time.Second, c.Open)
			d.steps(t, c, nil)
			for i, node := range nodes {
				seen := node.requests()
				if c.Asked != nil && len(seen) != c.Asked[i] {
					t.Errorf("node %d was asked %d times, want %d", i, len(seen), c.Asked[i])
				}
				for j, want := range at(c.Seen, i) {
					for _, difference := range differences("request", want, at2(seen, j)) {
						t.Errorf("node %d, request %d: %s", i, j, difference)
					}
				}
			}
		})
	}
}

func at(lists [][]map[string]any, i int) []map[string]any {
	if i < len(lists) {
		return lists[i]
	}
	return nil
}

func at2(list []map[string]any, i int) map[string]any {
	if i < len(list) {
		return maps.Clone(list[i])
	}
	return nil
}
