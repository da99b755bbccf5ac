package stream

import (
	"mime"
	"strings"
)

// Format is how a stream is cut into frames.
type Format uint8

// The formats.
const (
	// Events is text/event-stream, as the HTML standard has it.
	Events Format = iota
	// Messages is application/vnd.amazon.eventstream: binary, with checksums.
	Messages
	// Elements is one array of JSON, or one object, that comes piece by piece: a frame is an
	// element of it.
	Elements
)

// FormatOf is the format of an answer by its Content-Type. An answer in JSON is a stream only
// where its route says that it is. false: it is none.
func FormatOf(contentType string, streams bool) (Format, bool) {
	if !strings.EqualFold(contentType[:min(len(contentType), len(isEvents))], isEvents) &&
		!strings.EqualFold(contentType[:min(len(contentType), len(application))], application) {
		return 0, false
	}
	kind, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return 0, false
	case kind == isEvents:
		return Events, true
	case kind == "application/vnd.amazon.eventstream":
		return Messages, true
	case kind == "application/json" && streams:
		return Elements, true
	default:
		return 0, false
	}
}

const (
	isEvents    = "text/event-stream"
	application = "application/"
)

// framing finds where frames end that are no lines, byte by byte, and reads what is in them.
type framing interface {
	// ends says whether a frame ends with c.
	ends(c byte) bool
	// parse reads a whole frame.
	parse(f *Frame)
	// lost says that no frame can be found any more.
	lost() bool
}

func framingOf(f Format) framing {
	switch f {
	case Messages:
		return &messages{}
	case Elements:
		return &elements{}
	default:
		return nil
	}
}
