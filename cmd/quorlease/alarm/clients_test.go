package alarm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/cluster/events"
)

// storms and calm speak of a client, as each node sees it for itself.
func storms(kind events.Kind, client string, bout int64) events.Event {
	return events.Event{
		Kind: kind, Severity: events.Warning, Client: client, Value: "92%", Text: client + " retry fraction 92%",
		Window: 5 * time.Minute, Error: "429", Bout: bout,
	}
}

func calm(kind events.Kind, client string) events.Event {
	return events.Event{
		Kind: kind, Severity: events.Info, Client: client, Value: "4%", Text: client + " retry fraction 4%",
		Window: 5 * time.Minute,
	}
}

// TestAStormIsToldOnce: of one client that crosses both lines and comes back a receiver
// hears once that it begins and once that it is over, of three nodes that see it.
func TestAStormIsToldOnce(t *testing.T) {
	t.Parallel()
	t.Run("S1-41_S1-48", func(t *testing.T) {
		t.Parallel()
		r := newReceiver(t)
		for _, node := range []string{"n1", "n2", "n3"} {
			ring := events.New(0, nil)
			a, err := Open(Config{
				Node: node, Events: ring, Targets: Targets{Webhooks: URLs{r.URL}},
				Leads: func() (here, elsewhere bool) { return node == "n2", node != "n2" },
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range []events.Kind{events.ClientOverBudget, events.ClientRetryWarning} {
				ring.Publish(storms(kind, "batch-scorer", 17))
			}
			for _, kind := range []events.Kind{events.ClientOverBudget, events.ClientRetryWarning} {
				ring.Publish(calm(kind, "batch-scorer"))
			}
			ring.Close()
			a.Close()
		}
		checkStorm(t, r.got)
	})
}

func checkStorm(t *testing.T, got []alert.Document) {
	t.Helper()
	if len(got) != 4 {
		t.Fatalf("%d notifications, want a beginning and an end of two incidents", len(got))
	}
	seen, ids := map[string]int{}, map[string][]string{}
	for _, d := range got {
		seen[d.Kind+" "+d.Status+" "+d.Name]++
		if !slices.Contains(ids[d.Kind], d.ID) {
			ids[d.Kind] = append(ids[d.Kind], d.ID)
		}
		values := map[string]string{"fraction": "92%", "window": "5m0s", "error": "429"}
		if d.Status == "resolved" {
			values = map[string]string{"fraction": "4%", "window": "5m0s"}
		}
		if d.Labels["client"] != "batch-scorer" || d.Severity != "warning" || !cmp.Equal(d.Values, values) ||
			d.Text != "batch-scorer retry fraction "+values["fraction"] {
			t.Errorf("%+v, want client, text and %v", d, values)
		}
	}
	for what, times := range seen {
		if times != 1 {
			t.Errorf("%s came %d times", what, times)
		}
	}
	over, warned := ids["ClientOverBudget"], ids["ClientRetryWarning"]
	if len(over) != 1 || len(warned) != 1 || over[0] == warned[0] {
		t.Errorf("ids %q and %q, want one each", over, warned)
	}
	other := began("n1", storms(events.ClientOverBudget, "another", 17))
	later := began("n1", storms(events.ClientOverBudget, "batch-scorer", 18))
	if over[0] == other.ID || over[0] == later.ID || other.ID == later.ID {
		t.Errorf("%q is also that of another client, %q, or of a later storm, %q", over[0], other.ID, later.ID)
	}
}

// TestG10ACrowdOfClients: however many of them storm, what is kept of them is bounded,
// what nobody was told is counted, and a quorum that is lost is told all the same.
func TestG10ACrowdOfClients(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		r := newReceiver(t)
		ring, registry := events.New(0, nil), prometheus.NewRegistry()
		a, err := Open(Config{Node: "n1", Events: ring, Targets: Targets{Webhooks: URLs{r.URL}}, Registerer: registry})
		if err != nil {
			t.Fatal(err)
		}
		const crowd = incidentsMax + 100
		for i := range crowd {
			ring.Publish(storms(events.ClientOverBudget, fmt.Sprint("client-", i), 1))
		}
		ring.Publish(lost)
		ring.Close()
		a.Close()
		if len(a.open.open) != incidentsMax+1 {
			t.Errorf("%d incidents are kept, want %d and the quorum", len(a.open.open), incidentsMax)
		}
		told := len(r.lines())
		if !strings.Contains(strings.Join(r.lines(), "\n"), "QuorumLost firing") || told < 100 || told > incidentsMax {
			t.Errorf("%d notifications, and of the quorum: %q", told, r.lines()[:min(3, told)])
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			got := family.GetMetric()[0].GetCounter().GetValue()
			if family.GetName() == "quorlease_alerts_dropped_total" && int(got) != crowd+1-told {
				t.Errorf("%v incidents are counted as dropped, want %d", got, crowd+1-told)
			}
		}
	})
}
