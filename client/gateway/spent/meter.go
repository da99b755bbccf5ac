package spent

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/quorlease/quorlease/client/gateway/estimate"
	"github.com/quorlease/quorlease/client/gateway/stream"
)

// Meter reads one answer. It is made by New. Either Write or Frame is called, and at last
// End or Cut.
type Meter struct {
	input   int64
	answer  *answer
	numbers numbers
	text    estimate.Counter

	// documents is how many were read: one of a body, one for each event of a stream. said
	// is the last that had usage in it, finished the first that said that the answer is
	// finished, 0 for none. done: the stream said that nothing more comes.
	documents, said, finished int64
	done                      bool
	// generated: some text was.
	generated bool
	// told: headers said what was used.
	told bool
	// body: it is one, whole: it was read to its end, and broken: it is not JSON.
	body, whole, broken bool
}

// New returns a meter for the answer to a request whose prompt was estimated to have so
// many tokens. That stands for the number of the provider where an answer was cut before
// it said it.
func New(estimated int64) *Meter {
	m := &Meter{input: max(0, estimated)}
	m.answer = newAnswer(m)
	return m
}

// Write reads a body on. It always takes everything: what can't be read is no reason not
// to pass it on. The error is always nil.
func (m *Meter) Write(p []byte) (int, error) {
	if !m.body {
		m.body = true
		m.documents++
		m.answer.reset()
	}
	if !m.broken {
		_, err := m.answer.scan.Write(p)
		m.broken = err != nil
	}
	return len(p), nil
}

// Frame reads an event of a stream. A piece of a long one is not looked at.
func (m *Meter) Frame(f stream.Frame) {
	if !f.Whole || len(f.Data) == 0 {
		return
	}
	m.documents++
	if bytes.Equal(bytes.TrimSpace(f.Data), []byte("[DONE]")) {
		m.done = true
		m.finish()
		return
	}
	m.answer.reset()
	if _, err := m.answer.scan.Write(f.Data); err == nil {
		_ = m.answer.scan.Close()
	}
}

// headerNumbers are the headers in which some answers have what they used, whatever their body is.
var headerNumbers = map[string]number{
	"X-Amzn-Bedrock-Input-Token-Count": input, "X-Amzn-Bedrock-Output-Token-Count": output,
	"X-Amzn-Bedrock-Cache-Read-Input-Token-Count":  cacheRead,
	"X-Amzn-Bedrock-Cache-Write-Input-Token-Count": cacheWrite,
}

// Header reads what stands before an answer, first of all. What can't be read is passed over.
func (m *Meter) Header(h http.Header) {
	var found numbers
	for name, n := range headerNumbers {
		if value, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil && value >= 0 && value <= numberMax {
			found.of[n], found.given[n] = value, true
			m.told = true
		}
	}
	m.numbers.merge(&found)
}

// finish notes that the answer is finished.
func (m *Meter) finish() {
	if m.finished == 0 {
		m.finished = m.documents
	}
}

// End says what was used by an answer that has come to its end. It is Complete where the
// provider said it: a body with usage in it, or a stream with usage not before it was
// finished. It is None where nothing was said and no text was generated, as in an error.
func (m *Meter) End() Usage {
	if m.body && !m.broken {
		m.whole = m.answer.scan.Close() == nil
		m.broken = !m.whole
	}
	switch {
	case m.complete():
		u := m.numbers.usage()
		u.State = Complete
		return u
	case m.said > 0 || m.told || m.generated:
		return m.partial()
	default:
		return Usage{}
	}
}

// Cut says what was used by an answer that was cut, by its client or by its provider:
// the prompt, as it was reported or else as it was estimated, and as output the larger of what
// was counted and what was last reported. An answer that had said everything before is
// Complete all the same.
func (m *Meter) Cut() Usage {
	if u := m.End(); u.State == Complete {
		return u
	}
	return m.partial()
}

func (m *Meter) complete() bool {
	switch {
	case m.body && m.told:
		// Said before it began, of a body that need not be JSON.
		return true
	case m.said == 0:
		return false
	case m.body:
		return m.whole
	default:
		return m.done || m.finished > 0 && m.said >= m.finished
	}
}

func (m *Meter) partial() Usage {
	u := m.numbers.usage()
	u.State = Partial
	u.Output = max(u.Output, m.text.Tokens())
	if u.Input == 0 {
		u.Input = m.input
	}
	return u
}
