package state

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/record"
)

// TestG9EveryFieldCounts changes every field of the messages that are part of the
// state: the state hash has to see it.
func TestG9EveryFieldCounts(t *testing.T) {
	t.Parallel()
	t.Run("G9", func(t *testing.T) {
		t.Parallel()
		caps := func(c *logv1.Caps) uint64 {
			sum := digest.New(1)
			digestCaps(&sum, c)
			return sum.Value()
		}
		everyField(t, &logv1.RetryBudget{}, record.SumBudget)
		everyField(t, &logv1.NodeRecord{}, record.SumNode)
		everyField(t, &logv1.Caps{}, caps)
		change := func(c *logv1.LimitChange) uint64 {
			r := &Revision{Changes: []*logv1.LimitChange{c}}
			return r.Sum()
		}
		everyField(t, &logv1.LimitChange{}, change)
	})
}

func everyField[M interface{ ProtoReflect() protoreflect.Message }](t *testing.T, message M, sum func(M) uint64) {
	t.Helper()
	before := sum(message)
	fields := message.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		message.ProtoReflect().Set(field, something(message.ProtoReflect(), field))
		if sum(message) == before {
			t.Errorf("%s is not in the digest", field.FullName())
		}
		message.ProtoReflect().Clear(field)
	}
}

func something(message protoreflect.Message, field protoreflect.FieldDescriptor) protoreflect.Value {
	switch field.Default().Interface().(type) {
	case string:
		return protoreflect.ValueOfString("x")
	case int64:
		return protoreflect.ValueOfInt64(1)
	case uint32:
		return protoreflect.ValueOfUint32(1)
	case protoreflect.EnumNumber:
		return protoreflect.ValueOfEnum(1)
	}
	return message.NewField(field)
}

// TestG9EveryFieldOfALeaseCounts does the same for leases and their charges.
func TestG9EveryFieldOfALeaseCounts(t *testing.T) {
	t.Parallel()
	t.Run("G9", func(t *testing.T) {
		t.Parallel()
		seen := make(map[uint64]int)
		for i, change := range []func(*Lease){
			func(*Lease) {},
			func(l *Lease) { l.ID[3] = 1 },
			func(l *Lease) { l.State = logv1.LeaseState_LEASE_STATE_SETTLED },
			func(l *Lease) { l.Unknown = true },
			func(l *Lease) { l.Owner = "x" },
			func(l *Lease) { l.Client = "x" },
			func(l *Lease) { l.Content = 1 },
			func(l *Lease) { l.Settled = 1 },
			func(l *Lease) { l.Renewed = 1 },
			func(l *Lease) { l.Sequence = 1 },
			func(l *Lease) { l.SpendUntil = 1 },
			func(l *Lease) { l.SettleUntil = 1 },
			func(l *Lease) { l.ForgetAt = 1 },
			func(l *Lease) { l.Session[3] = 1 },
			func(l *Lease) { l.Charges = append(l.Charges, l.Charges[0]) },
			func(l *Lease) { l.Charges[0].LimitID = 1 },
			func(l *Lease) { l.Charges[0].DimensionID = 1 },
			func(l *Lease) { l.Charges[0].Limit = "x" },
			func(l *Lease) { l.Charges[0].Dimension = "x" },
			func(l *Lease) { l.Charges[0].KeyName = "x" },
			func(l *Lease) { l.Charges[0].Amount = 1 },
			func(l *Lease) { l.Charges[0].Class = "x" },
			func(l *Lease) { l.Charges[0].Took = 1 },
			func(l *Lease) { l.Charges[0].TookUnit = 1 },
			func(l *Lease) { l.Charges[0].Refundable = 1 },
			func(l *Lease) { l.Charges[0].Used = 1 },
			func(l *Lease) { l.Charges[0].Refunded = 1 },
			func(l *Lease) { l.Charges[0].Excess = 1 },
			func(l *Lease) { l.Charges[0].WrittenOff = 1 },
			func(l *Lease) { l.Charges[0].Refused = true },
		} {
			l := &Lease{Lease: record.Lease{Charges: []record.Charge{{Counted: &record.Counted{}}}}}
			change(l)
			if other, there := seen[l.Sum()]; there {
				t.Errorf("changes %d and %d have the same digest", other, i)
			}
			seen[l.Sum()] = i
		}
	})
}

