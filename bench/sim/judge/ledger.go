package judge

import (
	"fmt"
	"strings"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// ledger checks G4: by lease id, what is sent again has the effect of one and
// the same answer, whichever node gives it.
type ledger struct {
	judge   *Judge
	records map[string]*record
}

type record struct {
	// granted is how often the id was debited.
	granted int
	// gone: a release of the id was answered when nobody knew it.
	gone bool
	// sequence is the highest of its renewals that were granted.
	sequence uint64
	// answers are what was answered first, by the request.
	answers map[string]string
}

func (l *ledger) record(id []byte) *record {
	r := l.records[string(id)]
	if r == nil {
		r = &record{answers: make(map[string]string)}
		l.records[string(id)] = r
	}
	return r
}

// Tracked says whether an id was asked for as a tracked lease: the first byte
// tells, in a simulation.
func Tracked(id []byte) bool { return len(id) > 0 && id[0] == 't' }

func (l *ledger) committed(c *Committed, op *logv1.Operation, result *logv1.Result) {
	if renew := op.GetRenew(); renew != nil && result.GetLease() != nil {
		r := l.record(renew.GetLeaseId())
		r.sequence = max(r.sequence, renew.GetSequence())
	}
	acquire, answer := op.GetAcquire(), result.GetAcquire()
	if !Tracked(acquire.GetLeaseId()) || !answer.GetGranted() || answer.GetRepeated() {
		return
	}
	r := l.record(acquire.GetLeaseId())
	r.granted++
	switch {
	case r.granted > 1:
		l.judge.Complain("G4", "lease %s was debited %d times, now at index %d",
			name(acquire.GetLeaseId()), r.granted, c.Index)
	case r.gone:
		l.judge.Complain("G4", "lease %s was granted at index %d after its release had been answered",
			name(acquire.GetLeaseId()), c.Index)
	}
}

func name(id []byte) string { return strings.TrimRight(string(id), "\x00") }

// Answered takes an answer as a node gives it.
func (j *Judge) Answered(op *logv1.Operation, result *logv1.Result) {
	id, request, answer := canonical(op, result)
	if id == nil || answer == "" {
		return
	}
	r := j.ledger.record(id)
	refused := result.GetRefusal().GetCause()
	if renew := op.GetRenew(); renew != nil && refused != 0 && renew.GetSequence() < r.sequence {
		// It comes again when its holder is further on.
		return
	}
	if op.GetRelease() != nil && refused == logv1.Refusal_CAUSE_LEASE_NOT_FOUND {
		r.gone = true
	}
	if op.GetRelease() == nil && refused == logv1.Refusal_CAUSE_LEASE_NOT_FOUND && r.granted > 0 {
		j.Complain("G4", "lease %s was granted, and %s is answered %s", name(id), request, answer)
	}
	first, known := r.answers[request]
	if !known {
		r.answers[request] = answer
	} else if first != answer {
		j.Complain("G4", "%s of lease %s was answered %s and is answered %s", request, name(id), first, answer)
	}
}

// canonical is what of a request and an answer must stay the same. An empty
// answer is one that is not remembered.
func canonical(op *logv1.Operation, result *logv1.Result) (id []byte, request, answer string) {
	if r := result.GetRefusal(); r != nil {
		answer = r.GetCause().String()
	}
	switch kind := op.GetKind().(type) {
	case *logv1.Operation_Acquire:
		if !Tracked(kind.Acquire.GetLeaseId()) {
			return nil, "", ""
		}
		if a := result.GetAcquire(); a.GetGranted() {
			answer = fmt.Sprint("granted", len(a.GetCharges()))
		}
		return kind.Acquire.GetLeaseId(), "acquire", answer
	case *logv1.Operation_Settle:
		request = "settle"
		for _, u := range kind.Settle.GetUsed() {
			request += fmt.Sprintf(" %s=%d", u.GetDimension(), u.GetUsed())
		}
		return kind.Settle.GetLeaseId(), request, answer + settlements(result.GetLease())
	case *logv1.Operation_Release:
		if r := result.GetLease(); r != nil {
			answer = r.GetState().String()
		}
		return kind.Release.GetLeaseId(), "release", answer
	case *logv1.Operation_Renew:
		// What the lease became since is shown in a repeated answer too, and is no
		// difference.
		request = fmt.Sprint("renewal ", kind.Renew.GetSequence())
		if result.GetLease() != nil {
			answer = "renewed"
		}
		return kind.Renew.GetLeaseId(), request, answer
	}
	return nil, "", ""
}

func settlements(r *logv1.LeaseResult) string {
	if r == nil {
		return ""
	}
	text := r.GetState().String()
	for _, s := range r.GetSettlements() {
		text += fmt.Sprintf(" %s: used %d refunded %d excess %d beyond %d", s.GetDimension(), s.GetUsed(),
			s.GetRefunded(), s.GetExcess(), s.GetWrittenOff())
	}
	return text
}
