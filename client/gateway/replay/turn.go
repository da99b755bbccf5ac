package replay

import (
	"encoding/binary"
	"net/http"
	"strings"

	"github.com/quorlease/quorlease/client/gateway/canon"
)

// Turn is the work of the first request with a key, and records its answer. One goroutine uses it, and
// ends it. Make one with Store.Begin. Of a nil Turn nothing is recorded: Spoil and End do nothing.
type Turn struct {
	shard        *shard
	key, payload canon.Sum
	most         int64
	status       int
	// text are the headers, head bytes of them, and what there is of the body.
	text []byte
	head int
	// spoilt: it is not to be kept. ended: the key is free, or has its answer.
	spoilt, ended bool
}

// lasting are the headers of an answer that mean the same when it is given again. What is left of a
// limit, a day, or a wait does not.
var lasting = map[string]bool{
	"Cache-Control": true, "Content-Disposition": true, "Content-Encoding": true, "Content-Language": true,
	"Content-Location": true, "Content-Type": true, "Etag": true, "Last-Modified": true, "Link": true,
	"X-Quorlease-Fallback": true,
	"Location":             true, "Vary": true, "Request-Id": true, "X-Request-Id": true, "Apim-Request-Id": true,
}

// crossOrigin is how those begin that a browser wants to see again.
const crossOrigin = "Access-Control-"

// headersMax is how much of headers is kept. An answer with more is not.
const headersMax = 16 << 10

// Begin records what stands before an answer, once and first.
func (t *Turn) Begin(status int, header http.Header) {
	t.status = status
	if !IsLasting(status) {
		t.spoilt = true
		return
	}
	var head []byte
	for name, values := range header {
		if !lasting[name] && !strings.HasPrefix(name, crossOrigin) {
			continue
		}
		for _, value := range values {
			head = appendText(appendText(head, name), value)
		}
	}
	if len(head) > headersMax {
		t.tooLarge()
		return
	}
	if t.Write(head) {
		t.head = len(head)
	}
}

// IsLasting says whether an answer of that status is kept: one that the work has had, and no failure
// that passes, nor one that is about who asks.
func IsLasting(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusProxyAuthRequired,
		http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	default:
		return status/100 == 2 || status/100 == 4
	}
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// Write records more of the body. It is false where the answer will not be kept.
func (t *Turn) Write(p []byte) bool {
	if t.spoilt || t.ended {
		return false
	}
	need := int64(len(t.text) + len(p))
	if need > t.most {
		t.tooLarge()
		return false
	}
	if room := int64(cap(t.text)); need > room {
		larger := min(max(need, 2*room, answerMin), t.most)
		// For a moment there are both.
		if !t.shard.store.reserve(larger) {
			t.tooLarge()
			return false
		}
		t.text = append(make([]byte, 0, larger), t.text...)
		t.shard.store.taken.Add(-room)
	}
	t.text = append(t.text, p...)
	return true
}

func (t *Turn) tooLarge() {
	t.shard.store.counted.large.Add(1)
	t.Spoil()
}

// Spoil says that the answer is not to be kept, whatever comes.
func (t *Turn) Spoil() {
	if t == nil {
		return
	}
	t.spoilt = true
	t.shard.store.taken.Add(-int64(cap(t.text)))
	t.text = nil
}

// End ends the turn: the answer is kept where it is whole, and else the key is free again. Only the
// first call counts.
func (t *Turn) End(whole bool) {
	if t == nil || t.ended {
		return
	}
	if whole && !t.spoilt && t.status != 0 && t.keep() {
		t.shard.store.counted.kept.Add(1)
	}
	t.Spoil()
	t.ended = true
	h := t.shard
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.flying, t.key)
}

// keep puts the answer where it is found. The key is in flight all the while.
func (t *Turn) keep() bool {
	h, s := t.shard, t.shard.store
	inline := len(t.text) <= inlineMax
	text, size, beside := t.text, fixed, int64(0)
	if inline {
		size += len(text)
	} else {
		beside = int64(len(text))
	}
	if !s.reserve(indexCost + beside) {
		s.counted.large.Add(1)
		return false
	}
	if !inline {
		text = append(make([]byte, 0, len(text)), text...)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.growLocked(size) || h.closed || s.Off() {
		s.taken.Add(-indexCost - beside)
		return false
	}
	h.writeLocked(t, text, inline)
	if len(h.kept) == 1 {
		h.armLocked()
	}
	return true
}

// answer is what a record says.
func (r *record) answer() Answer {
	a := Answer{Status: r.status, Header: make(http.Header), Body: r.text[r.head:]}
	head := r.text[:r.head]
	next := func() string {
		n, width := binary.Uvarint(head)
		text := string(head[width : width+int(n)])
		head = head[width+int(n):]
		return text
	}
	for len(head) > 0 {
		name := next()
		a.Header[name] = append(a.Header[name], next())
	}
	return a
}
