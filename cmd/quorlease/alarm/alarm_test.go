package alarm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/cluster/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func event(kind events.Kind, severity events.Severity, node string) events.Event {
	return events.Event{Kind: kind, Severity: severity, Node: node, Value: "7", Text: "text of " + node}
}

var (
	lost     = event(events.QuorumLost, events.Critical, "")
	restored = event(events.QuorumRestored, events.Info, "")
	low      = event(events.DiskLow, events.Critical, "")
	freed    = event(events.DiskLow, events.Info, "")
	stalled  = event(events.DiskStalled, events.Critical, "")
)

// capped and cleared speak of a key of a limit, by an entry of the log.
func capped(key string) events.Event {
	return events.Event{Kind: events.SpendCapReached, Severity: events.Critical, Limit: "gpt", Value: key, Index: 7}
}

func cleared(key string) events.Event {
	return events.Event{Kind: events.LimitCleared, Severity: events.Info, Limit: "gpt", Value: key, Index: 9}
}

func lagging(node string) events.Event  { return event(events.FollowerLagging, events.Warning, node) }
func caughtUp(node string) events.Event { return event(events.FollowerLagging, events.Info, node) }

func TestG8IncidentsOfANode(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		events []events.Event
		want   string
	}{
		{"G8_a_quorum_lost_and_restored", []events.Event{lost, restored}, "+QuorumLost -QuorumLost"},
		{"G8_once_each", []events.Event{restored, lost, lost, restored, restored}, "+QuorumLost -QuorumLost"},
		{"G8_each_incident_by_itself", []events.Event{lost, restored, lost}, "+QuorumLost -QuorumLost +QuorumLost"},
		{"G8_an_election_alerts_nobody", []events.Event{
			event(events.LeaderChanged, events.Info, ""), event(events.MemberRemoved, events.Warning, "n3"),
		}, ""},
		{"a_disk", []events.Event{low, low, freed, freed, low}, "+DiskLow -DiskLow +DiskLow"},
		{"a_disk_that_stalls_is_the_end", []events.Event{stalled}, "+DiskStalled"},
		{
			"S3-27_a_spend_cap_until_somebody_clears_it",
			[]events.Event{cleared("a"), capped("a"), capped("a"), capped("b"), cleared("a"), cleared("a")},
			"+SpendCapReached/a +SpendCapReached/b -SpendCapReached/a",
		},
		{
			"S1-41_S1-48_each_client_and_each_line_by_itself",
			[]events.Event{
				calm(events.ClientOverBudget, "a"), storms(events.ClientRetryWarning, "a", 1),
				storms(events.ClientOverBudget, "a", 2), storms(events.ClientOverBudget, "b", 2),
				calm(events.ClientOverBudget, "a"), calm(events.ClientOverBudget, "a"), storms(events.ClientOverBudget, "a", 3),
			},
			"+ClientRetryWarning/a +ClientOverBudget/a +ClientOverBudget/b -ClientOverBudget/a +ClientOverBudget/a",
		},
		{
			"followers_apart",
			[]events.Event{lagging("n2"), lagging("n3"), caughtUp("n2"), lagging("n3"), caughtUp("n3")},
			"+FollowerLagging/n2 +FollowerLagging/n3 -FollowerLagging/n2 -FollowerLagging/n3",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			open := newIncidents("n1", "")
			begun := map[string]string{}
			var got []string
			for _, e := range c.events {
				said, ok := open.observe(e, time.Now())
				if !ok {
					continue
				}
				a, labels := said.begin, said.begin.Labels
				if said.over {
					a = said.end
				}
				name := strings.TrimSuffix(a.Kind+"/"+labels["member"]+labels["key"]+labels["client"], "/")
				if a.Resolved {
					if begun[name] != a.ID {
						t.Errorf("%s ended as %q, began as %q", name, a.ID, begun[name])
					}
					name = "-" + name
				} else {
					if slices.Contains([]string{"", begun[name]}, a.ID) {
						t.Errorf("%s has the id %q again", name, a.ID)
					}
					begun[name], name = a.ID, "+"+name
				}
				got = append(got, name)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %s, want %s", strings.Join(got, " "), c.want)
			}
		})
	}
}

// TestOneIncidentOfThreeNodes: a spend cap stands in the log, and whichever node sends
// it, a receiver must be able to see that it is one.
func TestOneIncidentOfThreeNodes(t *testing.T) {
	t.Parallel()
	first, second, other := began("n1", capped("a")), began("n2", capped("a")), began("n1", capped("b"))
	if first.ID != second.ID || first.ID == other.ID || len(first.ID) != len(other.ID) {
		t.Errorf("one incident is %q and %q, another one %q", first.ID, second.ID, other.ID)
	}
	if a := began("n1", lost); a.ID == first.ID {
		t.Errorf("a quorum lost is %q too", a.ID)
	}
	if want := map[string]string{"limit": "gpt", "key": "a"}; !cmp.Equal(first.Labels, want) {
		t.Errorf("labels %v, want %v", first.Labels, want)
	}
}

