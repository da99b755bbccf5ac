package upstream

import (
	"fmt"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
)

// Kind is how a fault shows.
type Kind string

// The kinds of faults.
const (
	// Refuse refuses the call before anything is counted, for Fault.Cause.
	Refuse Kind = "refuse"
	// Spoil sends an error inside a stream that began with status 200, after
	// Fault.After events with text; 0: as its first event. Calls that do not stream
	// are served.
	Spoil Kind = "spoil"
	// Break closes the connection after so many events with text, or before the first
	// byte where the call does not stream.
	Break Kind = "break"
	// Hang sends nothing more after so many events with text, and nothing at all
	// where the call does not stream, until the client leaves or the server closes.
	Hang Kind = "hang"
)

// Fault is something that goes wrong for a while.
type Fault struct {
	// Span is when, in the scenario's time. The zero Span is always.
	provider.Span
	// Kind is how. Required.
	Kind Kind
	// Cause is what Refuse and Spoil say. Empty: an overload.
	Cause Cause
	// After is how many events with text a stream has before.
	After int
	// Wait is the hint that goes with Refuse. 0: none. At most a year.
	Wait time.Duration
	// Client is whose calls, by the header x-client-id. Empty: everybody's.
	Client string
	// Calls is how many calls it happens to, the first ones. 0: all.
	Calls int
}

// faulty is a fault with how many calls it has happened to.
type faulty struct {
	Fault
	calls int
}

// faultsMax is how many faults a server may be told of at a time.
const faultsMax = 1000

func (f Fault) check(api API) error {
	switch f.Kind {
	case Refuse, Spoil, Break, Hang:
	default:
		return fmt.Errorf("kind: %q is none of refuse, spoil, break and hang", f.Kind)
	}
	if _, known := refusals[api][f.Cause]; !known {
		return fmt.Errorf("cause: %s never refuses for %q", api, f.Cause)
	}
	if f.Kind == Spoil && f.Cause != Overload && f.Cause != InputTokens {
		return fmt.Errorf("cause: a stream is not spoilt for %q", f.Cause)
	}
	if f.After < 0 || f.Calls < 0 {
		return fmt.Errorf("after, calls: %d, %d are less than 0", f.After, f.Calls)
	}
	if f.Wait < 0 || f.Wait > 366*24*time.Hour {
		return fmt.Errorf("wait: %v is not within 0 and a year", f.Wait)
	}
	return nil
}

// SetFaults replaces what goes wrong. Of those whose time it is, the first counts.
func (s *Server) SetFaults(faults ...Fault) error {
	if len(faults) > faultsMax {
		return fmt.Errorf("set faults: %d are more than %d", len(faults), faultsMax)
	}
	kept := make([]faulty, len(faults))
	for i, fault := range faults {
		if fault.Cause == "" {
			fault.Cause = Overload
		}
		if err := fault.check(s.config.API); err != nil {
			return fmt.Errorf("set faults: faults[%d]: %w", i, err)
		}
		kept[i].Fault = fault
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.faults = kept
	return nil
}

// faultLocked is what goes wrong with a call of this client now.
func (s *Server) faultLocked(now time.Duration, client string) Fault {
	for i := range s.mu.faults {
		fault := &s.mu.faults[i]
		if fault.Has(now) && (fault.Client == "" || fault.Client == client) &&
			(fault.Calls == 0 || fault.calls < fault.Calls) {
			fault.calls++
			return fault.Fault
		}
	}
	return Fault{}
}
