package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/api/server/servertest"
)

// described are limits that only attributes reach.
const described = `limits:
  - name: deployment
    match: {deployment: "*"}
    per: [deployment]
    rate: {requests: 2/min, input_tokens: 1000/min}
  - name: team
    match: {team: "*"}
    per: [team]
    rate: {requests: 100/min}
  - name: provider
    match: {tenant: "*", deployment: "*"}
    per: [tenant, deployment]
    rate: {requests: 50/min}
  - {name: batch-slots, match: {class: batch}, concurrency: 2}
`

// write applies a limits file behind the servers' back.
func write(t *testing.T, node *servertest.Node, file string) {
	t.Helper()
	req, err := limitsfile.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	op, err := limitsfile.ResolveAll(req)
	if err != nil {
		t.Fatal(err)
	}
	op.Prune = true
	result := node.Apply(&logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: op}})
	if result.GetRefusal() != nil {
		t.Fatal(result.GetRefusal())
	}
}

func pairs(text string) map[string]string {
	all := map[string]string{}
	for _, pair := range strings.Fields(text) {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return all
}

// chargedBy lists charges as "limit/key dimension=amount".
func chargedBy(list []*quorleasev1.Charge) string {
	var out []string
	for _, c := range list {
		out = append(out, fmt.Sprintf("%s/%s %s=%d", c.GetLimit(), c.GetKey(), c.GetDimension(), c.GetAmount()))
	}
	return strings.Join(out, ", ")
}

func ask(t *testing.T, conn *grpc.ClientConn, r *quorleasev1.AcquireRequest) *quorleasev1.AcquireResponse {
	t.Helper()
	answer, err := quorleasev1.NewAdmissionClient(conn).Acquire(patient(t), r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestAttributesBecomeCharges(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	write(t, node, described)
	conn := dial(t, address)
	answer := ask(t, conn, &quorleasev1.AcquireRequest{
		Attributes: pairs("deployment=gpt tenant=a team=x"), Amounts: map[string]int64{"input_tokens": 400},
	})
	const want = "deployment/gpt input_tokens=400, deployment/gpt requests=1, provider/a|gpt requests=1, team/x requests=1"
	if got := chargedBy(answer.GetLease().GetCharges()); got != want {
		t.Errorf("charged\ngot  %s\nwant %s", got, want)
	}
	peek, err := quorleasev1.NewAdmissionClient(conn).Peek(patient(t), &quorleasev1.PeekRequest{
		Attributes: pairs("deployment=gpt"), Amounts: map[string]int64{"input_tokens": 700},
	})
	if err != nil || peek.GetDecision() != quorleasev1.Decision_DENIED || len(peek.GetRemaining()) != 2 {
		t.Errorf("peek: %v, %v", peek, err)
	}
	t.Run("S2-03", func(t *testing.T) {
		t.Parallel()
		// A provider's limit is per tenant: another one's is not touched by the first.
		answer := ask(t, conn, &quorleasev1.AcquireRequest{Attributes: pairs("tenant=b deployment=other")})
		left := answer.GetRemaining()
		if got := left[len(left)-1]; got.GetKey() != "b|other" || got.GetTokens() != 49 {
			t.Errorf("another tenant has %v", got)
		}
	})
	t.Run("S3-16", func(t *testing.T) {
		t.Parallel()
		// A batch interface is a deployment of its own, with limits of its own.
		for range 2 {
			ask(t, conn, &quorleasev1.AcquireRequest{Attributes: pairs("deployment=batch-api")})
		}
		answer := ask(t, conn, &quorleasev1.AcquireRequest{Attributes: pairs("deployment=batch-api")})
		if answer.GetDecision() != quorleasev1.Decision_DENIED || answer.GetDenials()[0].GetKey() != "batch-api" {
			t.Errorf("a third one: %v", answer)
		}
		if got := ask(t, conn, &quorleasev1.AcquireRequest{Attributes: pairs("deployment=live-api")}); got.GetLease() == nil {
			t.Errorf("beside it: %v", got)
		}
	})
}

// Of a team's large quota and a deployment's small one the small one refuses, and the
// answer says which.
func TestEveryLevelCounts(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	write(t, node, described)
	conn := dial(t, address)
	request := &quorleasev1.AcquireRequest{Attributes: pairs("deployment=gpt team=x")}
	for range 2 {
		if got := ask(t, conn, request); got.GetLease() == nil {
			t.Fatalf("inside both: %v", got)
		}
	}
	answer := ask(t, conn, request)
	for _, row := range []string{"S1-06", "S1-16"} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			denials := answer.GetDenials()
			if answer.GetDecision() != quorleasev1.Decision_DENIED || len(denials) != 1 ||
				denials[0].GetLimit() != "deployment" || denials[0].GetKey() != "gpt" {
				t.Errorf("got %v", answer)
			}
			// All or nothing: the team's bucket is as it was.
			if left := answer.GetRemaining()[1]; left.GetLimit() != "team" || left.GetTokens() != 98 {
				t.Errorf("the team has %v", left)
			}
		})
	}
}

