package spent

import (
	"strconv"

	"github.com/quorlease/quorlease/client/gateway/estimate/scan"
)

// numberMax is the largest number of tokens that is believed.
const numberMax = 1 << 53

// answer finds usage and text in one document of an answer.
type answer struct {
	meter *Meter
	scan  *scan.Scanner

	// usage is the depth of the members of the usage object that is read, 0 for none.
	usage int
	found numbers
	// use is what the present value is for.
	use use
	// kind is the beginning of the document's type.
	kind []byte
}

// use is what a value is for.
type use uint8

const (
	nothing use = iota
	counted
	aNumber
	aType
)

// typeMax is longer than the longest type that says something.
const typeMax = 32

func newAnswer(m *Meter) *answer {
	a := &answer{meter: m, kind: make([]byte, 0, typeMax)}
	a.scan = scan.New(words, a)
	return a
}

func (a *answer) reset() {
	a.scan.Reset()
	a.usage, a.use, a.kind = 0, nothing, a.kind[:0]
}

// Begin is the scanner's, as are the other methods that a scan.Visitor has.
func (a *answer) Begin(kind scan.Kind) {
	a.use = nothing
	depth, name := a.scan.Depth(), a.scan.Word()
	switch {
	case a.usage > 0:
		if kind == scan.Number && a.isNumber(depth, name) {
			a.use = aNumber
		}
	case kind == scan.Object && name == wUsage && (depth == 1 || depth == 2 && a.scan.At(1) == wHolder):
		a.usage, a.found = depth+1, numbers{}
	case kind != scan.String:
	case name == wType && depth == 1:
		a.use = aType
	case name == wFinish:
		a.meter.finish()
	case a.isText(depth, name):
		a.use = counted
		a.meter.generated = true
	}
}

// isNumber says whether a value in a usage object is one of the numbers: of the object
// itself, or cached tokens of its details.
func (a *answer) isNumber(depth int, name scan.Word) bool {
	if depth == a.usage {
		return name >= firstNumber && name <= lastNumber
	}
	return depth == a.usage+1 && a.scan.At(depth-1) == wDetails && name == word(cached)
}

// isText says whether a string is generated text.
func (a *answer) isText(depth int, name scan.Word) bool {
	top := name
	if depth > 1 {
		top = a.scan.At(1)
	}
	if top < wChoices || top == scan.Element || name == wQuiet || name == wType {
		return false
	}
	return depth < 4 || a.scan.At(3) != wLogprobs
}

// Text counts generated text, or holds a type.
func (a *answer) Text(piece []byte) {
	switch a.use {
	case counted:
		_, _ = a.meter.text.Write(piece)
	case aType:
		a.kind = append(a.kind, piece[:min(len(piece), typeMax-len(a.kind))]...)
	default:
	}
}

// Scalar reads a number.
func (a *answer) Scalar(text []byte) {
	if a.use != aNumber {
		return
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || f < 0 || f > numberMax {
		return
	}
	n := a.scan.Word() - firstNumber
	a.found.of[n], a.found.given[n] = int64(f), true
}

// End ends a value.
func (a *answer) End(kind scan.Kind) {
	depth := a.scan.Depth()
	switch {
	case a.usage == depth+1:
		a.usage = 0
		if a.found.given != [numbersLen]bool{} {
			a.meter.numbers.merge(&a.found)
			a.meter.said = a.meter.documents
		}
	case a.usage == depth && kind == scan.Object && a.scan.Word() == wDetails:
		a.found.within = true
	case a.use == aType && ends[string(a.kind)]:
		a.meter.finish()
	}
	a.use = nothing
}

func (a *answer) Name([]byte) {}
