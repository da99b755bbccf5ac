package report

import (
	"strings"
	"sync"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/failopen"
)

const (
	// errorMax is the longest error that is told, in bytes, and errorsMax how many
	// are told apart between two reports.
	errorMax  = 64
	errorsMax = 8
)

// Book is for work that asks nobody, because it spends permits that the client
// holds: it asks the client's own retry budget, and has counted what the authority
// did not see. It is safe for concurrent use.
type Book struct {
	machine *failopen.Machine
	client  string
	owe     func()
	// shelf is where it stands, nil for the client's own.
	shelf *shelf

	mu struct {
		sync.Mutex
		total, retries, throttled int64
		errors                    []failure
		// queued: it is in shelf.owing. gone: it was forgotten, and nobody will tell what is
		// written here.
		queued, gone bool
	}
}

type failure struct {
	text  string
	times int64
}

// Permit says whether a piece of work may go ahead as far as the retry budget is
// concerned, and counts it if so. attempt is how many retries were made for it, 0
// first. Where it is refused, RetryAfter says when to come back, unless Never.
func (b *Book) Permit(attempt uint32) failopen.Verdict {
	verdict := b.machine.Permit(time.Now(), b.client, attempt)
	if verdict.Admit {
		b.note(func(b *Book) {
			b.mu.total++
			b.mu.retries += int64(min(attempt, 1))
		})
	}
	return verdict
}

// Consider is what Permit would say of the budget, and counts nothing: for whoever has
// to take something before it is known whether the work goes ahead, and asks Permit
// then.
func (b *Book) Consider(attempt uint32) failopen.Verdict {
	return b.machine.Consider(time.Now(), b.client, attempt)
}

// note writes something down where it will be told.
func (b *Book) note(write func(*Book)) {
	for {
		b.mu.Lock()
		if !b.mu.gone {
			break
		}
		b.mu.Unlock()
		b = b.shelf.of(b.client)
	}
	write(b)
	queue := b.queuesLocked()
	b.mu.Unlock()
	if queue {
		b.shelf.queue(b)
	}
	b.owe()
}

// Outcome is how a piece of work ended.
type Outcome struct {
	// Throttled: a provider said that it was too much.
	Throttled bool
	// Error names what went wrong, up to 64 bytes: "429", "timeout". Empty: nothing
	// did. It is shown to people with the client's name.
	Error string
}

// Done says how a piece of work ended, whoever admitted it. A success refunds
// tokens where retries are paid with them (Config.RetryTokens).
func (b *Book) Done(o Outcome) {
	if !o.Throttled && o.Error == "" {
		b.Succeeded()
		return
	}
	b.note(func(b *Book) {
		if o.Throttled {
			b.mu.throttled++
		}
		if o.Error != "" {
			b.failLocked(failure{cut(o.Error), 1})
		}
	})
}

// Succeeded is shorthand for Done of what succeeded.
func (b *Book) Succeeded() { b.machine.Succeeded(time.Now(), b.client) }

// failLocked counts an error. One more text than are told apart takes the place of
// the rarest.
func (b *Book) failLocked(f failure) {
	rarest := 0
	for i := range b.mu.errors {
		if b.mu.errors[i].text == f.text {
			b.mu.errors[i].times += f.times
			return
		}
		if b.mu.errors[i].times < b.mu.errors[rarest].times {
			rarest = i
		}
	}
	f.text = strings.Clone(f.text)
	if len(b.mu.errors) < errorsMax {
		b.mu.errors = append(b.mu.errors, f)
		return
	}
	f.times += b.mu.errors[rarest].times
	b.mu.errors[rarest] = f
}

// cut makes an error one that can be told: printable, and short.
func cut(text string) string {
	text = strings.ToValidUTF8(text, "?")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) > errorMax {
		text = strings.ToValidUTF8(text[:errorMax], "")
	}
	return text
}

// take is what was not told yet, nil where that is nothing. It counts as told
// unless it is put back.
func (b *Book) take() *quorleasev1.Attempts {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.queued = false
	if !b.owesLocked() {
		return nil
	}
	a := &quorleasev1.Attempts{Total: b.mu.total, Retries: b.mu.retries, Throttled: b.mu.throttled}
	for _, f := range b.mu.errors {
		if f.times > a.GetErrors() {
			a.Error, a.Errors = f.text, f.times
		}
	}
	b.mu.total, b.mu.retries, b.mu.throttled, b.mu.errors = 0, 0, 0, nil
	return a
}

// putBack takes back what take gave and nobody took.
func (b *Book) putBack(a *quorleasev1.Attempts) {
	b.note(func(b *Book) {
		b.mu.total += a.GetTotal()
		b.mu.retries += a.GetRetries()
		b.mu.throttled += a.GetThrottled()
		if a.GetErrors() > 0 {
			b.failLocked(failure{a.GetError(), a.GetErrors()})
		}
	})
}

// owes says whether there is something to tell.
func (b *Book) owes() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.owesLocked()
}

func (b *Book) owesLocked() bool { return b.mu.total > 0 || b.mu.throttled > 0 }

// queuesLocked says whether the book is to be put into line, and that it is.
func (b *Book) queuesLocked() bool {
	if b.shelf == nil || b.mu.queued || !b.owesLocked() {
		return false
	}
	b.mu.queued = true
	return true
}
