package provider

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// BodyMax is how much of a body is looked at. No error that was ever seen comes near
	// it.
	BodyMax = 64 << 10
	// depthMax is how deep a body may be nested before the rest of it is passed over.
	depthMax = 32
	// codesMax, codeMax and messageMax bound what is kept of a body. A reason of the
	// authority has codeMax bytes.
	codesMax   = 8
	codeMax    = 256
	messageMax = 4 << 10
)

// words are what an error says.
type words struct {
	// failed: it is an error by its form.
	failed bool
	// codes and message are in lower case. best is the code that says most.
	codes   []string
	best    int
	message string
	// status is an HTTP status within the body, 0 for none.
	status int
	// delay is what a field asks to wait, where told.
	delay time.Duration
	told  bool
}

// codePaths and messagePaths are where errors have their words, the path that says
// most first. Arrays are looked through as if they were not there.
var (
	codePaths = []string{
		"error.details.violations.quotaId", "error.details.error_code", "error.code", "error.type", "error.status",
		"response.error.code",
		"response.error.type", "error_code", "code", "type",
		"__type", "error.details.reason",
	}
	messagePaths = []string{"error.message", "message", "error", "response.error.message"}
	delayPath    = "error.details.retryDelay"
	statusPaths  = []string{"error.code", "error.status", "statusCode", "status", "code"}
)

// read finds the words of a body, or of the beginning of one. What is no JSON is a
// message as a whole.
func read(body []byte) words {
	body = bytes.TrimPrefix(body[:min(len(body), BodyMax)], []byte("\ufeff"))
	r := reader{}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	for len(r.open) <= depthMax {
		token, err := decoder.Token()
		if err != nil {
			break
		}
		r.next(token)
	}
	if r.message == "" && len(r.codes) == 0 {
		r.message = strings.ToLower(clip(string(body), messageMax))
	}
	return r.words
}

// reader follows a body token by token. It never holds more of it than the keys
// that lead to where it is.
type reader struct {
	words
	open []frame
	// rank is the place of the best code in codePaths.
	rank int
}

// frame is an object or an array that has begun.
type frame struct {
	object bool
	// key is the one whose value comes next; named says that it was read.
	key   string
	named bool
}

func (r *reader) next(token json.Token) {
	if top := r.top(); top != nil && top.object && !top.named && token != json.Delim('}') {
		key, _ := token.(string)
		top.key, top.named = clip(key, codeMax), true
		return
	}
	switch token := token.(type) {
	case json.Delim:
		switch token {
		case '{', '[':
			if path := r.path(); token == '{' && (path == "error" || path == "response.error") {
				r.failed = true
			}
			r.open = append(r.open, frame{object: token == '{'})
			return
		default:
			r.open = r.open[:max(0, len(r.open)-1)]
		}
	case string:
		r.text(r.path(), token)
	case json.Number:
		r.number(r.path(), token)
	}
	if top := r.top(); top != nil {
		top.named = false
	}
}

func (r *reader) top() *frame {
	if len(r.open) == 0 {
		return nil
	}
	return &r.open[len(r.open)-1]
}

// keysMax is how many keys lead to any word of an error.
const keysMax = 4

// path is where the next value is: the keys to it, with dots. It is empty where no
// word can be any more.
func (r *reader) path() string {
	var keys [keysMax]string
	n := 0
	for i := range r.open {
		if !r.open[i].object {
			continue
		}
		if n == keysMax {
			return ""
		}
		keys[n] = r.open[i].key
		n++
	}
	return strings.Join(keys[:n], ".")
}

func (r *reader) text(path, value string) {
	if path == "error" || path == "type" && value == "error" {
		r.failed = true
	}
	switch {
	case value == "" || path == "type" && value == "error":
	case path == delayPath && !r.told:
		r.delay, r.told = number(strings.TrimSuffix(value, "s"), time.Second)
	case slices.Contains(codePaths, path) && len(r.codes) < codesMax:
		if at := slices.Index(codePaths, path); len(r.codes) == 0 || at < r.rank {
			r.best, r.rank = len(r.codes), at
		}
		r.codes = append(r.codes, codeOf(value))
	case slices.Contains(messagePaths, path) && r.message == "":
		r.message = strings.ToLower(clip(value, messageMax))
	}
}

func (r *reader) number(path string, value json.Number) {
	status, err := strconv.Atoi(value.String())
	if err == nil && slices.Contains(statusPaths, path) && status >= 400 && status < 600 && r.status == 0 {
		r.status = status
	}
}

// codeOf is a code without the name space that some put before it, and the address that some
// put behind: com.amazon.coral#ThrottlingException:http://….
func codeOf(value string) string {
	if at := strings.LastIndexByte(value, '#'); at >= 0 {
		value = value[at+1:]
	}
	value, _, _ = strings.Cut(value, ":")
	return strings.ToLower(clip(value, codeMax))
}

// add adds a code that stands elsewhere, and says more than all others.
func (w *words) add(value string) {
	if code := codeOf(value); code != "" {
		w.best = len(w.codes)
		w.codes = append(w.codes, code)
	}
}

// wait is what an error asks to wait: the longer one where a field and the message do. from is
// empty where neither does.
func (w *words) wait() (wait time.Duration, from string) {
	if said, ok := waitIn(w.message); ok {
		wait, from = said, "message"
	}
	if w.told && (from == "" || w.delay >= wait) {
		wait, from = w.delay, "retrydelay"
	}
	return wait, from
}

// reason is the provider's own word.
func (w *words) reason() string {
	if len(w.codes) == 0 {
		return ""
	}
	return printable(w.codes[w.best])
}

// clip cuts text to at most n bytes, between two characters.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.Clone(text[:n])
}

// printable is text without what no log and no wire wants.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return clip(text, codeMax)
}
