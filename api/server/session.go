package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/quorlease/quorlease/api/codec/items"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/atonce"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/api/server/sharing"
	"github.com/quorlease/quorlease/api/server/slots"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/fsm/match"
)

// session is one stream that carries the operations of many callers.
//
// One goroutine reads and submits, one turns results into messages and sends
// them; peeks have a third while there are any. Nothing is started for an item:
// its deadline is the node's to keep. What was answered while a message was
// being sent goes into the next one, all of it, so that the stream carries fewer
// and larger messages the busier it is.
//
// An item is open from its arrival until its answer has been sent. Only so many
// are open at once; beyond that the stream is not read, which makes its client
// wait and nobody else.
type session struct {
	server *Server
	stream grpc.BidiStreamingServer[quorleasev1.SessionRequest, quorleasev1.SessionResponse]
	hello  *quorleasev1.Hello
	owner  string
	// tie ends the slots of the session with it; nil until there is a hello.
	tie atomic.Pointer[slots.Tie]
	// sharing is what it is promised for the time in which nobody answers it.
	sharing *sharing.Session
	// wake has room for one signal: there is an answer, or the reader has ended.
	wake chan struct{}
	// space has room for one signal: fewer items are open than before.
	space chan struct{}
	// stall runs while a message is being sent; when it ends stalled has a signal.
	stall   *time.Timer
	stalled chan struct{}
	peeks   peeks

	// desk answers what needs no entry, in the reader's hands. given are its answers that
	// are not handed to the writer yet. left is how many items may be opened before room
	// is to be asked for again; alone: when it was, no item was without an answer.
	desk  *atonce.Desk
	given answers
	left  int
	alone bool

	mu sync.Mutex
	// items are those without an answer, by seq. ready are those with one that is
	// not sent, sealed are answers that are encoded. open counts all, and those being sent.
	items  map[uint64]*item
	ready  []*item
	sealed []answers
	open   int
	// read says that the reader has ended, and readErr why.
	read    bool
	readErr error
	// over: nobody waits for answers any more.
	over bool

	// reply is what is being sent. It is the writer's.
	reply items.Reply
}

// item is one operation of a session.
type item struct {
	session *session
	seq     uint64
	cost    int64
	pending cluster.Pending
	// submitted: the node has it. cancelled: its caller has gone. Guarded by session.mu.
	submitted, cancelled bool
	// known is the revision whose fallbacks the caller holds, if any.
	known *uint64
	// described is what an acquire or a peek says of its work, nil where it names its
	// charges; tries is how often it was expanded.
	described *match.Request
	tries     int
	// looks: the goroutine that looks has it. Guarded by session.mu.
	looks bool
	// peek is set instead of pending's operation where it only looks.
	peek *logv1.Acquire
	// refreshed is set instead where the session said what it holds.
	refreshed *quorleasev1.RefreshResponse
	// The answer: a result, or an error. A peek's result is that of an acquire.
	result *logv1.Result
	err    error
}

// sessionMethod is what the log calls a session.
const sessionMethod = "/quorlease.v1.Admission/Session"

// itemOverhead is what an item takes beside its own bytes: its parts here and in
// the node, and its answer, which repeats most of it.
const itemOverhead = 512

// Session carries the operations of many callers.
func (a *admission) Session(
	stream grpc.BidiStreamingServer[quorleasev1.SessionRequest, quorleasev1.SessionResponse],
) error {
	s := newSession(a.server, stream)
	written := make(chan error, 1)
	a.server.joined.Go(s.reader)
	a.server.joined.Go(func() { written <- s.writer() })
	select {
	case err := <-written:
		return err
	case <-s.stalled:
		// That the call is over ends the writer too.
		return errStalled
	}
}

// sendWithin is how long a client may take to accept a message. One that takes none
// would keep for itself what all sessions share, for as long as it answers pings (G10).
const sendWithin = 10 * time.Second

var errStalled = fmt.Errorf("%w: answers were not taken within %s", cluster.ErrOverloaded, sendWithin)

func newSession(
	server *Server, stream grpc.BidiStreamingServer[quorleasev1.SessionRequest, quorleasev1.SessionResponse],
) *session {
	s := &session{
		server: server, stream: stream, owner: identityOf(stream.Context()).Name,
		wake: make(chan struct{}, 1), space: make(chan struct{}, 1), stalled: make(chan struct{}, 1),
		items: map[uint64]*item{},
	}
	s.stall = time.AfterFunc(sendWithin, func() { signal(s.stalled) })
	s.stall.Stop()
	s.peeks.wake, s.peeks.start = make(chan struct{}, 1), s.startPeeks
	return s
}

// signal leaves a signal in a channel that has room for one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// reader reads until the client has said all, or can't be understood.
func (s *session) reader() {
	var err error
	defer func() {
		if panicked := recover(); panicked != nil {
			err = s.server.failure(sessionMethod, panicked, nil)
		}
		s.mu.Lock()
		s.read, s.readErr = true, err
		s.mu.Unlock()
		signal(s.wake)
	}()
	err = s.receive()
	if errors.Is(err, io.EOF) {
		err = nil
	}
}

