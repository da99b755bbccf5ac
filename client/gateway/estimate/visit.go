package estimate

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/quorlease/quorlease/client/gateway/estimate/scan"
)

// use is what a string is for.
type use uint8

const (
	nothing use = iota
	// prompt is counted, and keep is held.
	prompt
	keep
	// detail and media are held of an image or file.
	detail
	media
)

// Begin is the scanner's, as are all the other methods that a scan.Visitor has.
func (b *Body) Begin(kind scan.Kind) {
	b.use, b.short = nothing, b.short[:0]
	depth, word := b.scan.Depth(), b.scan.Word()
	switch {
	case depth == 0:
		if kind != scan.Object {
			b.bad("body", "%s where an object is expected", kindNames[kind])
		}
	case b.skipped > 0:
		b.beginSkipped(word)
	case b.raw > 0:
		b.beginRaw(kind)
	case b.isRead(depth, word):
		b.beginRead(kind, word)
	case depth == 1:
		b.beginTop(kind, word)
	case isPrompt(b.scan.At(1)):
		b.beginPrompt(kind, word)
	}
}

// isPrompt says whether a member of the body is a prompt by its name.
func isPrompt(word scan.Word) bool { return word > lastRead && word <= lastPrompt || word == wContent }

var kindNames = [...]string{
	scan.Object: "an object", scan.Array: "an array", scan.String: "text", scan.Number: "a number",
	scan.Bool: "true or false", scan.Null: "null",
}

// isRead says whether a value is read: by its name and its place.
func (b *Body) isRead(depth int, word scan.Word) bool {
	if word == 0 || word > lastRead {
		return false
	}
	if outer := within[word]; outer != 0 {
		return depth == 2 && b.scan.At(1) == outer
	}
	// Some spell it as others do that have it elsewhere.
	return depth == 1 || depth == 2 && word == wMaxOutputTokens && b.scan.At(1) == wGenerationConfig
}

func (b *Body) beginRead(kind scan.Kind, word scan.Word) {
	b.field = fields[word]
	if b.seen[word] {
		// Two readers that differ in which one they take could be told different things.
		b.bad(b.field, "given twice")
		return
	}
	b.seen[word] = true
	if kind == scan.Null {
		return
	}
	b.use = keep
	var want scan.Kind
	switch word {
	case wModel, wUser, wUserID:
		want = scan.String
	case wStream, wIncludeUsage:
		want = scan.Bool
	case wStreamOptions, wMetadata, wGenerationConfig, wInferenceConfig:
		want = scan.Object
		b.use = nothing
	default:
		want = scan.Number
	}
	if kind != want {
		b.bad(b.field, "%s where %s is expected", kindNames[kind], kindNames[want])
	}
}

// beginTop begins a member of the body that is not read.
func (b *Body) beginTop(kind scan.Kind, word scan.Word) {
	switch {
	case kind == scan.Null:
	case isPrompt(word):
		b.use = prompt
	case word > lastPrompt && word <= lastRaw:
		b.raw = b.scan.Depth() + 1
		b.use = prompt
	}
}

// beginPrompt begins a value somewhere in a prompt.
func (b *Body) beginPrompt(kind scan.Kind, word scan.Word) {
	depth := b.scan.Depth()
	container := kind == scan.Object || kind == scan.Array
	switch {
	case depth == 2 && kind == scan.Object && word == scan.Element && b.holdsMessages():
		b.request.Messages++
	case b.isPart() && b.beginPart(kind, word):
	case word == wQuiet:
		if container {
			b.skipped = depth + 1
		}
	case word == wInput && container:
		// The arguments of a tool.
		b.raw = depth + 1
		b.beginRaw(kind)
	case kind == scan.String:
		b.use = prompt
	case kind == scan.Number && word == scan.Element && depth <= 3:
		// A prompt of tokens, or a list of such prompts.
		b.ids++
	}
}

func (b *Body) holdsMessages() bool {
	outer := b.scan.At(1)
	return outer == wMessages || outer == wContents || outer == wInput
}

// isPart says whether the present value is a member of a part of a message's content.
func (b *Body) isPart() bool {
	depth := b.scan.Depth()
	list := b.scan.At(depth - 2)
	return b.scan.At(depth-1) == scan.Element && (list == wContent || list == wParts)
}

// beginPart begins what is no text in a part. It is false where it is text.
func (b *Body) beginPart(kind scan.Kind, word scan.Word) bool {
	if kind == scan.Null {
		return false
	}
	switch word {
	case wImageURL, wImage:
		b.request.Images++
	case wSource, wInlineData:
		// It is an image unless it says otherwise.
		b.request.Images++
		b.media = b.media[:0]
	case wFile:
		b.request.Files++
	case wDetail:
		b.use = detail
		return true
	default:
		return false
	}
	if kind == scan.Object || kind == scan.Array {
		b.skipped = b.scan.Depth() + 1
	}
	return true
}

