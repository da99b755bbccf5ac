// Package fsmtest helps to test the state machine: builders of operations, a
// driver that checks what must always be true, scripts in text, random
// histories, and an oracle that does the arithmetic of a bucket in fractions.
//
// It is for tests only.
package fsmtest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// LeaseID makes a lease id of a short name.
func LeaseID(name string) []byte {
	id := make([]byte, 16)
	copy(id, name)
	return id
}

// Dimension is a dimension of "AMOUNT/INTERVAL", with as much debt and as much
// that can come back as the burst.
func Dimension(t testing.TB, name, rate string, burst int64) *logv1.Dimension {
	t.Helper()
	amount, interval, err := parseRate(rate)
	if err != nil {
		t.Fatalf("rate %q of dimension %q: %v", rate, name, err)
	}
	return &logv1.Dimension{
		Name: name, Amount: amount, Interval: int64(interval), Burst: burst, MaxDebt: burst, MaxOpen: burst,
	}
}

func parseRate(rate string) (amount int64, interval time.Duration, err error) {
	number, unit, found := strings.Cut(rate, "/")
	if !found {
		return 0, 0, fmt.Errorf("%q: must be AMOUNT/INTERVAL", rate)
	}
	amount, err = strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, 0, err
	}
	interval, err = time.ParseDuration(unit)
	return amount, interval, err
}

// Limit is a limit without keys, with leases of 5 s.
func Limit(name string, dimensions ...*logv1.Dimension) *logv1.Limit {
	return &logv1.Limit{
		Name: name, Dimensions: dimensions, Target: 10_000, Lease: int64(5 * time.Second), MaxKeys: 100_000,
	}
}

// Keyed is a limit with keys, with leases of 5 s.
func Keyed(name string, dimensions ...*logv1.Dimension) *logv1.Limit {
	limit := Limit(name, dimensions...)
	limit.Keyed = true
	return limit
}

// Apply is an operation that adds and changes limits.
func Apply(limits ...*logv1.Limit) *logv1.Operation {
	return Operation(&logv1.ApplyLimits{Limits: limits})
}

// Charge is one charge.
func Charge(limit, key, dimension string, amount int64) *logv1.Charge {
	return &logv1.Charge{Limit: limit, Key: key, Dimension: dimension, Amount: amount}
}

// Acquire is an untracked acquire.
func Acquire(id string, charges ...*logv1.Charge) *logv1.Operation {
	return Operation(&logv1.Acquire{LeaseId: LeaseID(id), Charges: charges})
}

// Track is a tracked acquire.
func Track(id string, charges ...*logv1.Charge) *logv1.Operation {
	return Operation(&logv1.Acquire{LeaseId: LeaseID(id), Track: true, Charges: charges})
}

// Settle settles every charge of a dimension.
func Settle(id, dimension string, used int64) *logv1.Operation {
	return Operation(&logv1.Settle{
		LeaseId: LeaseID(id), Used: []*logv1.Usage{{Dimension: dimension, Used: used}},
	})
}

// Release gives a lease back.
func Release(id string) *logv1.Operation { return Operation(&logv1.Release{LeaseId: LeaseID(id)}) }

// Renew prolongs the time to settle.
func Renew(id string, sequence uint64, ttl time.Duration) *logv1.Operation {
	return Operation(&logv1.Renew{LeaseId: LeaseID(id), Sequence: sequence, Ttl: int64(ttl)})
}

// Report is a retry report.
func Report(node string, boot uint64, slices ...*logv1.ClientSlice) *logv1.Operation {
	return Operation(&logv1.ReportRetries{Node: node, Boot: boot, Slices: slices})
}

// Count is a session's total for one bucket, of its first class.
func Count(limit, key, dimension string, tokens int64) *logv1.AdmittedCount {
	return &logv1.AdmittedCount{Limit: limit, Key: key, Dimension: dimension, Tokens: tokens}
}

// Admitted is a session's report of what it admitted by itself.
func Admitted(session string, counts ...*logv1.AdmittedCount) *logv1.Operation {
	return Operation(&logv1.ReportAdmitted{Session: LeaseID(session), Counts: counts})
}

// Held is that a session holds a promise of a share of a limit.
func Held(session, limit string, version uint64) *logv1.HeldShare {
	return &logv1.HeldShare{Session: LeaseID(session), Limit: limit, Version: version}
}

// Refresh is that a node has heard of sessions.
func Refresh(held ...*logv1.HeldShare) *logv1.Operation {
	return Operation(&logv1.ReportShares{Held: held})
}

// Operation wraps one kind of operation.
func Operation(kind any) *logv1.Operation {
	switch kind := kind.(type) {
	case *logv1.Acquire:
		return &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: kind}}
	case *logv1.Settle:
		return &logv1.Operation{Kind: &logv1.Operation_Settle{Settle: kind}}
	case *logv1.Release:
		return &logv1.Operation{Kind: &logv1.Operation_Release{Release: kind}}
	case *logv1.Renew:
		return &logv1.Operation{Kind: &logv1.Operation_Renew{Renew: kind}}
	case *logv1.ApplyLimits:
		return &logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: kind}}
	case *logv1.Adjust:
		return &logv1.Operation{Kind: &logv1.Operation_Adjust{Adjust: kind}}
	case *logv1.ReportRetries:
		return &logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: kind}}
	case *logv1.ReportAdmitted:
		return &logv1.Operation{Kind: &logv1.Operation_ReportAdmitted{ReportAdmitted: kind}}
	case *logv1.RollWindow:
		return &logv1.Operation{Kind: &logv1.Operation_RollWindow{RollWindow: kind}}
	case *logv1.EndSession:
		return &logv1.Operation{Kind: &logv1.Operation_EndSession{EndSession: kind}}
	case *logv1.Feedback:
		return &logv1.Operation{Kind: &logv1.Operation_Feedback{Feedback: kind}}
	case *logv1.AskEscrow:
		return &logv1.Operation{Kind: &logv1.Operation_AskEscrow{AskEscrow: kind}}
	case *logv1.ReturnEscrow:
		return &logv1.Operation{Kind: &logv1.Operation_ReturnEscrow{ReturnEscrow: kind}}
	case *logv1.ReportShares:
		return &logv1.Operation{Kind: &logv1.Operation_ReportShares{ReportShares: kind}}
	case *logv1.SetNode:
		return &logv1.Operation{Kind: &logv1.Operation_SetNode{SetNode: kind}}
	case *logv1.Form:
		return &logv1.Operation{Kind: &logv1.Operation_Form{Form: kind}}
	}
	panic(fmt.Sprintf("fsmtest: %T is no operation", kind))
}
