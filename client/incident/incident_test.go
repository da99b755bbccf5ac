package incident

import (
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/failopen"
)

func TestAlert(t *testing.T) {
	began := time.Date(2026, 10, 22, 8, 30, 0, 0, time.UTC)
	s := failopen.Summary{Number: 2, Started: began, Admitted: 7, Refused: 1}
	learnt := Client{Name: "billing", SessionID: "5e", Learnt: true, Cause: failopen.NoQuorum}
	a := Alert(s, learnt)
	if a.Kind != Kind || a.Name != "billing" || a.ID != "5e-2" || a.Resolved || a.Labels["cause"] != "no quorum" {
		t.Errorf("the beginning: %+v", a)
	}
	if static := Alert(s, Client{}); static.Labels["rules"] != "static" || !strings.Contains(static.Text, "static") {
		t.Errorf("A20: a cold start does not say so: %+v", static)
	}
	s.Ended = began.Add(time.Minute)
	s.Spent = []failopen.Spent{
		{Limit: "a", Dimension: "requests", Tokens: 7}, {Limit: "b", Dimension: "slots", Tokens: 3, Bounded: true, Worst: 9},
	}
	learnt.Over = true
	over := Alert(s, learnt)
	want := map[string]string{
		"admitted": "7", "refused": "1", "tokens a/requests": "7", "tokens b/slots": "3", "worst b/slots": "9",
	}
	if !over.Resolved || over.ID != a.ID || len(over.Values) != len(want) {
		t.Errorf("the end: %+v", over)
	}
	for name, value := range want {
		if over.Values[name] != value {
			t.Errorf("%s: %q, want %q", name, over.Values[name], value)
		}
	}
}
