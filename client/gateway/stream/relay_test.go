package stream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/client/gateway/stream"
)

// wire is a client: what has gone out, one entry a flush.
type wire struct {
	pending strings.Builder
	out     []string
	write   error
	flush   error
}

func (w *wire) Write(p []byte) (int, error) {
	if w.write != nil {
		return 0, w.write
	}
	return w.pending.Write(p)
}

func (w *wire) Flush() error {
	w.out = append(w.out, w.pending.String())
	w.pending.Reset()
	return w.flush
}

func TestRelayFlushesWhenTheNextFrameIsNotThere(t *testing.T) {
	t.Parallel()
	src := &pieces{rest: []string{"data: a\n\ndata: b\n\ndat", "a: c\n\n", "data: d"}}
	var w wire
	var seen []string
	relay := stream.Relay{To: &w, Flush: w.Flush, Seen: func(f stream.Frame) { seen = append(seen, string(f.Raw)) }}
	if err := relay.Run(t.Context(), stream.NewReader(src, stream.Options{})); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"data: a\n\ndata: b\n\n", "data: c\n\n", "data: d"}, w.out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"data: a\n\n", "data: b\n\n", "data: c\n\n", "data: d"}, seen); diff != "" {
		t.Errorf("seen (-want +got):\n%s", diff)
	}
}

func TestRelaySaysWhoEndedIt(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	start := func() *pieces { return &pieces{rest: []string{"data: a\n\n"}, end: broken} }
	t.Run("the_provider", func(t *testing.T) {
		var w wire
		relay := stream.Relay{To: &w, Flush: w.Flush}
		err := relay.Run(t.Context(), stream.NewReader(start(), stream.Options{}))
		if !errors.Is(err, stream.ErrUpstream) || !errors.Is(err, broken) || errors.Is(err, stream.ErrClient) {
			t.Errorf("%v", err)
		}
		if len(w.out) != 1 || w.out[0] != "data: a\n\n" {
			t.Errorf("%q went out", w.out)
		}
	})
	t.Run("the_client", func(t *testing.T) {
		for _, w := range []*wire{{write: broken}, {flush: broken}} {
			relay := stream.Relay{To: w, Flush: w.Flush}
			err := relay.Run(t.Context(), stream.NewReader(start(), stream.Options{}))
			if !errors.Is(err, stream.ErrClient) || !errors.Is(err, broken) || errors.Is(err, stream.ErrUpstream) {
				t.Errorf("%v", err)
			}
		}
	})
	t.Run("the_context", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var w wire
		relay := stream.Relay{To: &w, Flush: w.Flush, Seen: func(stream.Frame) { cancel(broken) }}
		src := &pieces{rest: []string{"data: a\n\ndata: b\n\n"}}
		err := relay.Run(ctx, stream.NewReader(src, stream.Options{}))
		if !errors.Is(err, stream.ErrStopped) || !errors.Is(err, broken) || w.pending.String() != "data: a\n\n" {
			t.Errorf("%v after %q", err, w.pending.String())
		}
	})
	t.Run("a_read_that_the_context_ended", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		src := readFunc(func([]byte) (int, error) {
			cancel()
			return 0, io.ErrClosedPipe
		})
		relay := stream.Relay{To: io.Discard}
		err := relay.Run(ctx, stream.NewReader(src, stream.Options{}))
		if !errors.Is(err, stream.ErrStopped) || errors.Is(err, stream.ErrUpstream) {
			t.Errorf("%v", err)
		}
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

const (
	chunkOne  = `data: {"id":"1","choices":[{"index":0,"delta":{"content":"say \"usage\":null"}}],"usage":null}` + "\n\n"
	chunkTwo  = `data: {"usage" : null , "choices":[{"delta":{}}],"id":"1"}` + "\r\n\r\n"
	chunkAlso = `data: {"id":"1", "usage": null}` + "\n\n"
	// Azure begins with a chunk of no choices that says what its filters think.
	chunkFilter = `data: {"choices":[],"prompt_filter_results":[{"usage":1}]}` + "\n\n"
	chunkUsage  = `data: {"id":"1","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7}}` + "\n\n"
	chunkNull   = `data: {"id":"1","choices":null,"usage":{"prompt_tokens":5,"completion_tokens":7}}` + "\n\n"
	chunkLast   = `data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5}}` + "\n\n"
	chunkLines  = "data: {\"choices\":[],\ndata: \"usage\":null}\n\n"
	done        = "data: [DONE]\n\n"
)

func TestUsageIsHidden(t *testing.T) {
	t.Parallel()
	hidden := `data: {"id":"1","choices":[{"index":0,"delta":{"content":"say \"usage\":null"}}]}` + "\n\n" +
		`data: {"choices":[{"delta":{}}],"id":"1"}` + "\r\n\r\n" +
		`data: {"id":"1"}` + "\n\n" + chunkFilter + chunkLast + chunkLines + done
	all := chunkOne + chunkTwo + chunkAlso + chunkFilter + chunkUsage + chunkNull + chunkLast + chunkLines + done
	for _, hide := range []bool{true, false} {
		for _, src := range []io.Reader{strings.NewReader(all), iotest.OneByteReader(strings.NewReader(all))} {
			var w wire
			seen := 0
			relay := stream.Relay{To: &w, HideUsage: hide, Seen: func(f stream.Frame) { seen += len(f.Raw) }}
			if err := relay.Run(t.Context(), stream.NewReader(src, stream.Options{})); err != nil {
				t.Fatal(err)
			}
			want := all
			if hide {
				want = hidden
			}
			if diff := cmp.Diff(want, w.pending.String()); diff != "" || seen != len(all) {
				t.Errorf("hidden: %v, %d of %d bytes seen (-want +got):\n%s", hide, seen, len(all), diff)
			}
		}
	}
}

// line is a provider and a gateway before it, for one request.
type line struct {
	// next is what the provider sends, and its close that it has said everything.
	next  chan string
	ended chan error
	url   string
}

func newLine(t *testing.T) *line {
	t.Helper()
	l := &line{next: make(chan string), ended: make(chan error, 1)}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case frame, more := <-l.next:
				if !more {
					return
				}
				fmt.Fprint(w, frame)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(provider.Close)
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, provider.URL, http.NoBody)
		if err != nil {
			l.ended <- err
			return
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			l.ended <- err
			return
		}
		defer answer.Body.Close()
		flush := http.NewResponseController(w).Flush
		_ = flush()
		relay := stream.Relay{To: w, Flush: flush}
		l.ended <- relay.Run(r.Context(), stream.NewReader(answer.Body, stream.Options{}))
	}))
	t.Cleanup(gateway.Close)
	l.url = gateway.URL
	return l
}

// TestRelayOverHTTP: a client has a frame while the provider is still thinking of the
// next one.
func TestRelayOverHTTP(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{true, false} {
		l := newLine(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		r := stream.NewReader(answer.Body, stream.Options{})
		for _, data := range []string{"0", "1"} {
			l.next <- "data: " + data + "\n\n"
			if f, err := r.Next(); err != nil || string(f.Data) != data {
				t.Fatalf("%q, %v; want %q", f.Data, err, data)
			}
		}
		if leaves {
			cancel()
			if err := <-l.ended; !errors.Is(err, stream.ErrStopped) && !errors.Is(err, stream.ErrClient) {
				t.Errorf("a client that left: %v", err)
			}
			continue
		}
		close(l.next)
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("%v", err)
		}
		if err := <-l.ended; err != nil {
			t.Errorf("a provider that has said everything: %v", err)
		}
	}
}