// The tightest of several dimensions is the one that is named.
func TestTheBindingDimensionIsNamed(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"S3-04", "S3-41"} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			node, _, address := start(t, nil)
			write(t, node, `limits:
  - name: provider
    match: {deployment: "*"}
    rate: {requests: 1000/min, input_tokens: 400000/min, output_tokens: 80000/min}
`)
			conn := dial(t, address)
			request := &quorleasev1.AcquireRequest{
				Attributes: pairs("deployment=x"), Amounts: map[string]int64{"input_tokens": 2500, "output_tokens": 300},
			}
			granted := 0
			answer := ask(t, conn, request)
			for ; answer.GetLease() != nil; answer = ask(t, conn, request) {
				granted++
			}
			// 400,000 / 2,500 are 160 tasks; the other two would allow 1,000 and 266.
			denials := answer.GetDenials()
			if granted != 160 || len(denials) != 1 || denials[0].GetDimension() != "input_tokens" {
				t.Errorf("%d tasks were granted, then %v", granted, denials)
			}
		})
	}
}

func TestAttributesThatCantBeUsed(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	write(t, node, described)
	conn := dial(t, address)
	many := map[string]string{}
	for i := range 33 {
		many[fmt.Sprintf("a%d", i)] = "x"
	}
	long := strings.Repeat("k", 256)
	for _, test := range []struct {
		name    string
		request *quorleasev1.AcquireRequest
		reason  string
		text    string
	}{
		{"nothing fits", &quorleasev1.AcquireRequest{Attributes: pairs("region=eu")}, "LIMIT_NOT_FOUND", "no limit fits"},
		{"too many", &quorleasev1.AcquireRequest{Attributes: many}, "BAD_FIELD", "attributes: 33, more than 32"},
		{
			"a bad name", &quorleasev1.AcquireRequest{Attributes: pairs("A=x")},
			"BAD_FIELD", `"A" is not the name of an attribute`,
		},
		{
			"A22_an_empty_value", &quorleasev1.AcquireRequest{Attributes: pairs("team=")},
			"BAD_FIELD", "attributes.team: missing",
		},
		{
			"A22_a_line_break", &quorleasev1.AcquireRequest{Attributes: map[string]string{"team": "a\nb"}},
			"BAD_FIELD", "has a control character",
		},
		{
			"A22_a_key_too_long",
			&quorleasev1.AcquireRequest{Attributes: map[string]string{"tenant": long, "deployment": long}},
			"BAD_FIELD", "attributes: tenant, deployment make a key of 513 bytes",
		},
		{
			"amounts alone", &quorleasev1.AcquireRequest{Charges: charge("a", 1), Amounts: map[string]int64{"requests": 1}},
			"BAD_FIELD", "amounts: must be absent where there are no attributes",
		},
		{
			"a bad amount",
			&quorleasev1.AcquireRequest{Attributes: pairs("team=x"), Amounts: map[string]int64{"requests": 0}},
			"BAD_FIELD", "amounts.requests: 0 is out of range",
		},
		{
			"a wait too long",
			&quorleasev1.AcquireRequest{Attributes: pairs("team=x"), MaxWait: durationpb.New(2 * time.Hour)},
			"BAD_FIELD", "max_wait: 2h0m0s is out of range 0s..1h0m0s",
		},
		{"nothing at all", &quorleasev1.AcquireRequest{}, "BAD_FIELD", "charges: missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := quorleasev1.NewAdmissionClient(conn).Acquire(patient(t), test.request)
			e := server.ErrorOf(err)
			if err == nil || e.Cause.Reason != test.reason || !strings.Contains(e.Message, test.text) {
				t.Errorf("got %v, want %s %q", err, test.reason, test.text)
			}
		})
	}
}

