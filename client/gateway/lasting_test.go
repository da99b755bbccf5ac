package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/gateway"
)

// single is a listener that one connection comes from.
type single struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (s *single) Accept() (net.Conn, error) {
	select {
	case conn := <-s.conns:
		return conn, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *single) Close() error {
	s.once.Do(func() { close(s.done) })
	return nil
}

func (*single) Addr() net.Addr { return &net.TCPAddr{} }

// over serves the gateway over a protocol, and returns who asks it so.
func (w *world) over(t *testing.T, spoken *http.Protocols) http.RoundTripper {
	t.Helper()
	near, far := net.Pipe()
	listener := &single{conns: make(chan net.Conn, 1), done: make(chan struct{})}
	listener.conns <- far
	server := &http.Server{Protocols: spoken, Handler: http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = "127.0.0.1:1"
		w.ServeHTTP(to, r)
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	client := &http.Transport{
		Protocols:   spoken,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil },
	}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		near.Close()
		server.Close()
		serving.Wait()
	})
	return client
}

// TestSilentAnswers: an answer may be silent for longer than its client may take to read.
func TestSilentAnswers(t *testing.T) {
	one, two := new(http.Protocols), new(http.Protocols)
	one.SetHTTP1(true)
	two.SetUnencryptedHTTP2(true)
	for name, spoken := range map[string]*http.Protocols{"HTTP1": one, "HTTP2": two} {
		for _, alone := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s_alone_%t", name, alone), func(t *testing.T) {
				bubble(t, func(c *gateway.Config) { c.NoSharing = alone }, func(t *testing.T, w *world) {
					silent(t, w, w.over(t, spoken))
				})
			})
		}
	}
}

func silent(t *testing.T, w *world, client http.RoundTripper) {
	from, to := io.Pipe()
	w.answer = func(*http.Request) *http.Response {
		answer := events()
		answer.Body = from
		return answer
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+chat,
		strings.NewReader(streaming("hi")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Client-Id", "a")
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() {
		defer to.Close()
		for _, part := range []string{chunk("a"), chunk("b"), usageChunk + doneChunk} {
			if _, err := io.WriteString(to, part); err != nil {
				return
			}
			pass(2 * time.Minute)
		}
	})
	answer, err := client.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(text), "[DONE]") {
		t.Errorf("%s ends with %v: %s", answer.Proto, err, text)
	}
}
