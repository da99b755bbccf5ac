package estimate

import (
	"errors"
	"fmt"
	"io"

	"github.com/quorlease/quorlease/client/gateway/estimate/scan"
)

// What is wrong with a body. Errors of a Body wrap one of them.
var (
	// ErrBody is a body that no provider could read either: 400.
	ErrBody = errors.New("request body")
	// ErrTooLarge is a body that is longer than Options allow: 413.
	ErrTooLarge = errors.New("request body too large")
)

// TextMax is how many bytes the model's and the user's name may have.
const TextMax = 512

// CountMax is the largest number of tokens or choices that a request may ask for.
const CountMax = 1<<31 - 1

// Options are what a Body goes by. The zero value has the defaults.
type Options struct {
	// BytesMax is how many bytes a body may have. Default 32 MiB, the most that one of
	// the large providers takes.
	BytesMax int64
	// ImageTokens is what an image counts, whatever its size: that is only known when it is
	// decoded. Default 765, one of 1024 by 1024 pixels in four tiles of 170 tokens and 85
	// for the whole.
	ImageTokens int64
	// SmallImageTokens is what an image counts that asks for little detail. Default 85.
	SmallImageTokens int64
	// FileTokens is what any other file counts: sound, a document. Default 1500, a page.
	FileTokens int64
}

func (o Options) orDefaults() Options {
	or := func(value *int64, byDefault int64) {
		if *value <= 0 {
			*value = byDefault
		}
	}
	or(&o.BytesMax, 32<<20)
	or(&o.ImageTokens, 765)
	or(&o.SmallImageTokens, 85)
	or(&o.FileTokens, 1500)
	return o
}

// Request is what a body says.
type Request struct {
	// Model is empty where the address names it.
	Model string
	// User is whom the caller asks for: user, or metadata.user_id.
	User string
	// Stream says that the answer is to be a stream of events, and IncludeUsage that
	// stream_options ask for its usage.
	Stream, IncludeUsage bool
	// MaxOutput is the most tokens that one choice may have, the largest of max_tokens,
	// max_completion_tokens, max_output_tokens, maxOutputTokens, maxTokens and max_gen_len. -1: nothing was said, and
	// the provider assumes what its model can.
	MaxOutput int64
	// Choices is how many answers are computed: the larger of n and best_of, at least 1.
	Choices int64
	// Input is the estimate of the prompt in tokens: text, tools, images and files, and what
	// is put around messages. A provider's own count is only known afterwards.
	Input int64
	// Messages, Images and Files are how many of them there are. Images include SmallImages.
	Messages, Images, SmallImages, Files int64
	// Bytes is the body's length.
	Bytes int64
}

// Around a message stand three tokens, and the answer is begun by three.
const messageTokens = 3

// Body reads a request of the shapes of OpenAI (chat, completions, responses,
// embeddings), Anthropic (messages), Gemini (contents) and Bedrock (converse, and what is
// invoked with one of these shapes). It is made by NewBody, and
// written to while the body is read; Close says what was found.
type Body struct {
	options Options
	scan    *scan.Scanner
	request Request
	err     error

	text Counter
	// ids counts tokens that were sent as such.
	ids int64
	// seen are the members that are read for their value, each of which may be there once.
	seen [lastRead + 1]bool

	// use is what the present string is for, and short what it says where that matters.
	use   use
	field string
	short []byte
	media []byte
	// raw and skipped are the depth, plus one, of a value that counts as it is written, and
	// of one that does not count. 0: there is none.
	raw, skipped int
}

// NewBody returns a body of which nothing was read.
func NewBody(options Options) *Body {
	b := &Body{options: options.orDefaults(), request: Request{MaxOutput: -1, Choices: 1}}
	b.scan = scan.New(bodyWords, b)
	return b
}

// Read reads all of a body.
func Read(body io.Reader, options Options) (Request, error) {
	b := NewBody(options)
	if _, err := io.Copy(b, body); err != nil {
		if b.err == nil {
			err = fmt.Errorf("read request body: %w", err)
		}
		return Request{}, err
	}
	return b.Close()
}

// Write reads on. Its error is the body's, and stays.
func (b *Body) Write(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	b.request.Bytes += int64(len(p))
	if b.request.Bytes > b.options.BytesMax {
		b.err = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, b.options.BytesMax)
		return 0, b.err
	}
	n, err := b.scan.Write(p)
	if b.err == nil && err != nil {
		b.err = fmt.Errorf("%w: %w", ErrBody, err)
	}
	return n, b.err
}

// Close says what was found, or what is wrong.
func (b *Body) Close() (Request, error) {
	if b.err == nil {
		if err := b.scan.Close(); err != nil {
			b.err = fmt.Errorf("%w: %w", ErrBody, err)
		}
	}
	if b.err != nil {
		return Request{}, b.err
	}
	r := &b.request
	r.SmallImages = min(r.SmallImages, r.Images)
	r.Input = b.text.Tokens() + b.ids + r.Messages*messageTokens +
		(r.Images-r.SmallImages)*b.options.ImageTokens + r.SmallImages*b.options.SmallImageTokens +
		r.Files*b.options.FileTokens
	if r.Messages > 0 {
		r.Input += messageTokens
	}
	return *r, nil
}

// bad says what is wrong with a field, once.
func (b *Body) bad(field, format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("%w: %s: %s", ErrBody, field, fmt.Sprintf(format, args...))
	}
}