// began is what a node tells of a beginning.
func began(node string, e events.Event) alert.Alert {
	open := newIncidents(node, "")
	said, _ := open.observe(e, time.Now())
	return said.begin
}

// receiver is a webhook that keeps what it got.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []alert.Document
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		var d alert.Document
		if err := json.NewDecoder(q.Body).Decode(&d); err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, d)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) lines() (lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.got {
		lines = append(lines, fmt.Sprintf("%s %s of %s, %s: %s %v %v", d.Kind, d.Status, d.Name, d.Severity, d.Text,
			d.Labels, d.Values))
	}
	return lines
}

func TestEventsReachTheWebhook(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	ring := events.New(0, nil)
	ring.Publish(lost)
	registry := prometheus.NewRegistry()
	a, err := Open(Config{
		Node: "n1", Link: "http://127.0.0.1:1", Events: ring, Targets: Targets{Webhooks: URLs{r.URL}}, Registerer: registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	ring.Publish(restored)
	ring.Publish(lagging("n2"))
	ring.Publish(stalled)
	ring.Close()
	a.Close()
	a.Close()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	figures := map[string]float64{}
	for _, family := range families {
		figures[family.GetName()] = family.GetMetric()[0].GetCounter().GetValue()
	}
	if diff := cmp.Diff(map[string]float64{
		"quorlease_alerts_delivered_total": 4, "quorlease_alerts_failed_total": 0, "quorlease_alerts_dropped_total": 0,
	}, figures); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	want := []string{
		"QuorumLost firing of n1, critical: text of  map[] map[value:7]",
		"QuorumLost resolved of n1, critical: text of  map[] map[value:7]",
		"FollowerLagging firing of n1, warning: text of n2 map[member:n2] map[value:7]",
		"DiskStalled firing of n1, critical: text of  map[] map[value:7]",
	}
	got := r.lines()
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("posted (-want +got):\n%s", diff)
	}
}

func TestAReaderThatMissedTheEndAsks(t *testing.T) {
	t.Parallel()
	ring := events.New(1, nil)
	r := newReceiver(t)
	a := &Alarm{
		config: Config{
			Node: "n1", Logger: hclog.NewNullLogger(), HasQuorum: func() bool { return true },
			Firing: func(_ events.Kind, client string) bool { return client == "storms on" },
		},
		open: newIncidents("n1", ""), cancel: func() {},
	}
	sinks, err := Targets{Webhooks: URLs{r.URL}}.Sinks()
	if err != nil {
		t.Fatal(err)
	}
	a.node, a.clients = alert.NewNotifier(sinks...), alert.NewNotifier(sinks...)
	everything := uint64(0)
	subscription, err := ring.Subscribe(&everything)
	if err != nil {
		t.Fatal(err)
	}
	a.look(time.Now())
	a.notify(lost)
	a.notify(storms(events.ClientOverBudget, "storms on", 1))
	a.notify(storms(events.ClientOverBudget, "is calm", 1))
	for range 3 {
		ring.Publish(event(events.LimitChanged, events.Info, ""))
	}
	ring.Close()
	a.read(t.Context(), subscription)
	if err := errors.Join(a.node.Close(t.Context()), a.clients.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(r.lines(), "\n")
	for _, want := range []string{
		"QuorumLost resolved of n1, critical: there is",
		"ClientOverBudget resolved of cluster, warning: is calm is below again map[client:is calm] map[]",
	} {
		if len(r.lines()) != 5 || !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.Close()
	var log bytes.Buffer
	ring := events.New(0, nil)
	a, err := Open(Config{
		Node: "n1", Events: ring, Logger: hclog.New(&hclog.LoggerOptions{Output: &log}),
		Targets: Targets{Alertmanagers: URLs{strings.Replace(r.URL, "//", "//SECRET:SECRET@", 1)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ring.Publish(lost)
	began := time.Now()
	a.Close()
	if took := time.Since(began); took > readMax+flushMax+time.Second {
		t.Errorf("close took %s", took)
	}
	for _, want := range []string{"alert not delivered, trying again: reason=QuorumLost", "alerts not delivered"} {
		if !strings.Contains(log.String(), want) || strings.Contains(log.String(), "SECRET") {
			t.Errorf("logged %s, want %q in it and no secret", log.String(), want)
		}
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	var u URLs
	for _, value := range []string{"http://a, http://b", "", "http://c"} {
		if err := u.Set(value); err != nil {
			t.Fatal(err)
		}
	}
	if got := u.String(); got != "http://a,http://b,http://c" || u.Type() != "urls" {
		t.Errorf("got %s of type %s", got, u.Type())
	}
	if sinks, err := (Targets{Webhooks: u, Alertmanagers: u[:1]}).Sinks(); err != nil || len(sinks) != 4 {
		t.Errorf("got %v, %v, want 4 sinks", sinks, err)
	}
	_, err := Targets{Alertmanagers: URLs{"http://a", "SECRET@b"}}.Sinks()
	if want := `--alertmanager: URL "…@b": the scheme "" is neither http nor https`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := Open(Config{Events: events.New(0, nil), Targets: Targets{Webhooks: URLs{"x"}}}); err == nil {
		t.Error("a URL that is none is taken")
	}
}
