package convert_test

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/cluster/events"
)

const leaseID = "00112233445566778899aabbccddeeff"

// acquire is a good request with one change.
func acquire(change func(*quorleasev1.AcquireRequest)) *quorleasev1.AcquireRequest {
	r := &quorleasev1.AcquireRequest{
		LeaseId: leaseID, Client: "c", Class: "live", Track: true,
		Charges: []*quorleasev1.Charge{{Limit: "a", Key: "k", Dimension: "requests", Amount: 1}},
	}
	change(r)
	return r
}

func TestAcquireBecomesAnOperation(t *testing.T) {
	t.Parallel()
	op, err := convert.Acquire(acquire(func(*quorleasev1.AcquireRequest) {}), "owner")
	if err != nil {
		t.Fatal(err)
	}
	want := &logv1.Acquire{
		LeaseId: []byte{0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff},
		Owner:   "owner", Client: "c", Class: "live", Track: true,
		Charges: []*logv1.Charge{{Limit: "a", Key: "k", Dimension: "requests", Amount: 1}},
	}
	if diff := cmp.Diff(want, op.GetAcquire(), protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// Without a record it needs no id, and its lease gets one that is its own.
	drawn := map[string]bool{}
	for range 100 {
		op, err := convert.Acquire(acquire(func(r *quorleasev1.AcquireRequest) { r.LeaseId, r.Track = "", false }), "")
		if err != nil || len(op.GetAcquire().GetLeaseId()) != 0 {
			t.Fatalf("untracked: %v, %v", op, err)
		}
		answer := convert.AcquireAnswer(op.GetAcquire(), &logv1.AcquireResult{Granted: true})
		drawn[answer.GetLease().GetId()] = len(answer.GetLease().GetId()) == 32
	}
	if len(drawn) != 100 || slices.Contains(slices.Collect(maps.Values(drawn)), false) {
		t.Errorf("%d different ids of 100: %v", len(drawn), drawn)
	}
}

func TestBadAcquires(t *testing.T) {
	t.Parallel()
	first := func(change func(*quorleasev1.Charge)) func(*quorleasev1.AcquireRequest) {
		return func(r *quorleasev1.AcquireRequest) { change(r.GetCharges()[0]) }
	}
	amount := func(n int64) func(*quorleasev1.AcquireRequest) {
		return first(func(c *quorleasev1.Charge) { c.Amount = n })
	}
	key := func(k string) func(*quorleasev1.AcquireRequest) {
		return first(func(c *quorleasev1.Charge) { c.Key = k })
	}
	for _, test := range []struct {
		name   string
		change func(*quorleasev1.AcquireRequest)
		want   string
	}{
		{"A10_zero", amount(0), "charges[0].amount: 0 is out of range 1..9007199254740992"},
		{"A10_negative", amount(-1), "charges[0].amount: -1 is out of range 1..9007199254740992"},
		{"A10_above_2^53", amount(1<<53 + 1), "charges[0].amount: 9007199254740993 is out of range"},
		{"A10_MaxInt64", amount(math.MaxInt64), "charges[0].amount: 9223372036854775807 is out of range"},
		{"A22_long_key", key(strings.Repeat("k", 513)), "has 513 bytes, more than 512"},
		{"A22_NUL", key("a\x00"), `charges[0].key: "a\x00" has a control character`},
		{"A22_newline", key("a\nb"), `charges[0].key: "a\nb" has a control character`},
		{"A22_C1", key("\u0085"), "has a control character"},
		{"A22_DEL", key("\x7f"), "has a control character"},
		{"A22_invalid_UTF-8", key("\xff"), `charges[0].key: "\xff" is not valid UTF-8`},
		{"limit", first(func(c *quorleasev1.Charge) { c.Limit = "A/b" }), `charges[0].limit: "A/b" is not a name`},
		{"no limit", first(func(c *quorleasev1.Charge) { c.Limit = "" }), "charges[0].limit: missing"},
		{"dimension", first(func(c *quorleasev1.Charge) { c.Dimension = "1" }), `charges[0].dimension: "1" is not the name`},
		{"no charges", func(r *quorleasev1.AcquireRequest) { r.Charges = nil }, "charges: missing: 1 to 16"},
		{"nil charge", func(r *quorleasev1.AcquireRequest) { r.Charges[0] = nil }, "charges[0].limit: missing"},
		{
			"17 charges", func(r *quorleasev1.AcquireRequest) { r.Charges = make([]*quorleasev1.Charge, 17) },
			"charges: 17 charges, more than 16",
		},
		{
			"twice", func(r *quorleasev1.AcquireRequest) { r.Charges = append(r.Charges, r.GetCharges()[0]) },
			"charges[1]: the same limit, key and dimension as charges[0]",
		},
		{"no lease id", func(r *quorleasev1.AcquireRequest) { r.LeaseId = "" }, "lease_id: missing"},
		{"short lease id", func(r *quorleasev1.AcquireRequest) { r.LeaseId = "ab" }, `lease_id: "ab" is not 32`},
		{"upper-case lease id", func(r *quorleasev1.AcquireRequest) { r.LeaseId = strings.ToUpper(leaseID) }, "lease_id: "},
		{"untracked bad id", func(r *quorleasev1.AcquireRequest) { r.LeaseId, r.Track = "x", false }, `lease_id: "x"`},
		{"class", func(r *quorleasev1.AcquireRequest) { r.Class = "Live" }, `class: "Live" is not the name of a class`},
		{"client", func(r *quorleasev1.AcquireRequest) { r.Client = strings.Repeat("c", 257) }, "more than 256"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			op, err := convert.Acquire(acquire(test.change), "")
			var fields limitsfile.FieldErrors
			if op != nil || !errors.As(err, &fields) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
	all := &quorleasev1.AcquireRequest{Track: true, Class: "X", Charges: make([]*quorleasev1.Charge, 16)}
	_, err := convert.Acquire(all, "")
	var fields limitsfile.FieldErrors
	if !errors.As(err, &fields) || len(fields) != 20 {
		t.Errorf("%d fields named, want the first 20", len(fields))
	}
}

func TestBadLeaseOperations(t *testing.T) {
	t.Parallel()
	used := func(list ...*quorleasev1.Usage) error {
		_, err := convert.Settle(&quorleasev1.SettleRequest{LeaseId: leaseID, Used: list}, "")
		return err
	}
	renew := func(ttl *durationpb.Duration, sequence uint64) error {
		_, err := convert.Renew(&quorleasev1.RenewRequest{LeaseId: leaseID, Ttl: ttl, Sequence: sequence}, "")
		return err
	}
	adjust := func(r *quorleasev1.LimitsAdjustRequest) error {
		r.Limit, r.Dimension = "a", "requests"
		_, err := convert.Adjust(r, "")
		return err
	}
	release := func(r *quorleasev1.ReleaseRequest) error {
		_, err := convert.Release(r, "")
		return err
	}
	u := quorleasev1.Usage{Dimension: "requests", Used: 1}
	nothing, add := &quorleasev1.LimitsAdjustRequest_Reset_{}, &quorleasev1.LimitsAdjustRequest_Add{Add: 1}
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"A15_negative_usage", used(&quorleasev1.Usage{Dimension: "r", Used: -1}), "used[0].used: -1 is out of range 0.."},
		{"usage without dimension", used(&quorleasev1.Usage{}), "used[0].dimension: missing"},
		{"key without limit", used(&quorleasev1.Usage{Key: "k", Dimension: "r"}), `used[0].limit: missing beside the key`},
		{"usage twice", used(&u, &u), "used[1]: the same limit, key and dimension as used[0]"},
		{"too many", used(make([]*quorleasev1.Usage, 65)...), "used: 65 entries, more than 64"},
		{"no ttl", renew(nil, 1), "ttl: missing: 1ms to 24h0m0s"},
		{"short ttl", renew(durationpb.New(time.Microsecond), 1), "ttl: 1µs is out of range"},
		{"long ttl", renew(&durationpb.Duration{Seconds: math.MaxInt64}, 1), "is out of range"},
		{"no sequence", renew(durationpb.New(time.Second), 0), "sequence: 0: must be positive"},
		{"release without id", release(&quorleasev1.ReleaseRequest{}), "lease_id: missing"},
		{"no change", adjust(&quorleasev1.LimitsAdjustRequest{Reason: "r"}), "add: missing"},
		{
			"add nothing", adjust(&quorleasev1.LimitsAdjustRequest{Reason: "r", Change: &quorleasev1.LimitsAdjustRequest_Add{}}),
			"add: 0 is out of range",
		},
		{
			"reset false", adjust(&quorleasev1.LimitsAdjustRequest{Reason: "r", Change: nothing}),
			"reset: false",
		},
		{
			"no reason", adjust(&quorleasev1.LimitsAdjustRequest{Change: add}),
			"reason: missing",
		},
		{"blank reason", adjust(&quorleasev1.LimitsAdjustRequest{Reason: " \u2003 ", Change: add}), "reason: missing"},
		{"long reason", adjust(&quorleasev1.LimitsAdjustRequest{
			Reason: strings.Repeat("r", 513), Change: add,
		}), "reason: 513 bytes, more than 512"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.name, test.err, test.want)
		}
	}
}

