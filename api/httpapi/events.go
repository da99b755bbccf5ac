package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/api/server/convert"
)

const (
	// sendWithin is how long a reader of events may take to accept one.
	sendWithin = 10 * time.Second
	// pingEvery keeps proxies from closing a quiet stream.
	pingEvery = 15 * time.Second
)

// events streams what happens on this node as Server-Sent Events. It starts now,
// or at the index that from_index or the browser's Last-Event-ID names: what
// comes again at that index is repeated rather than lost.
func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	request, err := eventsRequest(r)
	if err != nil {
		fail(w, err)
		return
	}
	s := &eventStream{w: w, control: http.NewResponseController(w)}
	// The deadlines of an ordinary request don't fit a stream. Both can be set:
	// the connection is a real one.
	_ = s.control.SetReadDeadline(time.Time{})
	var pinging sync.WaitGroup
	stop := make(chan struct{})
	pinging.Go(func() { s.pings(stop) })
	err = h.api.Watch(r.Context(), request, server.Watcher{Started: s.begin, Send: s.send})
	close(stop)
	pinging.Wait()
	if err != nil {
		s.fail(err)
	}
}

func eventsRequest(r *http.Request) (*quorleasev1.EventsWatchRequest, error) {
	request := &quorleasev1.EventsWatchRequest{Follow: true}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, convert.Wrong("query", "can't be read")
	}
	if err := fromQuery(values, request); err != nil {
		return nil, err
	}
	last := r.Header.Get("Last-Event-ID")
	if last == "" {
		return request, nil
	}
	// What a browser saw last counts more than where it once began.
	index, err := strconv.ParseUint(last, 10, 64)
	if err != nil {
		return nil, convert.Wrong("Last-Event-ID", limitsfile.Quote(last)+": want an index")
	}
	request.FromIndex = &index
	return request, nil
}

// eventStream writes one stream. Events and pings come from two goroutines.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController

	mu      sync.Mutex
	started bool
	// index is the highest of the events sent: events that only this node saw have
	// none of their own.
	index uint64
}

// begin sends the headers, and a comment that carries them to the reader at
// once. A mistake that is found before still gets its own status.
func (s *eventStream) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.w.WriteHeader(http.StatusOK)
	return s.writeLocked([]byte(": connected\n\n"))
}

func (s *eventStream) send(answer *quorleasev1.EventsWatchResponse) error {
	data, err := toJSON(answer.GetEvent())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index = max(s.index, answer.GetEvent().GetIndex())
	var out bytes.Buffer
	if s.index > 0 {
		fmt.Fprintf(&out, "id: %d\n", s.index)
	}
	fmt.Fprintf(&out, "event: %s\ndata: %s\n\n", answer.GetEvent().GetKind(), data)
	return s.writeLocked(out.Bytes())
}

func (s *eventStream) writeLocked(data []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(sendWithin))
	if _, err := s.w.Write(data); err != nil {
		return fmt.Errorf("send an event: %w", err)
	}
	if err := s.control.Flush(); err != nil {
		return fmt.Errorf("send an event: %w", err)
	}
	return nil
}

// pings writes a comment from time to time.
func (s *eventStream) pings(stop <-chan struct{}) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		s.mu.Lock()
		var err error
		if s.started {
			err = s.writeLocked([]byte(": ping\n\n"))
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// fail says why the stream ends: with a status if nothing was sent yet, else as
// its last event.
func (s *eventStream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.started = true
		fail(s.w, err)
		return
	}
	_ = s.writeLocked(fmt.Appendf(nil, "event: error\ndata: %s\n\n", failureJSON(server.ErrorOf(err))))
}
