package server

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/quorlease/quorlease/api/codec/items"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
)

// answers are some that are encoded, one behind the other.
type answers struct {
	bytes []byte
	count int
	// cost is what they take, in bytes.
	cost int64
}

// isFull says that others go elsewhere.
func (a *answers) isFull() bool { return a.count >= answersMost || len(a.bytes) >= answersBytes }

// So many answers, or a little more than so many bytes of them, are handed to the writer
// together.
const (
	answersMost  = 128
	answersBytes = 32 << 10
)

// rooms are memory for answers: each goes through the hands of a reader and a writer, and
// an idle session has none. What a few large answers made larger is not kept.
var rooms = sync.Pool{New: func() any { return new([]byte) }}

func takeRoom() []byte { return (*rooms.Get().(*[]byte))[:0] }

func giveRoom(room []byte) {
	if cap(room) <= 2*answersBytes {
		rooms.Put(&room)
	}
}

// accept takes one message in, item by item, as there is room.
func (s *session) accept(message *items.Requests) error {
	switch {
	case !message.Carries:
		return convert.Wrong("items", "missing: only the first message is a hello")
	case len(message.Items) > itemsMax:
		return fmt.Errorf("%w: %d items, more than %d", ErrTooLarge, len(message.Items), itemsMax)
	}
	// The node counts deadlines from its own clock; one reading does for all.
	now := time.Now()
	total := int64(0)
	for i := range message.Items {
		total += int64(message.Size(i))
	}
	if total > sessionMax {
		return fmt.Errorf("%w: %d bytes, more than %d", ErrTooLarge, total, sessionMax)
	}
	s.left = 0
	for i := range message.Items {
		if err := s.take(now, message, i); err != nil {
			return err
		}
	}
	return nil
}

// take takes one item of a message.
func (s *session) take(now time.Time, message *items.Requests, i int) error {
	plain := message.Plain(i)
	if plain == nil {
		if one := message.Item(i); one.GetCancel() != nil {
			s.cancel(one.GetSeq())
			return nil
		}
	}
	if s.left == 0 {
		// What is answered must be in the writer's hands before its room is waited for.
		s.hand()
		if err := s.room(); err != nil {
			return err
		}
	}
	s.left--
	if plain != nil {
		if ok, err := s.atOnce(now, plain); ok || err != nil {
			return err
		}
	}
	s.begin(now, i, message.Item(i), itemOverhead+4*int64(message.Size(i)))
	return nil
}

// room waits until one more item may be open. Answers that say that there is no more
// memory take some too: where they take as much again as there is, nobody is read who
// has any of his own to take.
func (s *session) room() error {
	for {
		crowded := s.server.itemBytes.Load() > 2*s.server.config.SessionBytesMax
		s.mu.Lock()
		full, over := s.open >= s.server.config.SessionItemsMax || crowded && s.open > 0, s.over
		s.left, s.alone = min(s.server.config.SessionItemsMax-s.open, answersMost), len(s.items) == 0
		s.mu.Unlock()
		switch {
		case over:
			return io.EOF
		case !full:
			return nil
		}
		select {
		case <-s.space:
		case <-s.stream.Context().Done():
			return s.stream.Context().Err()
		}
	}
}

// atOnce answers a plain acquire that needs no entry. ok is false where it needs one, or
// the item is not to be answered like that: it goes the way of the others then.
func (s *session) atOnce(now time.Time, item *quorleasev1.RequestItem) (ok bool, err error) {
	if s.server.itemBytes.Load() > s.server.config.SessionBytesMax || s.server.isDraining() || s.isOpen(item.GetSeq()) {
		return false, nil
	}
	if s.given.bytes == nil {
		s.given.bytes = takeRoom()
	}
	s.given.bytes, ok, err = s.desk.Answer(s.stream.Context(), now, item, s.given.bytes)
	if ok {
		if s.given.count++; s.given.isFull() {
			s.hand()
		}
	}
	return ok, err
}

// isOpen says whether an item without an answer has a seq.
func (s *session) isOpen(seq uint64) bool {
	if s.alone {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, open := s.items[seq]
	return open
}

// hand hands to the writer what was answered at once.
func (s *session) hand() {
	if s.given.count == 0 {
		if s.given.bytes != nil {
			giveRoom(s.given.bytes)
			s.given.bytes = nil
		}
		return
	}
	given := s.given
	s.given = answers{}
	given.cost = int64(cap(given.bytes))
	s.server.itemBytes.Add(given.cost)
	s.mu.Lock()
	over := s.over
	if !over {
		s.open += given.count
		s.sealed = append(s.sealed, given)
	}
	s.mu.Unlock()
	if over {
		s.server.itemBytes.Add(-given.cost)
		return
	}
	signal(s.wake)
}
