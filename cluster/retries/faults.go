package retries

import (
	"strings"
	"time"

	"github.com/quorlease/quorlease/fsm/tally"
)

const (
	// faultClientsMax bounds the clients whose errors are told apart.
	faultClientsMax = 4096
	// faultTextsMax bounds the errors of one of them.
	faultTextsMax = 8
)

// faults are the errors that were reported of clients to this process, by the
// client's name.
type faults map[string]*clientFaults

// clientFaults are those of one client since some moment, at most two windows
// ago.
type clientFaults struct {
	since time.Duration
	list  []tally.Fault
}

// add counts an error. Where there is no place for another text it takes that of
// the rarest, with its count: the commonest ones stay, and count a little too high
// rather than too low. A client for which there is no place is not heard.
func (f faults) add(at time.Duration, client string, window time.Duration, fault tally.Fault) {
	if fault.Times <= 0 || fault.Text == "" {
		return
	}
	c := f[client]
	if c == nil {
		if len(f) >= faultClientsMax {
			f.sweep(at, window)
		}
		if len(f) >= faultClientsMax {
			return
		}
		c = &clientFaults{since: at}
		f[strings.Clone(client)] = c
	}
	c.age(at, window)
	for i := range c.list {
		if c.list[i].Text == fault.Text {
			c.list[i].Times = min(c.list[i].Times+fault.Times, tally.MaxCount)
			return
		}
	}
	fault.Text = strings.Clone(fault.Text)
	if len(c.list) < faultTextsMax {
		c.list = append(c.list, fault)
		return
	}
	rarest := 0
	for i := range c.list {
		if c.list[i].Times < c.list[rarest].Times {
			rarest = i
		}
	}
	fault.Times = min(c.list[rarest].Times+fault.Times, tally.MaxCount)
	c.list[rarest] = fault
}

// age halves the counts once a window has passed, so that what was common an
// hour ago gives way to what is common now.
func (c *clientFaults) age(at, window time.Duration) {
	if at-c.since < window {
		return
	}
	kept := c.list[:0]
	for _, one := range c.list {
		if one.Times /= 2; one.Times > 0 && at-c.since < 2*window {
			kept = append(kept, one)
		}
	}
	c.list, c.since = kept, at
}

// commonest is the error that a client had most, none where it had none.
func (f faults) commonest(at time.Duration, client string, window time.Duration) tally.Fault {
	c := f[client]
	if c == nil {
		return tally.Fault{}
	}
	c.age(at, window)
	var most tally.Fault
	for _, one := range c.list {
		if one.Times > most.Times {
			most = one
		}
	}
	if len(c.list) == 0 {
		delete(f, client)
	}
	return most
}

// sweep forgets clients that had no error for a window.
func (f faults) sweep(at, window time.Duration) {
	for client, c := range f {
		if at-c.since >= window {
			delete(f, client)
		}
	}
}
