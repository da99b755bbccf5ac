package bubble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"

	"github.com/quorlease/quorlease/bench/gateways"
)

// incoming is a request as a server would hand it to the gateway.
func incoming(ctx context.Context, r gateways.Request) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	for name, values := range r.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	request.Header.Set("Content-Type", "application/json")
	request.RemoteAddr, request.RequestURI = "127.0.0.1:1", r.Path
	return request, nil
}

// recorder is a program that reads an answer to its end.
type recorder struct {
	header, sent http.Header
	status       int
	body         bytes.Buffer
}

func newRecorder() *recorder { return &recorder{header: make(http.Header)} }

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status, r.sent = status, r.header.Clone()
	}
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// Flush implements http.Flusher.
func (r *recorder) Flush() { r.WriteHeader(http.StatusOK) }

// serve says whether the answer came to its end.
func (r *recorder) serve(handler http.Handler, request *http.Request) (whole bool) {
	defer abort(&whole)
	handler.ServeHTTP(r, request)
	r.WriteHeader(http.StatusOK)
	return true
}

// abort ends a handler as net/http does. Where it broke off, whole is false.
func abort(whole *bool) {
	if cause := recover(); cause != nil {
		if err, ok := cause.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			panic(cause)
		}
		*whole = false
	}
}

// transport sends to a handler in the same process, and gives an answer back as it is
// written.
type transport struct {
	to http.Handler
	// life is the sender's process: its connections end with it.
	life  context.Context //nolint:containedctx // that of a process, not of a call
	calls *sync.WaitGroup
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, errors.Join(fmt.Errorf("read what is sent: %w", err), r.Body.Close())
		}
		if err := r.Body.Close(); err != nil {
			return nil, fmt.Errorf("close what was sent: %w", err)
		}
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
	if t.life.Err() != nil {
		return nil, errDead
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(t.life, cancel) //nolint:contextcheck // the process ends what it sends
	reader, writer := io.Pipe()
	a := &answer{header: make(http.Header), begun: make(chan struct{}), body: writer}
	there := r.Clone(ctx)
	there.Body = io.NopCloser(bytes.NewReader(sent))
	t.calls.Go(func() {
		defer cancel()
		defer stop()
		whole := false
		func() {
			defer abort(&whole)
			t.to.ServeHTTP(a, there)
			a.WriteHeader(http.StatusOK)
			whole = true
		}()
		a.end(whole)
	})
	select {
	case <-a.begun:
	case <-ctx.Done():
		_ = reader.Close()
		return nil, ctx.Err()
	}
	if a.status == 0 {
		_ = reader.Close()
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Header: a.sent, ContentLength: -1, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: &leaving{reader, cancel},
	}, nil
}

// answer is what the handler writes.
type answer struct {
	header, sent http.Header
	status       int
	// begun is closed when status and sent are there, or never will be.
	begun chan struct{}
	once  sync.Once
	body  *io.PipeWriter
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.begun)
	})
}

// Write implements http.ResponseWriter. It waits until what it has was read.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// Flush implements http.Flusher: what was written is there already.
func (a *answer) Flush() { a.WriteHeader(http.StatusOK) }

func (a *answer) end(whole bool) {
	if whole {
		_ = a.body.Close()
		return
	}
	a.once.Do(func() { close(a.begun) })
	_ = a.body.CloseWithError(io.ErrUnexpectedEOF)
}

// leaving tells the handler when nobody reads any more.
type leaving struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (l *leaving) Close() error {
	err := l.PipeReader.Close()
	l.cancel()
	return err
}