// beginSkipped begins a value in an image or a file.
func (b *Body) beginSkipped(word scan.Word) {
	if b.scan.Depth() != b.skipped {
		return
	}
	outer := b.scan.At(b.skipped - 1)
	switch {
	case word == wDetail && outer == wImageURL:
		b.use = detail
	case word == wMedia:
		b.use = media
	case word == wData && outer == wSource && bytes.HasPrefix(b.media, []byte("text/")):
		b.use = prompt
	}
}

// beginRaw begins a value that counts as it is written, without blanks.
func (b *Body) beginRaw(kind scan.Kind) {
	named := b.scan.Word() != scan.Element && b.scan.Depth() >= b.raw
	if named {
		b.write(`":`)
	}
	switch kind {
	case scan.Object:
		b.write(`{"`)
	case scan.Array:
		b.write(`[`)
	case scan.String:
		b.use = prompt
		b.write(`"`)
	default:
		b.use = prompt
	}
}

// write counts what is put around values.
func (b *Body) write(text string) {
	for i := range len(text) {
		b.text.marked(text[i])
		b.text.last, b.text.begun = mark, true
	}
}

// Name counts the names of what counts as it is written.
func (b *Body) Name(piece []byte) {
	if b.raw > 0 {
		_, _ = b.text.Write(piece)
	}
}

// Text counts or holds a piece of a string.
func (b *Body) Text(piece []byte) {
	switch b.use {
	case nothing:
	case prompt:
		_, _ = b.text.Write(piece)
	default:
		b.hold(piece)
	}
}

func (b *Body) hold(piece []byte) {
	if len(b.short)+len(piece) <= TextMax {
		b.short = append(b.short, piece...)
	} else if b.use == keep {
		b.bad(b.field, "longer than %d bytes", TextMax)
	}
}

// Scalar counts or holds a number, true, false or null.
func (b *Body) Scalar(text []byte) { b.Text(text) }

// End ends a value.
func (b *Body) End(kind scan.Kind) {
	depth := b.scan.Depth()
	switch {
	case b.skipped == depth+1:
		b.skipped = 0
		b.endFile()
	case b.use == detail && string(b.short) == "low":
		b.request.SmallImages++
	case b.use == media:
		b.media = append(b.media[:0], b.short...)
	case b.use == keep:
		b.endRead(b.scan.Word())
	case b.raw > 0:
		b.endRaw(kind)
	case b.use == prompt:
		b.text.Break()
	}
	b.use = nothing
	if b.raw == depth+1 {
		b.raw = 0
		b.text.Break()
	}
}

func (b *Body) endRaw(kind scan.Kind) {
	switch kind {
	case scan.Object:
		b.write(`},`)
	case scan.Array:
		b.write(`],`)
	case scan.String:
		b.write(`","`)
	default:
		b.write(`,`)
	}
}

// endFile ends an image or a file: only now it is known which of them it was.
func (b *Body) endFile() {
	word := b.scan.Word()
	if word != wSource && word != wInlineData || len(b.media) == 0 || bytes.HasPrefix(b.media, []byte("image/")) {
		return
	}
	b.request.Images--
	if !bytes.HasPrefix(b.media, []byte("text/")) {
		b.request.Files++
	}
}

// endRead takes over what was read.
func (b *Body) endRead(word scan.Word) {
	r := &b.request
	if !utf8.Valid(b.short) {
		// A limit's key has to be text.
		b.bad(b.field, "not UTF-8")
		return
	}
	switch word {
	case wModel:
		r.Model = string(b.short)
	case wUser:
		r.User = string(b.short)
	case wUserID:
		if r.User == "" {
			r.User = string(b.short)
		}
	case wStream:
		r.Stream = string(b.short) == "true"
	case wIncludeUsage:
		r.IncludeUsage = string(b.short) == "true"
	case wN, wBestOf, wCandidateCount:
		r.Choices = max(r.Choices, b.whole(1))
	default:
		// Some servers take -1 for as much as there is: as if nothing was said.
		r.MaxOutput = max(r.MaxOutput, b.whole(-1))
	}
}

// whole is the number that was read, which may be written as 1e3 too.
func (b *Body) whole(least int64) int64 {
	f, err := strconv.ParseFloat(string(b.short), 64)
	n := least
	if err == nil && f >= float64(least) && f <= CountMax {
		n = int64(f)
	}
	if err != nil || float64(n) != f {
		b.bad(b.field, "%s is not a whole number from %d to %d", b.short, least, int64(CountMax))
	}
	return n
}
