package usage

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/plan"
)

// Bounds of an hour, whatever clients send (G10).
const (
	// entriesMost is how many entries have their names; beyond it only limit and
	// dimension are told apart, for othersMost entries, and then nothing.
	entriesMost, othersMost = 2000, 200
	// nameMost is in bytes.
	nameMost = 256
)

// entry names what is counted together. Its JSON is that of the files.
type entry struct {
	Client    string `json:"client,omitempty"`
	Team      string `json:"team,omitempty"`
	Limit     string `json:"limit,omitempty"`
	Key       string `json:"key,omitempty"`
	Dimension string `json:"dimension,omitempty"`
	// Other says that the names that are empty are those of many.
	Other bool `json:"other,omitempty"`
	// Settled: it has the estimates of a dimension, and nothing else.
	Settled bool `json:"settled,omitempty"`
	// Keyed: it is about a key of a limit, whoever asked, and has what was not used of leases
	// that have ended and what was used on top.
	Keyed bool `json:"keyed,omitempty"`
}

// Count is what was granted and denied.
type Count struct {
	// Grants and Denials are acquires.
	Grants  int64 `json:"grants"`
	Denials int64 `json:"denials"`
	// Granted and Denied are the tokens that they asked for.
	Granted int64 `json:"granted"`
	Denied  int64 `json:"denied"`
	// Returned are tokens of grants that were not used, Extra those that were used on top.
	Returned int64 `json:"returned,omitempty"`
	Extra    int64 `json:"extra,omitempty"`
	// Estimates are how far they were off, where that was settled and is told of a limit.
	Estimates *plan.Tally `json:"estimates,omitempty"`
}

func (c *Count) add(o Count) {
	c.Grants, c.Denials = sum(c.Grants, o.Grants), sum(c.Denials, o.Denials)
	c.Granted, c.Denied = sum(c.Granted, o.Granted), sum(c.Denied, o.Denied)
	c.Returned, c.Extra = sum(c.Returned, o.Returned), sum(c.Extra, o.Extra)
	if o.Estimates == nil {
		return
	}
	for over, tasks := range *o.Estimates {
		c.off(over, tasks)
	}
}

// sum is a + b of what is not negative; a client can ask for 2^53 tokens often.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// hour is the book of one hour. The keys of limits have room of their own, so that many
// of them leave the names of those who ask.
type hour struct{ names, keys table }

// table is what was counted, by what it is about.
type table map[entry]*Count

func newHour() *hour { return &hour{make(table), make(table)} }

// count counts an answer.
func (h *hour) count(op *logv1.Acquire, team string, granted bool) {
	for _, c := range op.GetCharges() {
		one := Count{Denials: 1, Denied: c.GetAmount()}
		if granted {
			one = Count{Grants: 1, Granted: c.GetAmount()}
		}
		h.names.of(entry{Client: op.GetClient(), Team: team, Limit: c.GetLimit(), Dimension: c.GetDimension()}).add(one)
		if c.GetKey() != "" {
			h.keys.of(entry{Limit: c.GetLimit(), Key: c.GetKey(), Dimension: c.GetDimension(), Keyed: true}).add(one)
		}
	}
}

// take adds what another book has of the hour.
func (h *hour) take(other *hour) {
	for e, c := range other.all() {
		h.put(e, *c)
	}
}

// all are the entries of both tables.
func (h *hour) all() iter.Seq2[entry, *Count] {
	return func(yield func(entry, *Count) bool) {
		for _, t := range []table{h.names, h.keys} {
			for e, c := range t {
				if !yield(e, c) {
					return
				}
			}
		}
	}
}

// put adds what a book has of an entry.
func (h *hour) put(e entry, c Count) {
	switch {
	case e.Keyed:
		h.keys.of(e).add(c)
	case !e.Settled:
		h.names.of(e).add(c)
	default:
		if to := h.names.estimates(e.Limit, e.Dimension); to != nil {
			to.add(c)
		}
	}
}

