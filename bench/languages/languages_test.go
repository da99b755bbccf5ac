package languages_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench"
)

// language is one client.
type language struct {
	name string
	// grpc: it speaks that; the others HTTP.
	grpc bool
	// start starts its adapter.
	start func(t *testing.T) adapter
}

// languages are those that there are.
func languages() []*language {
	return []*language{
		{"go", true, func(*testing.T) adapter { return &goClient{log: &bench.Printed{}} }},
		{"python", false, func(t *testing.T) adapter { return mustStart(t, python(t), "adapter.py") }},
		{"typescript", false, func(t *testing.T) adapter { return mustStart(t, typescript(t), "adapter/adapter.js") }},
	}
}

// driver drives one client.
type driver struct{ adapter }

// drive starts a language's adapter. Its end is part of the test.
func (l *language) drive(t *testing.T) *driver {
	t.Helper()
	d := &driver{l.start(t)}
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// open makes a new client, instead of the one that there was.
func (d *driver) open(t *testing.T, endpoints []any, deadline time.Duration, more map[string]any) {
	t.Helper()
	request := map[string]any{
		"op": "open", "endpoints": endpoints, "client": "conformance", "deadline_ms": deadline.Milliseconds(),
	}
	for name, value := range more {
		request[name] = value
	}
	if answer, err := d.do(request); err != nil || answer["error"] != nil {
		t.Fatalf("open: %v, %v", answer, err)
	}
}

// steps does what a case says.
func (d *driver) steps(t *testing.T, c Case, s *site) {
	t.Helper()
	for i, step := range c.Steps {
		if step.Node != nil {
			s.node(t, step.Node)
			continue
		}
		var answer map[string]any
		var found []string
		once := func() bool {
			var err error
			if answer, err = d.do(step.Do); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			found = differences("answer", step.Want, answer)
			return len(found) == 0
		}
		if !once() && step.Until {
			eventually(t, once)
		}
		if len(found) > 0 {
			t.Fatalf("step %d, %v:\n%s\nanswered %v", i, step.Do, strings.Join(found, "\n"), answer)
		}
	}
}

// TestConformance is the list, with each client.
func TestConformance(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.apply(t, filepath.Join(conformance, "limits.yaml"))
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			list, d := load(t, l.name), l.drive(t)
			t.Run("answers", func(t *testing.T) {
				d.open(t, s.endpoints(l), 5*time.Second, nil)
				for _, c := range list.Cases {
					t.Run(title(c.Name), func(t *testing.T) { d.steps(t, c, s) })
				}
			})
			if !l.grpc {
				t.Run("scripts", func(t *testing.T) { scriptedCases(t, d, list.HTTP) })
			}
			for _, c := range list.Faults {
				t.Run(title(c.Name), func(t *testing.T) {
					t.Cleanup(func() { s.revive(t) })
					d.open(t, s.endpoints(l), time.Second, nil)
					d.steps(t, c, s)
				})
			}
		})
	}
	t.Run("S1-15_one_limit_three_languages", func(t *testing.T) { oneLimit(t, s) })
}

// oneLimit: what is enforced does not know who asks. Three clients and curl take turns at one
// bucket of ten, and get ten together.
func oneLimit(t *testing.T, s *site) {
	t.Helper()
	charge := map[string]any{"limit": "hour", "key": "all", "dimension": "requests", "amount": "1"}
	acquire := map[string]any{"op": "acquire", "charges": []any{charge}}
	var ask []func() (granted bool, reason any)
	for _, l := range languages() {
		d := l.drive(t)
		d.open(t, s.endpoints(l), 5*time.Second, nil)
		ask = append(ask, func() (bool, any) {
			answer, err := d.do(acquire)
			if err != nil || answer["error"] != nil || answer["local"] == true {
				t.Fatalf("%s: %v, %v", l.name, answer, err)
			}
			return answer["granted"] == true, reasonOf(answer)
		})
	}
	ask = append(ask, func() (bool, any) {
		answer := s.curl(t, "/v1/admission:acquire", map[string]any{"charges": []any{charge}})
		return answer["decision"] == "GRANTED", reasonOf(answer)
	})
	granted := 0
	for round := range 4 {
		for i := range ask {
			ok, reason := ask[i]()
			if ok {
				granted++
			} else if reason != "RATE" || granted < 10 {
				t.Errorf("round %d: who asks as number %d is refused for %v after %d grants", round, i, reason, granted)
			}
		}
	}
	if granted != 10 {
		t.Errorf("%d grants in all, want 10", granted)
	}
}

func reasonOf(answer map[string]any) any {
	list, _ := answer["denials"].([]any)
	if len(list) == 0 {
		return nil
	}
	first, _ := list[0].(map[string]any)
	return first["reason"]
}

// node does something to the nodes.
func (s *site) node(t *testing.T, what map[string]any) {
	t.Helper()
	for verb, value := range what {
		var err error
		switch verb {
		case "kill", "stop", "cont":
			signal := map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGSTOP, "cont": syscall.SIGCONT}
			err = s.nodes.Signal(s.index(t, value), signal[verb])
		case "start":
			err = s.nodes.Start(s.index(t, value))
		case "healthy":
			err = s.nodes.Healthy(t.Context())
		case "path":
			answer := s.post(t, fmt.Sprint(value), what["body"])
			if answer["code"] != nil {
				t.Fatalf("%v: %v", what, answer)
			}
		case "body":
		default:
			t.Fatalf("%s is nothing that is done to nodes", verb)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// revive has all nodes run again, whatever a case that failed has left.
func (s *site) revive(t *testing.T) {
	t.Helper()
	for i := range s.nodes.Len() {
		var err error
		if s.nodes.Pid(i) == 0 {
			err = s.nodes.Start(i)
		} else {
			err = s.nodes.Signal(i, syscall.SIGCONT)
		}
		if err != nil {
			t.Error(err)
		}
	}
	if err := s.nodes.Healthy(context.Background()); err != nil {
		t.Error(err)
	}
}

// index is a node's: a number, the leader's, or that of the one that was killed last.
func (s *site) index(t *testing.T, value any) int {
	t.Helper()
	switch value {
	case "leader":
		leader, err := s.nodes.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.killed = leader
	case "killed":
	default:
		n, _ := value.(float64)
		return int(n)
	}
	return s.killed
}

// endpoints are the nodes' addresses as a language knows them.
func (s *site) endpoints(l *language) (out []any) {
	for i := range s.nodes.Len() {
		if l.grpc {
			out = append(out, s.nodes.GRPC(i))
		} else {
			out = append(out, "http://"+s.nodes.HTTP(i))
		}
	}
	return out
}

// post sends a request to the first node.
func (s *site) post(t *testing.T, path string, body any) map[string]any {
	t.Helper()
	return send(t, http.MethodPost, "http://"+s.nodes.HTTP(0)+path, body)
}
