package main

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// versioned is limit `name` as its n-th version.
func versioned(name string, n int64) *quorleasev1.Limit {
	return &quorleasev1.Limit{Name: name, MaxKeys: proto.Int64(n)}
}

// TestRewind goes back through: 1 adds a, 2 adds b and a budget, 3 changes a,
// 4 deletes b, 5 deletes the budget.
func TestRewind(t *testing.T) {
	t.Parallel()
	budget := &quorleasev1.RetryBudget{Name: "r", Client: "*"}
	change := func(name string, before, after *quorleasev1.Limit) *quorleasev1.LimitChange {
		return &quorleasev1.LimitChange{Name: name, LimitBefore: before, LimitAfter: after}
	}
	revisions := []*quorleasev1.Revision{
		{Revision: 5, Changes: []*quorleasev1.LimitChange{{Name: "r", RetryBudgetBefore: budget}}},
		{Revision: 4, Changes: []*quorleasev1.LimitChange{change("b", versioned("b", 1), nil)}},
		{Revision: 3, Changes: []*quorleasev1.LimitChange{change("a", versioned("a", 1), versioned("a", 2))}},
		{Revision: 2, Changes: []*quorleasev1.LimitChange{
			change("b", nil, versioned("b", 1)), {Name: "r", RetryBudgetAfter: budget},
		}},
		{Revision: 1, Changes: []*quorleasev1.LimitChange{change("a", nil, versioned("a", 1))}},
	}
	now := &quorleasev1.LimitsListResponse{Revision: 5, Limits: []*quorleasev1.Limit{versioned("a", 2)}}
	for to, want := range []string{"", "a1", "a1 b1 r", "a2 b1 r", "a2 r", "a2"} {
		request, err := rewind(now, revisions, uint64(to))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range request.GetLimits() {
			got = append(got, l.GetName()+string(rune('0'+l.GetMaxKeys())))
		}
		for _, b := range request.GetRetryBudgets() {
			got = append(got, b.GetName())
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("revision %d: got %q, want %q", to, text, want)
		}
		if !request.GetPrune() || request.GetExpectedRevision() != 5 {
			t.Errorf("revision %d: prune %t, expected revision %d: want a pruning change of 5",
				to, request.GetPrune(), request.GetExpectedRevision())
		}
	}
	if _, err := rewind(now, revisions[:3], 1); err == nil || !strings.Contains(err.Error(), "goes back to 2 only") {
		t.Errorf("got %v, want an error that says how far the history reaches", err)
	}
	cut := slices.Clone(revisions)
	cut[2] = &quorleasev1.Revision{Revision: 3, Changes: []*quorleasev1.LimitChange{{Name: "a"}}}
	if _, err := rewind(now, cut, 2); err == nil || !strings.Contains(err.Error(), "of revision 3 the history has only") {
		t.Errorf("got %v, want an error that says what is missing", err)
	}
	if _, err := rewind(now, cut, 3); err != nil {
		t.Errorf("what is missing is not needed: %v", err)
	}
	if _, err := rewind(now, revisions, 6); err == nil || !strings.Contains(err.Error(), "revision 6 does not exist yet") {
		t.Errorf("got %v, want an error that names the revision", err)
	}
	// A revision that came while the list was read is none of ours to undo.
	newer := slices.Insert(slices.Clone(revisions), 0, &quorleasev1.Revision{Revision: 6})
	if request, err := rewind(now, newer, 5); err != nil || len(request.GetLimits()) != 1 {
		t.Errorf("got %v, %v, want what there is", request, err)
	}
}

// Nobody deletes everything by a slip: revision 0, and every other one without
// limits, takes a flag of its own.
func TestRollbackToNothing(t *testing.T) {
	t.Parallel()
	limit := versioned("a", 1)
	fake := fullFake()
	fake.list = &quorleasev1.LimitsListResponse{Revision: 3, Limits: []*quorleasev1.Limit{limit}}
	fake.history = &quorleasev1.LimitsHistoryResponse{Revisions: []*quorleasev1.Revision{
		{Revision: 3, Changes: []*quorleasev1.LimitChange{{Name: "a", LimitAfter: limit}}},
		{Revision: 2, Changes: []*quorleasev1.LimitChange{{Name: "a", LimitBefore: limit}}},
		{Revision: 1, Changes: []*quorleasev1.LimitChange{{Name: "a", LimitAfter: limit}}},
	}}
	node := startFake(t, fake)
	for revision, want := range map[string]string{
		"0": "revision 0 is before the first limit: only with --force-empty",
		"2": "revision 2 has no limits and no retry budgets: only with --force-empty",
	} {
		args := []string{"limits", "rollback", revision, "--endpoints", node.addr}
		if got := command(t, args...); got.code != 2 || !strings.Contains(got.stderr, want) {
			t.Errorf("%v: exit code %d, stderr %q, want 2 with %q", args, got.code, got.stderr, want)
		}
		if applied := applications(fake); len(applied) != 0 {
			t.Fatalf("%v was sent: %v", args, applied)
		}
	}
	for i, revision := range []string{"0", "2"} {
		got := command(t, "limits", "rollback", revision, "--force-empty", "--endpoints", node.addr)
		applied := applications(fake)
		if got.code != 0 || len(applied) != i+1 || !applied[i].GetPrune() || len(applied[i].GetLimits()) != 0 {
			t.Errorf("revision %s: exit code %d, stderr %q, sent %v", revision, got.code, got.stderr, applied)
		}
	}
}

// applications are the changes of limits that a node was asked for.
func applications(f *fakeNode) (all []*quorleasev1.LimitsApplyRequest) {
	for _, m := range f.asked() {
		if r, ok := m.(*quorleasev1.LimitsApplyRequest); ok {
			all = append(all, r)
		}
	}
	return all
}
