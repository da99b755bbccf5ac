package dashboard_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

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
		return ask[[]string](p, `[...document.querySelectorAll("#`+table+` tbody tr")].map((r) => r.cells[`+cell+`].innerText)`)
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
