package alert

import (
	"context"
	"strings"
	"time"
)

const (
	// alertmanagerRepeat is how often an open incident is sent again.
	alertmanagerRepeat = time.Minute
	// alertmanagerLife is how long an Alertmanager believes in an open incident
	// that is not sent again: the sender is gone. Four lost repeats.
	alertmanagerLife = 4*alertmanagerRepeat + alertmanagerRepeat/2

	alertmanagerPath = "/api/v2/alerts"
)

// Alertmanager returns a sink that posts to the version 2 API of an Alertmanager
// at an http or https URL, such as "http://127.0.0.1:9093", with the path prefix
// that it is served under.
//
// An open incident is sent again every minute, so that it does not resolve by
// itself before it is over; when its sender is gone it does, after four and a
// half minutes. The labels are alertname, severity, name, incident (the id), and
// those of the alert; what differs between the beginning and the end is in the
// annotations.
func Alertmanager(rawURL string) (Sink, error) {
	u, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(u.Path, alertmanagerPath) {
		u = u.JoinPath(alertmanagerPath)
	}
	return alertmanager{newPoster("alertmanager", u)}, nil
}

// postable is one alert of Alertmanager's version 2 API.
type postable struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

type alertmanager struct{ poster }

// repeatEvery makes the Notifier send open incidents again.
func (alertmanager) repeatEvery() time.Duration { return alertmanagerRepeat }

func (s alertmanager) Send(ctx context.Context, a Alert) error {
	return s.post(ctx, []postable{postableOf(time.Now(), a)})
}

// postableOf takes the time of sending.
func postableOf(now time.Time, a Alert) postable {
	p := postable{
		Labels: map[string]string{}, Annotations: map[string]string{},
		StartsAt: a.Started.UTC(), EndsAt: now.UTC().Add(alertmanagerLife), GeneratorURL: a.Link,
	}
	if a.Resolved {
		p.EndsAt = a.Ended.UTC()
	}
	// The id is a label because an Alertmanager takes alerts with the same labels
	// for one: two processes of one client would end one another's.
	own := map[string]string{
		"alertname": a.Kind, "severity": a.Severity.String(), "name": a.Name, "incident": a.ID,
	}
	fill(p.Labels, a.Labels)
	fill(p.Labels, own)
	fill(p.Annotations, a.Values)
	fill(p.Annotations, map[string]string{"summary": a.Text, "runbook": a.Runbook()})
	return p
}

// fill adds texts under names that every Alertmanager takes. Empty ones say
// nothing, and it refuses them.
func fill(into, texts map[string]string) {
	for name, text := range texts {
		if name = labelName(name); name != "" && text != "" {
			into[name] = strings.ToValidUTF8(text, "�")
		}
	}
}

// labelName replaces what is not a letter, digit or underscore; a name does not
// begin with a digit.
func labelName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}
