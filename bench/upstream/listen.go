package upstream

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Listening is a handler on a port of the loopback interface.
type Listening struct {
	// URL is where, without a slash at the end.
	URL    string
	server *http.Server
	served sync.WaitGroup
	close  func()
}

// Listen serves on a free port. Close ends it.
func Listen(handler http.Handler) (*Listening, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // there is nothing to wait for on a free port
	if err != nil {
		return nil, fmt.Errorf("listen on the loopback interface: %w", err)
	}
	return Serve(listener, handler), nil
}

// Serve serves on a listener, which it closes in the end. Close ends it.
func Serve(listener net.Listener, handler http.Handler) *Listening {
	l := &Listening{
		URL:    "http://" + listener.Addr().String(),
		server: &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second},
		close:  func() {},
	}
	if s, ok := handler.(*Server); ok {
		l.close = s.Close
	}
	l.served.Go(func() {
		if err := l.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("serve on the loopback interface: %v", err))
		}
	})
	return l
}

// Close closes the port and all connections, closes the Server behind it, and waits
// for both.
func (l *Listening) Close() error {
	err := l.server.Close()
	l.close()
	l.served.Wait()
	if err != nil {
		return fmt.Errorf("close a port: %w", err)
	}
	return nil
}
