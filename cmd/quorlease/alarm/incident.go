package alarm

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"time"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/incident"
)

// incidents are those that are open, as a node tells of them.
type incidents struct {
	node, link string
	open       map[incident.Subject]saying
}

func newIncidents(node, link string) incidents {
	return incidents{node: node, link: link, open: make(map[incident.Subject]saying)}
}

// incidentsMax bounds them: clients choose their names. The notifier keeps fewer.
const incidentsMax = 1024

// everybody is the name under which the nodes tell of what all of them see, so that it
// is one incident whoever says so.
const everybody = "cluster"

// saying is the beginning of an incident, and where it is over its end too.
type saying struct {
	about      incident.Subject
	begin, end alert.Alert
	over       bool
	// began and ended are when this node saw it: other nodes' clocks may differ.
	began, ended time.Time
}

// observe says what an event that is seen now means for people; ok is false where
// nothing, or nothing new.
func (i *incidents) observe(e events.Event, now time.Time) (said saying, ok bool) {
	which, turn := incident.Of(e, e.Client)
	said, open := i.open[which]
	switch {
	case turn == incident.Begins && !open:
		said = saying{about: which, begin: i.beginning(e, which), began: now}
		i.open[which] = said
	case turn == incident.Ends && open:
		said.over, said.ended = true, now
		said.end = alert.Alert{
			Kind: said.begin.Kind, Name: said.begin.Name, ID: said.begin.ID,
			Resolved: true, Ended: e.Time, Text: e.Text, Values: figures(e),
		}
		delete(i.open, which)
	default:
		return saying{}, false
	}
	return said, true
}

func (i *incidents) beginning(e events.Event, which incident.Subject) alert.Alert {
	said := alert.Alert{
		Kind: string(e.Kind), Name: i.node, Link: i.link, ID: newID(e), Started: e.Time,
		Severity: alert.Severity(e.Severity), Text: e.Text, Labels: make(map[string]string), Values: figures(e),
	}
	if which.Shared() {
		said.Name = everybody
	}
	for name, text := range map[string]string{
		"member": which.Node, "client": which.Client, "limit": which.Limit, "key": which.Key,
	} {
		if text != "" {
			said.Labels[name] = text
		}
	}
	return said
}

// figures are those of an event, none where they were missed.
func figures(e events.Event) map[string]string {
	switch {
	case e.Value == "", e.Kind == events.SpendCapReached, e.Kind == events.LimitCleared:
		return nil
	case e.Kind != events.ClientRetryWarning && e.Kind != events.ClientOverBudget:
		return map[string]string{"value": e.Value}
	}
	values := map[string]string{"fraction": e.Value, "window": e.Window.String()}
	if e.Error != "" {
		values["error"] = e.Error
	}
	return values
}

// newID names a new incident. What stands in the log has one name at every node, so
// that a receiver can tell that they speak of one, and so has what each of them
// sees in the log's figures; what only this node saw has a random one.
func newID(e events.Event) string {
	var name []byte
	switch {
	case e.Index != 0:
		name = fmt.Appendf(nil, "%s %d %d %s %s", e.Kind, e.Index, e.Time.UnixNano(), e.Limit, e.Value)
	case e.Bout != 0:
		name = fmt.Appendf(nil, "%s %d %s", e.Kind, e.Bout, e.Client)
	default:
		return rand.Text()
	}
	sum := sha256.Sum256(name)
	return base32.StdEncoding.EncodeToString(sum[:])[:26]
}