// What is decided by limits that have changed meanwhile is expanded again: a reload
// loses nobody and lets nobody through by rules that are gone.
func TestReloadWhileDeciding(t *testing.T) {
	t.Parallel()
	const before, after = "limits: [{name: a, match: {team: x}, rate: {requests: 10/min}}]",
		"limits: [{name: b, match: {team: x}, rate: {requests: 10/min}}]"
	t.Run("S3-13", func(t *testing.T) {
		t.Parallel()
		node, _, address := start(t, nil)
		write(t, node, before)
		conn := dial(t, address)
		for name, acquire := range map[string]func() *quorleasev1.AcquireResponse{
			"a call": func() *quorleasev1.AcquireResponse {
				return ask(t, conn, &quorleasev1.AcquireRequest{Attributes: pairs("team=x")})
			},
			"an item of a session": func() *quorleasev1.AcquireResponse {
				stream := open(t, patient(t), address, hello())
				send(t, stream, &quorleasev1.RequestItem{Seq: 1, Operation: &quorleasev1.RequestItem_Acquire{
					Acquire: &quorleasev1.AcquireRequest{Attributes: pairs("team=x")},
				}})
				answers, _ := receive(t, stream, 1)
				return answers[1].GetAcquire()
			},
		} {
			write(t, node, before)
			node.Hold()
			answered := make(chan *quorleasev1.AcquireResponse, 1)
			go func() { answered <- acquire() }()
			eventually(t, func() bool { _, held, _ := node.Counts(); return held == 1 })
			write(t, node, after)
			node.Resume()
			if got := chargedBy((<-answered).GetLease().GetCharges()); got != "b/ requests=1" {
				t.Errorf("%s is charged %q", name, got)
			}
		}
	})
}

// Limits that change every time are given up, and the answer says that nothing
// happened.
func TestLimitsThatNeverRest(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	write(t, node, "limits: [{name: a, match: {team: x}, rate: {requests: 10/min}}]")
	conn := dial(t, address)
	failed := make(chan error, 1)
	node.Hold()
	go func() {
		_, err := quorleasev1.NewAdmissionClient(conn).Acquire(patient(t),
			&quorleasev1.AcquireRequest{Attributes: pairs("team=x")})
		failed <- err
	}()
	for i := range 4 {
		eventually(t, func() bool { _, held, _ := node.Counts(); return held == 1 })
		write(t, node, fmt.Sprintf("limits: [{name: l%d, match: {team: x}, rate: {requests: 10/min}}]", i))
		node.Step()
	}
	if e := server.ErrorOf(<-failed); e == nil || e.Cause.Reason != "REVISION_CHANGED" || e.Cause.MayHaveHappened {
		t.Errorf("got %v", e)
	}
	node.Resume()
}

// A repetition with the same lease id is the same lease, whatever the limits are now.
func TestG4RepeatedWithAttributes(t *testing.T) {
	t.Parallel()
	t.Run("G4", func(t *testing.T) {
		t.Parallel()
		node, _, address := start(t, nil)
		write(t, node, "limits: [{name: a, match: {team: x}, rate: {requests: 10/min}}]")
		conn := dial(t, address)
		request := &quorleasev1.AcquireRequest{LeaseId: leaseID, Track: true, Attributes: pairs("team=x")}
		ask(t, conn, request)
		write(t, node, "limits:\n- {name: a, match: {team: x}, rate: {requests: 10/min}}\n"+
			"- {name: b, match: {team: x}, rate: {requests: 10/min}}")
		again := ask(t, conn, request)
		if !again.GetRepeatedRequest() || chargedBy(again.GetLease().GetCharges()) != "a/ requests=1" {
			t.Errorf("the same again: %v", again)
		}
		request.Attributes["team"] = "y"
		request.Charges = charge("b", 1)
		_, err := quorleasev1.NewAdmissionClient(conn).Acquire(patient(t), request)
		if e := server.ErrorOf(err); err == nil || e.Cause.Reason != "LEASE_CONFLICT" {
			t.Errorf("other content: %v", err)
		}
	})
}
