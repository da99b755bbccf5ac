package refuse

import (
	"strconv"
	"strings"
	"time"
)

// Refusal is one request's no.
type Refusal struct {
	Reason Reason
	// Detail is one sentence for whoever reads it. Empty: the reason's own. It is shown
	// to the client: it has no prompt, no secret and nobody else's name in it.
	Detail string
	// Client is who asked, as identified; named where it is the problem. Empty: nobody
	// is.
	Client string
	// Scope is whom the limit is for beside the one who asked, such as "deployment".
	Scope string
	// Param is the field of the request at fault. Empty: the reason's own, or none.
	Param string
	// Wait is about how long until it would pass: the time of the own queue, the rest of
	// a pause. 0: not known. Of a retry budget it is what to ask for, BudgetWait by
	// default.
	Wait time.Duration
	// Policies are what was asked of limits, those that refuse first. At most policiesMax
	// are told. They have no keys: those may be somebody's name.
	Policies []Policy
}

// Policy is one limit's dimension.
type Policy struct {
	Limit, Dimension string
	// Reason is why it refuses: RATE and so on. Empty: it does not.
	Reason string
	// Quota is how much it gives in Window. 0: not known.
	Quota  int64
	Window time.Duration
	// Left is what is left of it, where Known.
	Left  int64
	Known bool
	// Full is in how long all of it will be there. 0: not known.
	Full time.Duration
}

// policiesMax bounds what one answer tells: an acquire has as many charges.
const policiesMax = 16

// Name is how a policy is called: the limit's name, and the dimension's.
func (p *Policy) Name() string {
	if p.Dimension == "" {
		return visible(p.Limit)
	}
	return visible(p.Limit + "/" + p.Dimension)
}

// told are the policies that are told.
func (r *Refusal) told() []Policy { return r.Policies[:min(len(r.Policies), policiesMax)] }

// violated are the names of the policies that refuse.
func (r *Refusal) violated() (names []string) {
	told := r.told()
	for i := range told {
		if told[i].Reason != "" {
			names = append(names, told[i].Name())
		}
	}
	return names
}

// message is what a person reads.
func (r *Refusal) message(h Hint) string {
	var b strings.Builder
	b.WriteString(r.detail())
	if r.Client != "" && r.Reason.row().hint == minute {
		b.WriteString(" The client is " + strconv.Quote(clip(r.Client)) + ".")
	}
	if names := r.violated(); len(names) > 0 {
		b.WriteString(" Limits that refuse: " + strings.Join(names, ", ") + ".")
	}
	if r.Scope != "" {
		b.WriteString(" Scope: " + visible(r.Scope) + ".")
	}
	switch {
	case h.Said && h.Stop:
		b.WriteString(" Do not retry; ask again in " + strconv.FormatInt(h.Seconds(), 10) + " s at the earliest.")
	case h.Said:
		b.WriteString(" Try again in " + strconv.FormatInt(h.Seconds(), 10) + " s.")
	case r.Reason == SpendCap:
		b.WriteString(" No waiting helps.")
	}
	return b.String()
}

func (r *Refusal) detail() string {
	if r.Detail != "" {
		return strings.ToValidUTF8(r.Detail[:min(len(r.Detail), detailMax)], "?")
	}
	return r.Reason.row().detail
}

func (r *Refusal) param() string {
	if r.Param != "" {
		return r.Param
	}
	return r.Reason.row().param
}

// textMax bounds names that come from outside, and detailMax sentences, in bytes.
const (
	textMax   = 128
	detailMax = 1024
)

// clip is the beginning of a name; a character that is cut is shown as such by
// whatever quotes it.
func clip(text string) string { return text[:min(len(text), textMax)] }

// visible is a name in visible ASCII, which is what fields can have.
func visible(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, clip(name))
}