// of is the count of an entry, or of those with which it is counted.
func (h table) of(e entry) *Count {
	e.Client, e.Team, e.Limit, e.Dimension = cut(e.Client), cut(e.Team), cut(e.Limit), cut(e.Dimension)
	e.Key = cut(e.Key)
	if c := h[e]; c != nil {
		return c
	}
	if len(h) >= entriesMost || e.Other {
		e.Client, e.Team, e.Key, e.Other = "", "", "", true
		if c := h[e]; c != nil {
			return c
		}
	}
	if len(h) >= entriesMost+othersMost {
		e.Limit, e.Dimension = "", ""
		if c := h[e]; c != nil {
			return c
		}
	}
	// An operation's texts may hold on to the whole message.
	e.Client, e.Team = strings.Clone(e.Client), strings.Clone(e.Team)
	e.Limit, e.Dimension = strings.Clone(e.Limit), strings.Clone(e.Dimension)
	e.Key = strings.Clone(e.Key)
	c := &Count{}
	h[e] = c
	return c
}

// cut is a name of at most nameMost bytes.
func cut(s string) string {
	if len(s) <= nameMost {
		return s
	}
	return strings.ToValidUTF8(s[:nameMost], "")
}

// Row is one dimension of one limit, for one name.
type Row struct {
	// Name is that of a client, a limit or a team; empty for what had none.
	Name, Limit, Dimension string
	Count
	// Other: what is beyond the bounds, counted together; Name is empty.
	Other bool
}

// rows are the counts by one name. Their keys have no count.
type rows map[Row]*Count

// rowsMost bounds the rows that are told apart while an answer is worked out.
const rowsMost = 100_000

// add adds to a row, or where there is no more room to those that are counted together.
func (r rows) add(to Row, c Count) { r.addAmong(to, c, rowsMost) }

// addAmong is add with room for so many, and for othersMost of those that are counted
// together.
func (r rows) addAmong(to Row, c Count, most int) {
	to.Count = Count{}
	if to.Other || r[to] == nil && len(r) >= most {
		// Those of many limits together say nothing.
		c.Estimates = nil
	}
	if r[to] == nil && len(r) >= most {
		to.Name, to.Other = "", true
	}
	if r[to] == nil && len(r) >= most+othersMost {
		to.Limit, to.Dimension = "", ""
	}
	if r[to] == nil {
		r[to] = &Count{}
	}
	r[to].add(c)
}

// take adds what a part has of the book of an hour.
func (r rows) take(p part, h *hour) {
	if h == nil {
		return
	}
	for e, c := range h.all() {
		if !p.has(e, c) {
			continue
		}
		count := *c
		if e.Keyed && p.by == ByLimit {
			// Whoever was granted it is counted by name.
			count = Count{Returned: c.Returned, Extra: c.Extra}
		}
		row := Row{Limit: e.Limit, Dimension: e.Dimension, Other: e.Other}
		switch p.by {
		case ByKey:
			row.Name = e.Key
		case ByClient:
			row.Name = e.Client
		case ByTeam:
			row.Name = e.Team
		case ByLimit:
			// Who asked does not matter, so nothing is missing but for limits without a name.
			row.Name, row.Other = e.Limit, e.Other && e.Limit == ""
		}
		r.add(row, count)
	}
}

// has says whether an entry is in a part.
func (p part) has(e entry, c *Count) bool {
	switch {
	case p.limit != "" && e.Limit != p.limit:
		return false
	case e.Settled:
		return p.by == ByLimit
	case e.Keyed:
		return p.by == ByKey && (e.Key != "" || e.Other) || p.by == ByLimit && (c.Returned != 0 || c.Extra != 0)
	}
	return p.by != ByKey
}

// fold leaves the most granted rows, and counts the rest together: by limit and
// dimension, as far as there is room.
func (r rows) fold(top int) []Row {
	list := make([]Row, 0, len(r))
	for row, c := range r {
		row.Count = *c
		list = append(list, row)
	}
	slices.SortFunc(list, compare)
	if len(list) <= top {
		return list
	}
	others := rows{}
	for _, row := range list[top:] {
		others.addAmong(row, row.Count, 0)
	}
	list = slices.DeleteFunc(list[:top], func(row Row) bool {
		if row.Other {
			others.addAmong(row, row.Count, 0)
		}
		return row.Other
	})
	for row, c := range others {
		row.Count = *c
		list = append(list, row)
	}
	slices.SortFunc(list, compare)
	return list
}

// compare puts the most granted first and what is counted together last. No two rows
// are equal.
func compare(a, b Row) int {
	if a.Other != b.Other {
		if a.Other {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(b.Granted, a.Granted), cmp.Compare(b.Denied, a.Denied), strings.Compare(a.Name, b.Name),
		strings.Compare(a.Limit, b.Limit), strings.Compare(a.Dimension, b.Dimension))
}
