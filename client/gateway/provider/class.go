package provider

import (
	"time"

	"github.com/quorlease/quorlease/client/feedback"
)

// Class is what an answer means to whoever sends on behalf of others.
type Class int

// The classes.
const (
	// None: it is an answer.
	None Class = iota
	// Transient: more was asked for than the limit gives now. Waiting helps.
	Transient
	// Acceleration: the limit is kept, but what is asked for grows too fast.
	Acceleration
	// Overload: the provider has trouble of its own, whoever asks. Nobody's limit is
	// used up by it.
	Overload
	// HardQuota: money is used up. No waiting helps; a person has to do something.
	HardQuota
	// Adapt: the limit is lower than the one that is configured, for a while.
	Adapt
	// LongWindow: the limit of hours or days is used up. Waiting helps, but longer than
	// anybody waits in a queue.
	LongWindow
	// TooLarge: it is larger than the limit ever gives at once. No waiting helps.
	TooLarge
	// Other: an error that is about no limit.
	Other
)

var classes = [...]string{
	"NONE", "TRANSIENT_RATE", "ACCELERATION", "OVERLOAD", "HARD_QUOTA", "ADAPT", "LONG_WINDOW", "TOO_LARGE", "OTHER",
}

// String is the class in capitals.
func (c Class) String() string {
	if c < None || c > Other {
		return "UNKNOWN"
	}
	return classes[c]
}

// Scope is whom an answer is about beside the one who asked. Empty: it does not
// say.
type Scope string

// The scopes.
const (
	Organization Scope = "organization"
	Project      Scope = "project"
	Workspace    Scope = "workspace"
	Deployment   Scope = "deployment"
	Everybody    Scope = "everybody"
)

// Retry is what x-should-retry says.
type Retry int

// What it may say.
const (
	Unsaid Retry = iota
	Yes
	No
)

// Verdict is what an answer means.
type Verdict struct {
	Class Class
	Scope Scope
	// Dimension is what was exceeded, where the answer names it: requests, tokens,
	// input_tokens or output_tokens.
	Dimension string
	// Reason is the provider's own word, at most 256 bytes.
	Reason string
	// Wait is what it asks to wait.
	Wait Wait
	// Resumes is when a spend cap ends by itself, where the answer names the day. Zero:
	// it does not.
	Resumes time.Time
	// Retry is what the provider says about trying again.
	Retry Retry
	// Advertised is the limit of tokens in the headers, with Adapt.
	Advertised int64
	// Limits are what its headers say is left.
	Limits Limits
	// Row is the source of the signal that decided. Zero: none did.
	Row Seen
}

// MayRetry says whether the same request may be sent again, after the wait: what
// the provider says of it, except that neither money nor size comes by waiting.
func (v *Verdict) MayRetry() bool {
	switch v.Class {
	case None, HardQuota, TooLarge:
		return false
	case Other:
		return v.Retry == Yes
	default:
		return v.Retry != No
	}
}

// Answer is what the authority is to hear of it. It is false where there is
// nothing to hear. Limit, Key or Attributes are the caller's to fill in.
func (v *Verdict) Answer() (feedback.Answer, bool) {
	a := feedback.Answer{Reason: v.Reason, Remaining: v.Limits.Remaining()}
	if v.Wait.Said {
		a.Wait = v.Wait.For
	}
	switch v.Class {
	case Transient, Adapt, LongWindow:
		a.Kind = feedback.Throttled
	case Acceleration:
		a.Kind = feedback.Acceleration
	case Overload:
		// What is left of a limit has nothing to do with it.
		a.Kind, a.Remaining = feedback.Overloaded, nil
	case HardQuota:
		a.Kind, a.Wait, a.Remaining = feedback.SpendCap, 0, nil
	default:
		a.Kind, a.Wait, a.Reason = feedback.Observed, 0, ""
		return a, len(a.Remaining) > 0
	}
	return a, true
}
