package forwarding

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// A body that stalls is given up, and an answer may take longer than a body: neither the
// request nor its context ends for that.
func TestHurry(t *testing.T) {
	t.Parallel()
	const pause = 100 * time.Millisecond
	ends := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		if err == nil {
			select {
			case <-r.Context().Done():
				err = context.Cause(r.Context())
			case <-time.After(3 * pause):
			}
		}
		ends <- err
	}))
	inner := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer hurry(w, r, pause, time.Minute)()
		inner.ServeHTTP(w, r)
	})
	t.Cleanup(server.Close)
	for _, row := range []struct {
		name, sent string
		want       error
	}{
		{"whole", "whole", nil},
		{"stalls", "who", os.ErrDeadlineExceeded},
		{"nothing", "", os.ErrDeadlineExceeded},
	} {
		t.Run(row.name, func(t *testing.T) {
			var dialer net.Dialer
			conn, err := dialer.DialContext(t.Context(), "tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n%s", row.sent)
			if got := <-ends; !errors.Is(got, row.want) {
				t.Errorf("%v, want %v", got, row.want)
			}
			if row.want != nil {
				return
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("%v, %v", answer, err)
			}
			answer.Body.Close()
		})
	}
}

// However steadily it comes, there is an end.
func TestHurryEnds(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer hurry(w, r, time.Minute, 50*time.Millisecond)()
		_, err := io.Copy(io.Discard, r.Body)
		ended <- err
	}))
	t.Cleanup(server.Close)
	steady, stop := io.Pipe()
	defer stop.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, steady)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			if _, err := stop.Write([]byte("x")); err != nil {
				return
			}
		}
	}()
	answer, err := server.Client().Do(request)
	if err == nil {
		answer.Body.Close()
	}
	if got := <-ended; !errors.Is(got, os.ErrDeadlineExceeded) {
		t.Errorf("%v, want %v", got, os.ErrDeadlineExceeded)
	}
}

// TestHurryUnread: a body that nobody wants holds neither its answer nor the connection.
func TestHurryUnread(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]http.HandlerFunc{
		"answered": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"aborted":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer hurry(w, r, 50*time.Millisecond, time.Minute)()
				refuse(w, r)
			}))
			t.Cleanup(server.Close)
			var dialer net.Dialer
			conn, err := dialer.DialContext(t.Context(), "tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.ReadAll(conn); err != nil {
				t.Errorf("%v, want an answer and the end of the connection", err)
			}
		})
	}
}
