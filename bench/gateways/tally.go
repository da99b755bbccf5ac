package gateways

import (
	"math"
	"slices"
	"time"

	"github.com/quorlease/quorlease/bench/storm"
	"github.com/quorlease/quorlease/bench/upstream"
)

// finish waits for all programs, and for the calls that they have left behind.
func (c *crowd) finish() (upstream.Ledger, error) {
	c.programs.Wait()
	if err := c.failed(); err != nil {
		return upstream.Ledger{}, err
	}
	return c.Provider().Ledger(), nil
}

// by are a ledger's calls of one model: gateways keep the names of clients to themselves,
// so that each program of a storm has a model of its own.
func by(l *upstream.Ledger, model string) (calls []upstream.Call) {
	for i := range l.Calls {
		if l.Calls[i].Model == model {
			calls = append(calls, l.Calls[i])
		}
	}
	return calls
}

// refused is how many of them the provider refused.
func refused(calls []upstream.Call) (n int) {
	for i := range calls {
		if calls[i].Outcome == upstream.Refused {
			n++
		}
	}
	return n
}

// unpaid are the tokens that were billed beyond those of requests that were served, which use
// so many each: what is refused is billed nothing.
func unpaid(l *upstream.Ledger, served, each int) int {
	return int(l.Billed.Input+l.Billed.Output) - served*each
}

// answered is how many requests were answered with what they wanted.
func answered(all []sent) (n int) {
	for i := range all {
		if all[i].ok() {
			n++
		}
	}
	return n
}

// worst is the most input tokens that were used in any minute.
func worst(calls []upstream.Call) float64 {
	calls = slices.Clone(calls)
	slices.SortFunc(calls, func(a, b upstream.Call) int { return int(a.Arrived - b.Arrived) })
	most, within, first := int64(0), int64(0), 0
	for i := range calls {
		within += calls[i].Billed.Input
		for calls[first].Arrived <= calls[i].Arrived-time.Minute {
			within -= calls[first].Billed.Input
			first++
		}
		most = max(most, within)
	}
	return float64(most)
}

// quantile is in seconds; of nothing it is 0.
func quantile(waits []time.Duration, part float64) float64 {
	if len(waits) == 0 {
		return 0
	}
	waits = slices.Clone(waits)
	slices.Sort(waits)
	return waits[max(0, int(math.Ceil(part*float64(len(waits))))-1)].Seconds()
}

func percent(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return 100 * float64(a) / float64(b)
}

// price is what tokens cost, in units of a thousand input tokens.
const outputPrice = 5

// cost is what a ledger's calls cost.
func cost(l *upstream.Ledger) float64 {
	return float64(l.Billed.Input+outputPrice*l.Billed.Output) / 1000
}

// picture fills in what is drawn: the calls at the provider and who waits, in slots of the
// scenario's time, and what each client was told.
func (c *crowd) picture(o *storm.Outcome, l *upstream.Ledger, slot, span time.Duration) {
	slots := max(1, int((span+slot-1)/slot))
	t := &storm.Timeline{
		SlotMS: float64(slot) / float64(time.Millisecond), Admitted: make([]int64, slots), Refused: make([]int64, slots),
		Waiting: make([]int64, slots),
	}
	at := func(moment time.Duration) int { return int(moment / slot) }
	for i := range l.Calls {
		call := &l.Calls[i]
		switch n := at(call.Arrived); {
		case n >= slots:
		case call.Outcome == upstream.Refused:
			t.Refused[n]++
		default:
			t.Admitted[n]++
		}
	}
	// Who waits has been sent, has no answer, and is not at the provider: looked at in the
	// middle of each slot.
	count := func(began, ended time.Duration, step int64) {
		for n := max(0, at(began+slot/2)); n < slots; n++ {
			if middle := time.Duration(n)*slot + slot/2; middle >= ended {
				return
			}
			t.Waiting[n] += step
		}
	}
	all := c.all()
	for i := range all {
		count(all[i].began, all[i].ended, 1)
	}
	for i := range l.Calls {
		count(l.Calls[i].Arrived, l.Calls[i].Ended, -1)
	}
	for n := range t.Waiting {
		// A call outlives its program by a moment.
		t.Waiting[n] = max(0, t.Waiting[n])
	}
	o.Timeline = t
	o.Clients = clients(all, l)
	o.Add(storm.Figure{Measure: "cost", Name: "cost, in units of a thousand input tokens", Value: cost(l)}, none, most)
}

// clients is what each was told, in the order of their names. Calls are a client's by the
// name of their model.
func clients(all []sent, l *upstream.Ledger) (rows []storm.Client) {
	byName := map[string]*storm.Client{}
	row := func(name string) *storm.Client {
		if byName[name] == nil {
			byName[name] = &storm.Client{Client: name, Refused: map[string]int64{}}
		}
		return byName[name]
	}
	for i := range all {
		r := row(all[i].client)
		r.Requests++
		switch {
		case all[i].ok():
			r.Served++
		case all[i].status == 0:
			r.Refused["no answer"]++
		default:
			r.Refused[all[i].reason]++
		}
	}
	for i := range l.Calls {
		r := row(l.Calls[i].Model)
		r.Forwarded++
		r.Tokens += l.Calls[i].Billed.Input + l.Calls[i].Billed.Output
	}
	for _, r := range byName {
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, func(a, b storm.Client) int {
		if a.Client < b.Client {
			return -1
		}
		return 1
	})
	return rows
}

// The ends of a range that are none.
var none, most = math.Inf(-1), math.Inf(1)
