package alarm

import (
	"slices"
	"time"

	"github.com/quorlease/quorlease/client/alert"
)

// Of what all nodes see, only the leader's alarm tells. The others keep what is open,
// and what has ended of late, so that one of them can go on when it leads. A leader that
// died may have told of the last that it saw or not: the next one tells of that again,
// with the same id, and of nothing that is older.

const (
	// lookEvery is how often an alarm asks who leads.
	lookEvery = time.Second
	// doubt is how old news are that a leader has told of, if it lives no more: a
	// delivery takes that long at most where nothing fails twice, and so long it may be
	// before its death is noticed.
	doubt = 10 * time.Second
)

// duty is who tells of what all nodes see.
type duty struct {
	// leads: this node does.
	leads bool
	// sure is until when whoever led has told. It stands still while nobody leads.
	sure time.Time
	// ended are incidents that are over since then, oldest first, incidentsMax at most.
	ended []saying
}

// look asks who leads, and takes over or hands over what is open.
func (a *Alarm) look(now time.Time) {
	here, elsewhere := true, false
	if a.config.Leads != nil {
		here, elsewhere = a.config.Leads()
	}
	d := &a.duty
	switch {
	case here && !d.leads:
		a.takeOver()
	case d.leads && !here:
		for which, said := range a.open.open {
			if which.Shared() {
				a.notifier(which).Release(said.begin)
			}
		}
	}
	d.leads = here
	switch {
	case here:
		d.sure = now
	case elsewhere:
		d.sure = now.Add(-doubt)
		d.ended = slices.DeleteFunc(d.ended, func(s saying) bool { return !s.ended.After(d.sure) })
	}
}

// takeOver goes on with what another node has told of, or would have.
func (a *Alarm) takeOver() {
	for _, said := range a.duty.ended {
		a.resume(said)
		a.notifier(said.about).Notify(said.end)
	}
	a.duty.ended = nil
	for which, said := range a.open.open {
		if which.Shared() {
			a.resume(said)
		}
	}
}

// resume tells of a beginning that may not have been told, and of any other only its end.
func (a *Alarm) resume(said saying) {
	if said.began.After(a.duty.sure) {
		a.notifier(said.about).Notify(said.begin)
		return
	}
	a.notifier(said.about).Adopt(said.begin)
}

// keep notes an end that another node tells of. Where this one led and could not yet
// tell of the beginning, it tells of both itself.
func (d *duty) keep(said saying, to *alert.Notifier) {
	if !said.over {
		return
	}
	to.Notify(said.end)
	if len(d.ended) >= incidentsMax {
		d.ended = slices.Delete(d.ended, 0, 1)
	}
	d.ended = append(d.ended, said)
}
