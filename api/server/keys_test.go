package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cluster"
)

// TestMostSpentKeys: the keys of which least is left come first, whether or not there is
// a leader where a stale answer will do.
func TestMostSpentKeys(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	conn := dial(t, address)
	configure(t, conn, "tenant", func(l *quorleasev1.Limit) { l.Per = []string{"key"} })
	admission, limits := quorleasev1.NewAdmissionClient(conn), quorleasev1.NewLimitsClient(conn)
	for i := range 30 {
		charges := charge("tenant", int64(i%10+1))
		charges[0].Key = fmt.Sprintf("key-%02d", i)
		if _, err := admission.Acquire(patient(t), &quorleasev1.AcquireRequest{Charges: charges}); err != nil {
			t.Fatal(err)
		}
	}
	node.Fail(cluster.ErrNoQuorum)
	_, err := limits.Keys(patient(t), &quorleasev1.LimitsKeysRequest{Limit: "tenant"})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("without a quorum: %v", err)
	}
	answer, err := limits.Keys(patient(t), &quorleasev1.LimitsKeysRequest{
		Limit: "tenant", Prefix: "key-1", Top: 3, Stale: true,
	})
	if err != nil || answer.GetTotal() != 30 || answer.GetMatching() != 10 || len(answer.GetKeys()) != 3 {
		t.Fatalf("%v, %v", answer, err)
	}
	if k := answer.GetKeys()[0]; k.GetKey() != "key-19" || k.GetLeftPpm() != 0 || k.GetBurst() != 10 ||
		k.GetDimension() != "requests" {
		t.Errorf("first %v", k)
	}
	if k := answer.GetKeys()[2]; k.GetKey() != "key-17" || k.GetLeftPpm() != 200_000 || k.GetLevel() != 2 {
		t.Errorf("third %v", k)
	}
	for _, row := range []struct {
		request *quorleasev1.LimitsKeysRequest
		code    codes.Code
		want    string
	}{
		{&quorleasev1.LimitsKeysRequest{Limit: "nope", Stale: true}, codes.NotFound, "no such limit"},
		{&quorleasev1.LimitsKeysRequest{Limit: "No"}, codes.InvalidArgument, "limit"},
		{&quorleasev1.LimitsKeysRequest{Limit: "a", Top: 1001}, codes.InvalidArgument, "1001 is out of range 0..1000"},
		{&quorleasev1.LimitsKeysRequest{Limit: "a", Prefix: "\n"}, codes.InvalidArgument, "control character"},
	} {
		_, err := limits.Keys(patient(t), row.request)
		if status.Code(err) != row.code || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v: %v, want %v with %q", row.request, err, row.code, row.want)
		}
	}
}

// TestUsageQuery: what is asked has its bounds, and what is not said its default.
func TestUsageQuery(t *testing.T) {
	t.Parallel()
	_, _, address := start(t, nil)
	usage := quorleasev1.NewUsageBookClient(dial(t, address))
	answer, err := usage.Query(patient(t), &quorleasev1.UsageBookQueryRequest{By: "team"})
	if err != nil || len(answer.GetRows()) != 2 || !answer.GetRows()[1].GetOther() ||
		answer.GetRows()[0].GetGranted() != 6 || answer.GetMissing()[0] != "n2" {
		t.Fatalf("%v, %v", answer, err)
	}
	if hours := answer.GetTo().AsTime().Sub(answer.GetFrom().AsTime()).Hours(); hours < 24 || hours > 25 {
		t.Errorf("%v hours, want a day", hours)
	}
	answer, err = usage.Query(patient(t), &quorleasev1.UsageBookQueryRequest{
		By: "key", From: "2026-03-01", To: "2026-03-04T05:00:00Z",
	})
	period := answer.GetTo().AsTime().Format(time.RFC3339) + answer.GetFrom().AsTime().Format(" "+time.RFC3339)
	if err != nil || period != "2026-03-04T05:00:00Z 2026-03-01T00:00:00Z" {
		t.Errorf("a period of %s, %v", period, err)
	}
	for want, request := range map[string]*quorleasev1.UsageBookQueryRequest{
		"by: \"\": must be client, key, limit or team":  {},
		"by: \"x\": must be client, key, limit or team": {By: "x"},
		`to: "2026-03-01": only with from`:              {By: "key", To: "2026-03-01"},
		"hours: 5: not with from":                       {By: "key", Hours: 5, From: "2026-03-01"},
		`from: "march": want a day like 2026-11-01`:     {By: "key", From: "march"},
		`to: "april": want a day like 2026-11-01`:       {By: "key", From: "2026-03-01", To: "april"},
		`to: "2026-03-01": is not after from`:           {By: "key", From: "2026-03-01", To: "2026-03-01"},
		`from: "2026-03-01": 768 hours are more than`:   {By: "key", From: "2026-03-01", To: "2026-04-02"},
		`from: "2999-03-01": has not come yet`:          {By: "key", From: "2999-03-01"},
		`limit: "a/b"`:                                  {By: "key", Limit: "a/b"},
		"hours: 745 is out of range 0..744":             {By: "limit", Hours: 745},
		"top: 1001 is out of range 0..1000":             {By: "limit", Top: 1001},
	} {
		_, err := usage.Query(patient(t), request)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", request, err, want)
		}
	}
}
