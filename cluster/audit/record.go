package audit

import (
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/retries"
)

// Bounds of a line, whatever a client sends (G10).
const (
	// nameMost and keyMost are in bytes.
	nameMost, keyMost = 128, 512
	leaseMost         = 16
	// listMost is how many charges, denials or warnings a line has.
	listMost = 16
)

// Decision is one line. Fields are added, and never change their meaning.
type Decision struct {
	Time     time.Time `json:"time"`
	Node     string    `json:"node"`
	Client   string    `json:"client"`
	Class    string    `json:"class,omitempty"`
	Attempt  uint32    `json:"attempt"`
	Decision string    `json:"decision"`
	// Source is "consensus", or "node" where this node refused by itself.
	Source string `json:"source"`
	Lease  string `json:"lease,omitempty"`
	// Repeated: the same lease id was answered before.
	Repeated bool `json:"repeated,omitempty"`
	// WaitedMs is how long it waited in the queue.
	WaitedMs int64    `json:"waited_ms,omitempty"`
	Charges  []Charge `json:"charges,omitempty"`
	Denials  []Denial `json:"denials,omitempty"`
	// Warnings are denials of limits that don't enforce.
	Warnings []Denial `json:"warnings,omitempty"`
	// More is how many of the lists there were beyond those of the line.
	More int `json:"more,omitempty"`
	// SampleBp is how many of the grants are written, in hundredths of a percent; 0
	// where all are.
	SampleBp int64 `json:"sample_bp,omitempty"`
}

// Charge is what was asked of one dimension.
type Charge struct {
	Limit     string `json:"limit"`
	Key       string `json:"key,omitempty"`
	Dimension string `json:"dimension"`
	Amount    int64  `json:"amount"`
}

// Denial is one reason.
type Denial struct {
	Reason    string `json:"reason"`
	Limit     string `json:"limit,omitempty"`
	Key       string `json:"key,omitempty"`
	Dimension string `json:"dimension,omitempty"`
	// RetryAfterMs is 0 for never.
	RetryAfterMs int64 `json:"retry_after_ms"`
}

// of copies what a line needs: the operation is its caller's again afterwards.
func of(op *logv1.Acquire, attempt uint32, result *logv1.AcquireResult) Decision {
	d := Decision{
		Client: bounded(op.GetClient(), nameMost), Class: bounded(op.GetClass(), nameMost), Attempt: attempt,
		Decision: "denied", Source: "consensus", Repeated: result.GetRepeated(),
		WaitedMs: result.GetQueue().GetWaited() / int64(time.Millisecond),
	}
	id := op.GetLeaseId()
	d.Lease = hex.EncodeToString(id[:min(len(id), leaseMost)])
	if result.GetGranted() {
		d.Decision = "granted"
	}
	charges := op.GetCharges()
	d.Charges = make([]Charge, 0, min(len(charges), listMost))
	for _, c := range charges[:min(len(charges), listMost)] {
		d.Charges = append(d.Charges, Charge{
			bounded(c.GetLimit(), nameMost), bounded(c.GetKey(), keyMost), bounded(c.GetDimension(), nameMost), c.GetAmount(),
		})
	}
	d.More = max(0, len(charges)-listMost)
	d.Denials, d.Warnings = d.denials(result.GetDenials()), d.denials(result.GetWarnings())
	if retries.DecidedHere(result) {
		d.Source = "node"
	}
	return d
}

func (d *Decision) denials(all []*logv1.Denial) (list []Denial) {
	d.More += max(0, len(all)-listMost)
	for _, one := range all[:min(len(all), listMost)] {
		list = append(list, Denial{
			Reason: strings.ToLower(strings.TrimPrefix(one.GetReason().String(), "REASON_")),
			Limit:  bounded(one.GetLimit(), nameMost), Key: bounded(one.GetKey(), keyMost),
			Dimension:    bounded(one.GetDimension(), nameMost),
			RetryAfterMs: one.GetRetryAfter() / int64(time.Millisecond),
		})
	}
	return list
}

// bounded cuts a text at most bytes, between two characters; what it returns does
// not hold the rest in memory.
func bounded(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const ellipsis = "…"
	end := most - len(ellipsis)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}
