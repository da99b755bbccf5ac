package dashboard_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// TestNodesAndAlerts: each open incident has a row that says who or what it is about,
// and each node says how far it is behind.
func TestNodesAndAlerts(t *testing.T) {
	picture := calm()
	behind := uint64(12_345)
	picture.Nodes[0].Lag, picture.Nodes[1].Lag = new(uint64), &behind
	for _, one := range []*quorleasev1.FiringAlert{
		{Kind: "LimitBlocked", Limit: "provider", Value: "gpt/eu"},
		{Kind: "LimitBlocked", Limit: "provider", Value: "gpt/us"},
		{Kind: "SpendCapReached", Limit: "spend"},
		{Kind: "FollowerLagging", Value: "260", Node: "n2"},
		{Kind: "FollowerLagging", Value: "270", Node: "n3"},
		{Kind: "ClientOverBudget", Client: "batch", Value: "30%"},
	} {
		one.Severity, one.Since = quorleasev1.Severity_WARNING, picture.GetTime()
		picture.Alerts = append(picture.Alerts, one)
	}
	p := open(t, picture)
	cells := func(table string, cell string) []string {
		rows := `[...document.querySelectorAll("#` + table + ` tbody tr")]`
		return ask[[]string](p, rows+`.map((r) => r.cells[`+cell+`].innerText)`)
	}
	if diff := cmp.Diff([]string{"0", "12,345", "–"}, cells("nodes", "3")); diff != "" {
		t.Error(diff)
	}
	want := []string{"provider/gpt/eu", "provider/gpt/us", "spend", "n2", "n3", "batch"}
	if diff := cmp.Diff(want, cells("alert-list", "2")); diff != "" {
		t.Error(diff)
	}
	picture.Alerts[5].Value = "31%"
	picture.Alerts = picture.GetAlerts()[1:]
	p.feed.show(t, picture)
	p.until(`document.getElementById("announce").textContent === "Over: LimitBlocked provider/gpt/eu."`)
}

// TestARefusalIsPlain: the page says why it is not watching any more, though the node
// still answers other things.
func TestARefusalIsPlain(t *testing.T) {
	p := open(t, calm())
	p.quiet = true
	p.feed.crowd()
	p.until(`document.getElementById("lost").textContent.includes("too many watch")`)
}

// TestEachClassSaysHowLong: what waits in each class, the longest wait and how much
// longer it will be.
func TestEachClassSaysHowLong(t *testing.T) {
	picture := calm()
	for i, queue := range picture.GetLimits()[0].GetQueues() {
		queue.Oldest = durationpb.New(time.Duration(i) * 7 * time.Second)
		queue.Eta = durationpb.New(time.Duration(i+1) * time.Minute)
	}
	p := open(t, picture)
	want := "412\noldest 31 s, ETA 2 min 0 s\nlive: 12, oldest 0 s, ETA 1 min 0 s\nbatch: 400, oldest 7 s, ETA 2 min 0 s"
	if got := p.row("limits")[2]; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNothingYet: a node that has just begun, of which nothing is known.
func TestNothingYet(t *testing.T) {
	p := open(t, &quorleasev1.OverviewWatchResponse{Node: "n1"})
	for id, want := range map[string]string{
		"clients-none": "Nobody has asked yet.", "limits-none": "There are no limits.", "nodes-none": "No node is known.",
		"alert-list-none": "Nothing is open.", "health": "no quorum", "leader": "none", "quorum": "no, 0 of 0 voters",
		"waiting": "nothing", "p95": "–", "bad-now": "0", "share-now": "", "retry-alerts": "retry-budget alerts: 0 firing",
	} {
		if got := p.text("#" + id); got != want {
			t.Errorf("%s says %q, want %q", id, got, want)
		}
	}
	if got := p.attribute("#plot-bad", "d") + p.attribute("#plot-good", "d"); got != "" {
		t.Errorf("it draws %q", got)
	}
	if got := ask[[]string](p, wide); len(got) > 0 {
		t.Errorf("wider than the window: %q", got)
	}
}
