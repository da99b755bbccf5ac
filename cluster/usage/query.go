package usage

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
)

// By what rows are named.
const (
	ByClient = "client"
	ByKey    = "key"
	ByLimit  = "limit"
	ByTeam   = "team"
)

// TopMost is how many rows a node says of itself, and those that are counted together
// beside them.
const TopMost = 1000

// How long a node may take to say what it has counted: it reads a file for each hour.
const (
	askWithin     = time.Second
	askWithinHour = 20 * time.Millisecond
)

// Query is what somebody wants to know.
type Query struct {
	// By is one of the names above.
	By string
	// Hours is how many, with the one that has begun; 1 to HoursMost.
	Hours int
	// Top is how many rows, 1 to TopMost; the rest is counted together.
	Top int
	// End is the hour, since 1970, before which they end. 0: now.
	End int64
	// Limit is the only one whose charges count. Empty: all.
	Limit string
}

// HourOf is the hour of a time, since 1970, as Query.End has it.
func HourOf(t time.Time) int64 { return hourOf(t) }

// Answer is what the nodes have counted.
type Answer struct {
	// Rows are the most granted first, and what is counted together last.
	Rows []Row
	// From is the beginning of an hour.
	From, To time.Time
	// Nodes have said what they counted, Missing have not. They are in order.
	Nodes, Missing []string
}

// Node is one that can be asked.
type Node struct{ Name, Address string }

// Ask answers for this node and for the others, as far as they answer within a second and
// 20 ms more for each hour, and within three quarters of what ctx has. Of a period that is
// over since longer than books are kept From is no earlier than To, and nobody is asked.
// client is called for their addresses, from several goroutines.
func (b *Book) Ask(
	ctx context.Context, q Query, others []Node, client func(address string) (peerv1.PeerClient, error),
) Answer {
	now := b.config.Now()
	p := q.part(hourOf(now))
	answer := Answer{From: time.Unix(p.from*3600, 0), To: now}
	if p.to <= hourOf(now) {
		answer.To = time.Unix(p.to*3600, 0)
	}
	if p.from >= p.to {
		return answer
	}
	ctx, cancel := context.WithTimeout(ctx, p.within(ctx))
	defer cancel()
	responses := make([]*peerv1.UsageResponse, len(others))
	var asking sync.WaitGroup
	for i, other := range others {
		asking.Go(func() {
			if c, err := client(other.Address); err == nil {
				// One who does not answer is named as missing, whatever the reason.
				responses[i], _ = c.Usage(ctx, &peerv1.UsageRequest{By: p.by, From: p.from, To: p.to, Limit: p.limit})
			}
		})
	}
	all, err := b.since(ctx, p)
	asking.Wait()
	answer.note(b.config.Node, err == nil)
	for i, response := range responses {
		answer.note(others[i].Name, response != nil)
		for _, r := range response.GetRows() {
			all.add(Row{Name: r.GetName(), Limit: r.GetLimit(), Dimension: r.GetDimension(), Other: r.GetOther()}, Count{
				Grants: r.GetGrants(), Denials: r.GetDenials(), Granted: r.GetGranted(), Denied: r.GetDenied(),
				Returned: r.GetReturned(), Extra: r.GetExtra(), Estimates: estimatesOf(r.GetEstimates()),
			})
		}
	}
	slices.Sort(answer.Nodes)
	slices.Sort(answer.Missing)
	answer.Rows = all.fold(q.Top)
	return answer
}

// note notes whether a node has said all that it knows.
func (a *Answer) note(node string, said bool) {
	if said {
		a.Nodes = append(a.Nodes, node)
		return
	}
	a.Missing = append(a.Missing, node)
}

// Own answers another node for this one. The error is ctx's.
func (b *Book) Own(ctx context.Context, r *peerv1.UsageRequest) (*peerv1.UsageResponse, error) {
	p := part{by: r.GetBy(), limit: r.GetLimit(), from: r.GetFrom(), to: r.GetTo()}
	if p.to == 0 {
		p.to = math.MaxInt64
	}
	all, err := b.since(ctx, p)
	if err != nil {
		return nil, err
	}
	response := &peerv1.UsageResponse{}
	for _, row := range all.fold(TopMost) {
		response.Rows = append(response.Rows, &peerv1.UsageRow{
			Name: row.Name, Limit: row.Limit, Dimension: row.Dimension, Other: row.Other,
			Grants: row.Grants, Denials: row.Denials, Granted: row.Granted, Denied: row.Denied,
			Returned: row.Returned, Extra: row.Extra, Estimates: told(row.Estimates),
		})
	}
	return response, nil
}

// part is what of the books an answer is about: the hours from one to before another.
type part struct {
	by, limit string
	from, to  int64
}

// within is how long others may take. A quarter of what the asker has is left, so that it
// hears who did not answer.
func (p part) within(ctx context.Context) time.Duration {
	within := askWithin + time.Duration(p.to-p.from)*askWithinHour
	if deadline, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(deadline)/4*3)
	}
	return within
}

// part is what a query asks for in this hour.
func (q Query) part(now int64) part {
	p := part{by: q.By, limit: q.Limit, to: now + 1}
	if q.End != 0 {
		p.to = min(p.to, q.End)
	}
	p.from = max(p.to-int64(q.Hours), now-kept+1)
	return p
}

// since is what this node has counted of a part. Where ctx ends before all was read it is
// less, with an error.
func (b *Book) since(ctx context.Context, p part) (rows, error) {
	b.mu.Lock()
	now := b.at
	held := map[int64]*hour{now: copied(b.book)}
	for at, book := range b.closed {
		// Nobody counts in it any more.
		held[at] = book
	}
	partial := maps.Clone(b.partial)
	b.mu.Unlock()
	all := make(rows)
	for at := max(p.from, now-kept); at < min(p.to, now+1); at++ {
		if err := ctx.Err(); err != nil {
			return all, fmt.Errorf("read usage: %w", err)
		}
		book := held[at]
		if book == nil || partial[at] {
			all.take(p, b.files.read(at))
		}
		all.take(p, book)
	}
	return all, nil
}
