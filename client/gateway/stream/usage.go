package stream

import (
	"bytes"
	"fmt"

	"github.com/quorlease/quorlease/client/gateway/estimate/scan"
)

const (
	wStream scan.Word = iota + 1
	wOptions
	wInclude
	wChoices
	wUsage
)

var words = map[string]scan.Word{
	"stream": wStream, "stream_options": wOptions, "include_usage": wInclude, "choices": wChoices, "usage": wUsage,
}

const (
	include = `"include_usage":true`
	options = `"stream_options":{` + include + `}`
)

// span is where a value stands, from its first byte to behind its last.
type span struct {
	kind     scan.Kind
	from, to int
	there    bool
	// filled: something stands in an object or array, and truth is that of a bool.
	filled, truth bool
}

// asker finds where a request says what it wants of a stream.
type asker struct {
	scan                           *scan.Scanner
	body, stream, options, include span
	twice                          string
}

// of is the span of the present value, nil of one that nobody asked for.
func (a *asker) of() *span {
	switch {
	case a.scan.Depth() == 0:
		return &a.body
	case a.scan.Is(wStream):
		return &a.stream
	case a.scan.Is(wOptions):
		return &a.options
	case a.scan.Is(wOptions, wInclude):
		return &a.include
	default:
		return nil
	}
}

// Begin is the scanner's, as are the other methods that a scan.Visitor has.
func (a *asker) Begin(kind scan.Kind) {
	switch depth := a.scan.Depth(); {
	case depth == 1:
		a.body.filled = true
	case depth == 2 && a.scan.At(1) == wOptions:
		a.options.filled = true
	}
	s := a.of()
	if s == nil {
		return
	}
	if s.there {
		a.twice = map[*span]string{
			&a.stream: "stream", &a.options: "stream_options", &a.include: "stream_options.include_usage",
		}[s]
	}
	s.kind, s.from, s.there = kind, int(a.scan.Offset()), true
}

func (a *asker) Scalar(value []byte) {
	if s := a.of(); s != nil {
		s.truth = value[0] == 't'
	}
}

func (a *asker) End(kind scan.Kind) {
	if s := a.of(); s != nil {
		s.to = behind(a.scan, kind)
	}
}

// behind is where a value that ends is over: a number only ends with the byte after it.
func behind(s *scan.Scanner, kind scan.Kind) int {
	if kind == scan.Number {
		return int(s.Offset())
	}
	return int(s.Offset()) + 1
}

func (a *asker) Name([]byte) {}
func (a *asker) Text([]byte) {}

// AskUsage makes a request in the shape of OpenAI's chat and completions ask for what its
// stream will use: with stream true, stream_options.include_usage becomes true. All other
// bytes stay as they are. asked says that the client had asked itself; where it had not,
// its Relay hides what it does not expect. A request for no stream is returned as it is,
// as is one that asks already.
//
// body is not changed. An error names what is wrong with it.
func AskUsage(body []byte) (out []byte, asked bool, err error) {
	var a asker
	a.scan = scan.New(words, &a)
	if _, err = a.scan.Write(body); err == nil {
		err = a.scan.Close()
	}
	if err == nil {
		err = a.wrong(body)
	}
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("request body: %w", err)
	case !a.stream.truth:
		return body, false, nil
	case a.include.truth:
		return body, true, nil
	}
	return a.edit(body), false, nil
}

// wrong says what is wrong with a body that is JSON.
func (a *asker) wrong(body []byte) error {
	value := func(s span) []byte { return body[s.from:min(s.to, s.from+20)] }
	switch {
	case a.body.kind != scan.Object:
		return fmt.Errorf("want an object, not %s", value(a.body))
	case a.twice != "":
		return fmt.Errorf("%s: given twice", a.twice)
	case a.options.there && a.options.kind != scan.Object && a.options.kind != scan.Null:
		return fmt.Errorf("stream_options: want an object, not %s", value(a.options))
	case a.include.there && a.include.kind != scan.Bool && a.include.kind != scan.Null:
		return fmt.Errorf("stream_options.include_usage: want true or false, not %s", value(a.include))
	}
	return nil
}

