package match

import (
	"errors"
	"fmt"
	"strings"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Bounds of what is made.
const (
	// ChargesMax is as many charges as one acquire may have.
	ChargesMax = 16
	// KeyMax is the longest key, in bytes.
	KeyMax = 512
)

// What a piece of work takes of the dimensions that everything takes one of.
const (
	requestsName = "requests"
	slotsName    = "slots"
)

// ErrNone says that nothing would be charged: no limit fits, or those that fit
// count nothing of what the work takes.
var ErrNone = errors.New("no limit fits the attributes, or none counts what the amounts name")

// Error says why attributes can't be turned into charges. It is the caller's
// mistake, or a limit's that wants what the caller does not say.
type Error struct{ Problem string }

// Error is one line.
func (e *Error) Error() string { return e.Problem }

func wrong(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Request is what is said of a piece of work. It has been checked: values are not
// empty, amounts are positive.
type Request struct {
	// Client and Class are the attributes of these names, unless there are others.
	Client, Class string
	Attributes    map[string]string
	// Amounts are tokens by dimension. Of requests and slots it is 1 unless it is
	// here.
	Amounts map[string]int64
	// Charges are those that were asked for by name. They count before those that
	// the attributes make.
	Charges []*logv1.Charge
}

// amount is what the work takes of a dimension, 0 for nothing.
func (r *Request) amount(dimension string) int64 {
	if n, given := r.Amounts[dimension]; given {
		return n
	}
	if dimension == requestsName || dimension == slotsName {
		return 1
	}
	return 0
}

// isGiven says whether a charge was asked for by name.
func (r *Request) isGiven(limit, key, dimension string) bool {
	for _, c := range r.Charges {
		if c.GetLimit() == limit && c.GetKey() == key && c.GetDimension() == dimension {
			return true
		}
	}
	return false
}

// Charges are the charges of a piece of work: first those of the request, then
// those of every limit that fits, in the order of names, for each dimension in the
// limit's order that the work takes something of. A limit that is switched off is
// not charged, but it fits: where nothing else does it is charged, which does
// nothing, so that switching a limit off does not refuse what it was for. The error
// is ErrNone or an *Error. It allocates the charges and nothing else.
func (x *Index) Charges(r *Request) ([]*logv1.Charge, error) {
	var room struct {
		values [32]string
		found  [ChargesMax]int32
		keys   [ChargesMax]string
	}
	values := x.valuesOf(r, room.values[:0])
	found := x.fitting(values, room.found[:0])
	keys := room.keys[:0]
	made, off := 0, int32(-1)
	for _, at := range found {
		rule := &x.rules[at]
		if rule.limit.GetMode() == logv1.Mode_MODE_OFF {
			keys = append(keys, "")
			off = at
			continue
		}
		key, err := rule.key(values, x.names)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
		made += rule.charge(r, key, nil)
	}
	if made+len(r.Charges) == 0 {
		if off < 0 {
			return nil, ErrNone
		}
		return x.idle(off, values)
	}
	if n := made + len(r.Charges); n > ChargesMax {
		return nil, wrong("%d charges are made, more than %d", n, ChargesMax)
	}
	list := append(make([]*logv1.Charge, 0, made+len(r.Charges)), r.Charges...)
	block := make([]logv1.Charge, made)
	take := func(limit, key, dimension string, amount int64) {
		c := &block[0]
		block = block[1:]
		c.Limit, c.Key, c.Dimension, c.Amount = limit, key, dimension, amount
		list = append(list, c)
	}
	for i, at := range found {
		if x.rules[at].limit.GetMode() != logv1.Mode_MODE_OFF {
			x.rules[at].charge(r, keys[i], take)
		}
	}
	return list, nil
}

// idle charges a limit that is switched off.
func (x *Index) idle(at int32, values []string) ([]*logv1.Charge, error) {
	rule := &x.rules[at]
	key, err := rule.key(values, x.names)
	if err != nil {
		return nil, err
	}
	dimension := requestsName
	if list := rule.limit.GetDimensions(); len(list) > 0 {
		dimension = list[0].GetName()
	}
	return []*logv1.Charge{{Limit: rule.limit.GetName(), Key: key, Dimension: dimension, Amount: 1}}, nil
}

// charge counts the charges of a limit that fits, and hands each to take unless
// that is nil.
func (r *rule) charge(q *Request, key string, take func(limit, key, dimension string, amount int64)) int {
	name, count := r.limit.GetName(), 0
	one := func(dimension string) {
		amount := q.amount(dimension)
		if amount == 0 || q.isGiven(name, key, dimension) {
			return
		}
		count++
		if take != nil {
			take(name, key, dimension, amount)
		}
	}
	if r.limit.GetUnlimited() {
		// It counts nothing, and grants whatever is charged.
		one(requestsName)
		return count
	}
	for _, d := range r.limit.GetDimensions() {
		one(d.GetName())
	}
	return count
}

// key is the key of a limit that fits. An attribute that makes it has to be there:
// leaving it out must not be a way around the limit. Where it need not be, match
// says so.
func (r *rule) key(values, names []string) (string, error) {
	if len(r.per) == 1 {
		// What most limits have, without a list.
		if value := values[r.per[0]]; value != "" {
			return r.checked(value)
		}
	}
	var room [16]string
	list := room[:0]
	for _, attribute := range r.per {
		if values[attribute] == "" {
			return "", wrong("%s is missing: limit %q is per %s", names[attribute], r.limit.GetName(),
				strings.Join(r.limit.GetPer(), ", "))
		}
		list = append(list, values[attribute])
	}
	return r.checked(Key(list...))
}

func (r *rule) checked(key string) (string, error) {
	if len(key) > KeyMax {
		return "", wrong("%s make a key of %d bytes for limit %q, more than %d",
			strings.Join(r.limit.GetPer(), ", "), len(key), r.limit.GetName(), KeyMax)
	}
	return key, nil
}

// Target is one bucket.
type Target struct{ Limit, Key string }

// Listening are the buckets that hear what a provider said of a piece of work:
// those of every limit that fits and stands for a provider, which is to say that it
// keeps headroom below the provider's own limit (target) or adapts to it. A tenant's
// own limit does not stand for one: it must not be paused for what another tenant
// did. The error is ErrNone or an *Error.
func (x *Index) Listening(r *Request) ([]Target, error) {
	values := x.valuesOf(r, nil)
	var targets []Target
	for _, at := range x.fitting(values, nil) {
		rule := &x.rules[at]
		if !listens(rule.limit) {
			continue
		}
		key, err := rule.key(values, x.names)
		if err != nil {
			return nil, err
		}
		targets = append(targets, Target{rule.limit.GetName(), key})
	}
	if len(targets) == 0 {
		return nil, ErrNone
	}
	return targets, nil
}

// whole is a target of all, in hundredths of a percent.
const whole = 10_000

func listens(l *logv1.Limit) bool {
	return l.GetKind() == logv1.Kind_KIND_RATE && !l.GetUnlimited() && l.GetMode() != logv1.Mode_MODE_OFF &&
		(l.GetTarget() < whole || l.GetAdaptive() != nil)
}
