package provider

import (
	"bytes"
	"strings"
)

// Event is one event of a stream.
type Event struct {
	// Name is what it is called, "" for most.
	Name string
	// Data is its data, lines joined by a line feed.
	Data []byte
}

// FirstEvent is the first event of a text/event-stream that says something:
// comments, and what only keeps the connection, are passed over. whole says that
// all of it is in prefix; until then nothing of the stream should be relayed, since
// it may be an error. What has none in BodyMax bytes is no error, and the rest is not
// looked at: whoever holds a stream back lets go then.
func FirstEvent(prefix []byte) (e Event, whole bool) {
	rest := bytes.TrimPrefix(prefix[:min(len(prefix), BodyMax)], []byte("\ufeff"))
	for {
		line, after, ended := cutLine(rest)
		if !ended {
			// The last line may be cut.
			e.add(line)
			return e, false
		}
		rest = after
		switch {
		case len(line) > 0:
			e.add(line)
		case e.Data != nil && e.Name != "ping":
			return e, true
		default:
			e = Event{}
		}
	}
}

// cutLine cuts after the first end of a line: CR, LF or both.
func cutLine(text []byte) (line, rest []byte, ended bool) {
	i := bytes.IndexAny(text, "\r\n")
	if i < 0 {
		return text, nil, false
	}
	rest = text[i+1:]
	if text[i] == '\r' && len(rest) > 0 && rest[0] == '\n' {
		rest = rest[1:]
	}
	return text[:i], rest, true
}

func (e *Event) add(line []byte) {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		e.Name = clip(string(value), codeMax)
	case "data":
		if e.Data != nil {
			e.Data = append(e.Data, '\n')
		}
		e.Data = append(e.Data, value...)
		if e.Data == nil {
			e.Data = []byte{}
		}
	}
}

// failure says whether an event is an error, and its words.
func (e *Event) failure() (words, bool) {
	if len(e.Data) == 0 {
		return words{}, false
	}
	w := read(e.Data)
	return w, w.failed || e.Name == "error"
}

// isStream says whether an answer is a stream of events, by its type or, where it
// has none, by how it begins.
func (a *Answer) isStream() bool {
	if kind := a.Header.Get("Content-Type"); kind != "" {
		return strings.HasPrefix(strings.ToLower(kind), "text/event-stream")
	}
	for _, begin := range []string{"event:", "data:", ":"} {
		if bytes.HasPrefix(a.Body, []byte(begin)) {
			return true
		}
	}
	return false
}
