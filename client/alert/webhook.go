package alert

import (
	"context"
	"time"
)

// Webhook returns a sink that posts each alert as one JSON object (see
// Document) to an http or https URL. Credentials in the URL are sent as basic
// authentication. Redirects are not followed.
func Webhook(rawURL string) (Sink, error) {
	u, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return webhook{newPoster("webhook", u)}, nil
}

// Document is what a webhook receives. Fields may be added; none changes its
// meaning within a version.
type Document struct {
	// Version is 1.
	Version int `json:"version"`
	// Status is "firing" or "resolved".
	Status string `json:"status"`
	// Kind and Name are those of the Alert.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// ID and Status are the same in every copy of one alert.
	ID string `json:"id"`
	// Severity is "info", "warning" or "critical".
	Severity string `json:"severity"`
	// Started and Ended are in UTC, as RFC 3339. Ended is there when it is over.
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	// Text is one sentence.
	Text string `json:"text"`
	// Labels say which incident it is, Values are figures about it.
	Labels map[string]string `json:"labels,omitempty"`
	Values map[string]string `json:"values,omitempty"`
	// Link is where to look, Runbook what to do.
	Link    string `json:"link,omitempty"`
	Runbook string `json:"runbook"`
}

type webhook struct{ poster }

func (w webhook) Send(ctx context.Context, a Alert) error { return w.post(ctx, documentOf(a)) }

func documentOf(a Alert) Document {
	d := Document{
		Version: 1, Status: a.Status(), Kind: a.Kind, Name: a.Name, ID: a.ID,
		Severity: a.Severity.String(), Started: a.Started.UTC(), Text: a.Text,
		Labels: a.Labels, Values: a.Values, Link: a.Link, Runbook: a.Runbook(),
	}
	if a.Resolved {
		ended := a.Ended.UTC()
		d.Ended = &ended
	}
	return d
}