func TestReportBecomesAnOperation(t *testing.T) {
	t.Parallel()
	op, err := convert.Report(report(func(*quorleasev1.ReportRequest) {}), "owner")
	if err != nil {
		t.Fatal(err)
	}
	want := &logv1.ReportAdmitted{
		Session: []byte{0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff},
		Owner:   "owner", Client: "c",
		Counts: []*logv1.AdmittedCount{{Limit: "a", Key: "k", Dimension: "requests", Class: "live", Tokens: 1}},
	}
	if diff := cmp.Diff(want, op.GetReportAdmitted(), protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// report is a good report with one change.
func report(change func(*quorleasev1.ReportRequest)) *quorleasev1.ReportRequest {
	r := &quorleasev1.ReportRequest{
		Client: "c", SessionId: leaseID, Admitted: []*quorleasev1.Admitted{
			{Limit: "a", Key: "k", Dimension: "requests", Class: "live", Tokens: 1},
		},
	}
	change(r)
	return r
}

func TestBadReports(t *testing.T) {
	t.Parallel()
	first := func(change func(*quorleasev1.Admitted)) func(*quorleasev1.ReportRequest) {
		return func(r *quorleasev1.ReportRequest) { change(r.GetAdmitted()[0]) }
	}
	tokens := func(n int64) func(*quorleasev1.ReportRequest) {
		return first(func(a *quorleasev1.Admitted) { a.Tokens = n })
	}
	for _, test := range []struct {
		name   string
		change func(*quorleasev1.ReportRequest)
		want   string
	}{
		{"no session", func(r *quorleasev1.ReportRequest) { r.SessionId = "" }, "session_id: missing: 32 lower-case hex"},
		{"short session", func(r *quorleasev1.ReportRequest) { r.SessionId = "ab" }, `session_id: "ab" is not 32`},
		{"client", func(r *quorleasev1.ReportRequest) { r.Client = strings.Repeat("c", 257) }, "client: "},
		{"nothing", func(r *quorleasev1.ReportRequest) { r.Admitted = nil }, "admitted: missing: 1 to 64"},
		{"too much", func(r *quorleasev1.ReportRequest) {
			r.Admitted = make([]*quorleasev1.Admitted, 65)
		}, "admitted: 65 entries, more than 64"},
		{"nil entry", func(r *quorleasev1.ReportRequest) { r.Admitted[0] = nil }, "admitted[0].limit: missing"},
		{"twice", func(r *quorleasev1.ReportRequest) {
			r.Admitted = append(r.Admitted, r.GetAdmitted()[0])
		}, "admitted[1]: the same limit, key, dimension and class as admitted[0]"},
		{"limit", first(func(a *quorleasev1.Admitted) { a.Limit = "A" }), `admitted[0].limit: "A" is not a name`},
		{"key", first(func(a *quorleasev1.Admitted) { a.Key = "a\nb" }), "admitted[0].key: "},
		{"dimension", first(func(a *quorleasev1.Admitted) { a.Dimension = "" }), "admitted[0].dimension: missing"},
		{"class", first(func(a *quorleasev1.Admitted) { a.Class = "L" }), `admitted[0].class: "L" is not the name of`},
		{"A10_zero", tokens(0), "admitted[0].tokens: 0 is out of range 1..9007199254740992"},
		{"A10_negative", tokens(-1), "admitted[0].tokens: -1 is out of range"},
		{"A10_above_2^53", tokens(1<<53 + 1), "admitted[0].tokens: 9007199254740993 is out of range"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			op, err := convert.Report(report(test.change), "")
			var fields limitsfile.FieldErrors
			if op != nil || !errors.As(err, &fields) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	// The same bucket for another class is another count.
	other := report(func(r *quorleasev1.ReportRequest) {
		r.Admitted = append(r.Admitted, &quorleasev1.Admitted{Limit: "a", Key: "k", Dimension: "requests", Tokens: 1})
	})
	if op, err := convert.Report(other, ""); err != nil || len(op.GetReportAdmitted().GetCounts()) != 2 {
		t.Errorf("two classes: %v, %v", op, err)
	}
}

// The numbers of an enum are those of the log, name by name.
func TestEnumsAgree(t *testing.T) {
	t.Parallel()
	for number, name := range quorleasev1.Reason_name {
		want := logv1.Reason_name[number]
		if strings.TrimPrefix(name, "REASON_") != strings.TrimPrefix(want, "REASON_") {
			t.Errorf("reason %d: %s and %s", number, name, want)
		}
	}
	for number, name := range logv1.LeaseState_name {
		want := quorleasev1.LeaseState_name[number]
		if strings.TrimPrefix(name, "LEASE_STATE_") != strings.TrimPrefix(want, "LEASE_STATE_") {
			t.Errorf("lease state %d: %s and %s", number, name, want)
		}
	}
	for number, name := range logv1.OnQuorumLoss_name {
		want := strings.TrimSuffix(quorleasev1.FallbackMode_name[number], "_ON_LOSS")
		if number > 0 && strings.TrimPrefix(name, "ON_QUORUM_LOSS_") != want {
			t.Errorf("mode %d: %s and %s", number, name, want)
		}
	}
	if len(logv1.OnQuorumLoss_name) != len(quorleasev1.FallbackMode_name) {
		t.Errorf("%d modes and %d", len(logv1.OnQuorumLoss_name), len(quorleasev1.FallbackMode_name))
	}
	for mine, theirs := range map[quorleasev1.Severity]events.Severity{
		quorleasev1.Severity_INFO: events.Info, quorleasev1.Severity_WARNING: events.Warning,
		quorleasev1.Severity_CRITICAL: events.Critical,
	} {
		if int(mine) != int(theirs) {
			t.Errorf("severity %v is %d and %d", mine, mine, theirs)
		}
	}
}