func (s *session) receive() error {
	message := &items.Requests{}
	if err := s.stream.RecvMsg(message); err != nil {
		return err
	}
	s.hello = message.Other.GetHello()
	id, err := convert.Hello(s.hello)
	if err != nil {
		return err
	}
	tie := slots.New(s.server.node, slots.Session{
		ID: id, Owner: s.owner, Connection: s.hello.GetConnection(), Grace: s.server.config.SessionGrace,
	})
	s.tie.Store(tie)
	s.sharing = s.server.sharing.Session(id, s.owner)
	s.desk = atonce.New(s.server.node, s.owner, s.hello.GetClient())
	if s.isOver() {
		// Whoever ended the session may have seen no tie to end with it.
		tie.End(s.stream.Context(), s.server.isDraining())
		return io.EOF
	}
	// The headers say that the session stands. Nothing was sent before: an answer
	// needs an item.
	if err := s.stream.SendHeader(nil); err != nil {
		return err
	}
	for {
		if err := s.stream.RecvMsg(message); err != nil {
			return err
		}
		err := s.accept(message)
		s.hand()
		// Nothing of it is kept while the next one is waited for.
		if message.Reset(); err != nil {
			return err
		}
	}
}

func (s *session) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// begin opens an item and hands it on, or answers it at once.
func (s *session) begin(now time.Time, i int, request *quorleasev1.RequestItem, cost int64) {
	it := &item{session: s, seq: request.GetSeq(), cost: cost}
	used := s.server.itemBytes.Add(cost)
	patience, err := convert.Patience(request, patienceOf(request.GetAcquire(), admissionPatience))
	it.pending.Deadline, it.pending.Arrived = now.Add(patience), now
	// What was tried is submitted, whatever else has happened since: there was room for it.
	tried := s.desk.Tried(&it.pending)
	switch {
	case !tried && used > s.server.config.SessionBytesMax:
		err = errOverloadedItems
	case !tried && s.server.isDraining():
		err = errDraining
	case err == nil:
		err = s.prepare(it, request)
	}
	if !s.register(it) {
		// The item that has the seq is still to be answered.
		it.err = convert.Wrong(fmt.Sprintf("items[%d].seq", i), fmt.Sprintf("%d is in use", it.seq))
		s.answered(it)
		return
	}
	switch {
	case err != nil || it.refreshed != nil:
		s.done(it, nil, err)
	case it.looks:
		s.look(it)
	default:
		s.server.node.Submit(&it.pending)
		s.submitted(it)
	}
}

var errOverloadedItems = fmt.Errorf("%w: the items of all sessions take too much memory", cluster.ErrOverloaded)

// register counts an item as open and gives it its seq. It says no where another
// item has it.
func (s *session) register(it *item) bool {
	s.alone = false
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	if _, twice := s.items[it.seq]; twice {
		return false
	}
	s.items[it.seq] = it
	return true
}

// submitted says that the node has an item, from where on it can be cancelled.
func (s *session) submitted(it *item) {
	s.mu.Lock()
	it.submitted = true
	gone := s.over || it.cancelled
	s.mu.Unlock()
	if gone {
		s.server.node.Cancel(&it.pending)
	}
}

// cancel says that the caller of an item has gone. The item is answered all the
// same, most often with CANCELED: only then may its seq be used again. One that
// was answered meanwhile is no mistake.
func (s *session) cancel(seq uint64) {
	s.mu.Lock()
	it := s.items[seq]
	if it == nil {
		s.mu.Unlock()
		return
	}
	it.cancelled = true
	looks, submitted := it.looks, it.submitted
	s.mu.Unlock()
	switch {
	case looks:
		s.done(it, nil, context.Canceled)
	case submitted:
		s.server.node.Cancel(&it.pending)
	}
}

// done takes the answer of an item. It runs wherever the node answers, and must
// not hold it up: turning the result into a message is the writer's. Of a peek
// that is cancelled and found at once the first counts.
func (s *session) done(it *item, r *logv1.Result, err error) {
	s.mu.Lock()
	if s.items[it.seq] != it {
		s.mu.Unlock()
		return
	}
	if it.isStale(r) && !s.over {
		it.looks = true
		s.mu.Unlock()
		s.look(it)
		return
	}
	delete(s.items, it.seq)
	it.result, it.err = r, err
	s.mu.Unlock()
	s.answered(it)
}

// answered hands an item to the writer.
func (s *session) answered(it *item) {
	s.mu.Lock()
	over := s.over
	if !over {
		s.ready = append(s.ready, it)
	}
	s.mu.Unlock()
	if over {
		s.server.itemBytes.Add(-it.cost)
		return
	}
	signal(s.wake)
}

// abandon ends the session: nobody waits for what has no answer yet, and what
// could not be sent is forgotten.
func (s *session) abandon() {
	s.mu.Lock()
	s.over = true
	unsent, sealed := s.ready, s.sealed
	s.ready, s.sealed = nil, nil
	var waiting, looking []*item
	for _, it := range s.items {
		if it.looks {
			looking = append(looking, it)
		} else if it.submitted {
			waiting = append(waiting, it)
		}
	}
	s.mu.Unlock()
	for _, it := range unsent {
		s.server.itemBytes.Add(-it.cost)
	}
	for i := range sealed {
		s.server.itemBytes.Add(-sealed[i].cost)
	}
	for _, it := range looking {
		s.done(it, nil, context.Canceled)
	}
	for _, it := range waiting {
		s.server.node.Cancel(&it.pending)
	}
	signal(s.space)
	s.peeks.stop()
}