func (a *asker) edit(body []byte) []byte {
	switch {
	case a.include.there:
		return replace(body, a.include.from, a.include.to, "true")
	case a.options.there && a.options.kind == scan.Null:
		return replace(body, a.options.from, a.options.to, "{"+include+"}")
	case a.options.there:
		return insert(body, a.options, include)
	default:
		return insert(body, a.body, options)
	}
}

// insert puts a member at the beginning of an object.
func insert(body []byte, object span, member string) []byte {
	if object.filled {
		member += ","
	}
	return replace(body, object.from+1, object.from+1, member)
}

func replace(body []byte, from, to int, by string) []byte {
	out := make([]byte, 0, len(body)-(to-from)+len(by))
	out = append(out, body[:from]...)
	out = append(out, by...)
	return append(out, body[to:]...)
}

// hide takes out of a stream what AskUsage has put in.
type hide struct {
	scan *scan.Scanner
	out  []byte

	choices, usage span
}

// frame is what is left of a frame, nothing where it only reports usage.
func (h *hide) frame(f Frame) []byte {
	if !f.Whole || !bytes.Contains(f.Data, []byte(`"usage"`)) {
		return f.Raw
	}
	if h.scan == nil {
		h.scan = scan.New(words, h)
	}
	h.scan.Reset()
	h.choices, h.usage = span{}, span{}
	if _, err := h.scan.Write(f.Data); err != nil || h.scan.Close() != nil || !h.usage.there {
		return f.Raw
	}
	if h.usage.kind == scan.Object && h.choices.there && !h.choices.filled {
		return nil
	}
	from, to, ok := member(f.Data, h.usage)
	if h.usage.kind != scan.Null || !ok || f.dataAt < 0 {
		return f.Raw
	}
	h.out = append(h.out[:0], f.Raw[:f.dataAt+from]...)
	h.out = append(h.out, f.Raw[f.dataAt+to:]...)
	return h.out
}

// member is where the member usage stands, with the comma that goes with it.
func member(data []byte, value span) (from, to int, ok bool) {
	const blanks = " \t\r\n"
	before, ok := bytes.CutSuffix(bytes.TrimRight(data[:value.from], blanks), []byte(":"))
	if !ok {
		return 0, 0, false
	}
	before, ok = bytes.CutSuffix(bytes.TrimRight(before, blanks), []byte(`"usage"`))
	if !ok {
		return 0, 0, false
	}
	from, to = len(before), value.to
	if before, comma := bytes.CutSuffix(bytes.TrimRight(before, blanks), []byte(",")); comma {
		return len(before), to, true
	}
	after := bytes.TrimLeft(data[to:], blanks)
	if after, comma := bytes.CutPrefix(after, []byte(",")); comma {
		to = len(data) - len(bytes.TrimLeft(after, blanks))
	}
	return from, to, true
}

func (h *hide) of() *span {
	switch {
	case h.scan.Is(wChoices):
		return &h.choices
	case h.scan.Is(wUsage):
		return &h.usage
	default:
		return nil
	}
}

// Begin is the scanner's, as are the other methods that a scan.Visitor has.
func (h *hide) Begin(kind scan.Kind) {
	if h.scan.Depth() == 2 && h.scan.At(1) == wChoices {
		h.choices.filled = true
	}
	if s := h.of(); s != nil {
		s.kind, s.from, s.there = kind, int(h.scan.Offset()), true
	}
}

func (h *hide) End(kind scan.Kind) {
	if s := h.of(); s != nil {
		s.to = behind(h.scan, kind)
	}
}

func (h *hide) Name([]byte)   {}
func (h *hide) Text([]byte)   {}
func (h *hide) Scalar([]byte) {}