// TestG9EveryFieldOfAReportCounts does the same for reports.
func TestG9EveryFieldOfAReportCounts(t *testing.T) {
	t.Parallel()
	t.Run("G9", func(t *testing.T) {
		t.Parallel()
		seen := make(map[uint64]int)
		for i, change := range []func(*Report){
			func(*Report) {},
			func(r *Report) { r.ID.Session[3] = 1 },
			func(r *Report) { r.ID.Owner = "x" },
			func(r *Report) { r.ID.Limit = "x" },
			func(r *Report) { r.ID.Key = "x" },
			func(r *Report) { r.ID.Dimension = "x" },
			func(r *Report) { r.ID.Class = "x" },
			func(r *Report) { r.Client = "x" },
			func(r *Report) { r.Tokens = 1 },
			func(r *Report) { r.At = 1 },
			func(r *Report) { r.ForgetAt = 1 },
		} {
			r := &Report{}
			change(r)
			if other, there := seen[r.Sum()]; there {
				t.Errorf("changes %d and %d have the same digest", other, i)
			}
			seen[r.Sum()] = i
		}
	})
}

// TestSavedReportsThatAreWrong: none of these can have been saved.
func TestSavedReportsThatAreWrong(t *testing.T) {
	t.Parallel()
	good := func() *logv1.SnapshotReport {
		return &logv1.SnapshotReport{
			Session: make([]byte, 16), Client: "c", At: 5, ForgetAt: 10,
			Count: &logv1.AdmittedCount{Limit: "api", Dimension: "requests", Tokens: 1},
		}
	}
	for name, change := range map[string]func(*logv1.SnapshotReport){
		"short session":    func(r *logv1.SnapshotReport) { r.Session = r.GetSession()[1:] },
		"no limit":         func(r *logv1.SnapshotReport) { r.Count.Limit = "" },
		"no dimension":     func(r *logv1.SnapshotReport) { r.Count.Dimension = "" },
		"no class":         func(r *logv1.SnapshotReport) { r.Count.Class = "X" },
		"a key of control": func(r *logv1.SnapshotReport) { r.Count.Key = "\n" },
		"no tokens":        func(r *logv1.SnapshotReport) { r.Count.Tokens = 0 },
		"no count":         func(r *logv1.SnapshotReport) { r.Count = nil },
		"owner":            func(r *logv1.SnapshotReport) { r.Owner = "\x00" },
		"client":           func(r *logv1.SnapshotReport) { r.Client = "\x00" },
		"from the future":  func(r *logv1.SnapshotReport) { r.At = 8 },
		"before time":      func(r *logv1.SnapshotReport) { r.At = -1 },
		"over before":      func(r *logv1.SnapshotReport) { r.ForgetAt = 4 },
		"never over":       func(r *logv1.SnapshotReport) { r.ForgetAt = int64(check.LastInstant+record.ReportLife) + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &restoring{State: New()}
			r.Now = 7
			if err := r.addReport(good()); err != nil {
				t.Fatal(err)
			}
			if err := r.addReport(good()); !errors.Is(err, frames.ErrCorrupt) {
				t.Errorf("twice: %v, want %v", err, frames.ErrCorrupt)
			}
			bad := good()
			bad.Owner = "another"
			change(bad)
			if err := r.addReport(bad); !errors.Is(err, frames.ErrCorrupt) {
				t.Errorf("%v: %v, want %v", bad, err, frames.ErrCorrupt)
			}
		})
	}
}
