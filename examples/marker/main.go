// Command marker is a proxy for programs that set no retry header: it sends their requests on, again
// as it is told, and says in x-retry-attempt which try each one is. What a program has said itself
// is counted on.
//
//	go run ./examples/marker --upstream http://127.0.0.1:7401
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quorlease/quorlease/client/httpwrap"
)

// bodyMax is the longest request that is kept for another try; a longer one is refused.
const bodyMax = 8 << 20

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "marker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("marker", flag.ContinueOnError)
	flags.SetOutput(log)
	listen := flags.String("listen", "127.0.0.1:8080", "`address` of this proxy")
	upstream := flags.String("upstream", "http://127.0.0.1:7401", "`URL` of the gateway or the service")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	target, err := url.Parse(*upstream)
	if err != nil || target.Host == "" {
		return fmt.Errorf("upstream: %q is no URL", *upstream)
	}
	wrapped, err := httpwrap.New(httpwrap.Config{})
	if err != nil {
		return err
	}
	proxy := &httputil.ReverseProxy{
		Transport: wrapped,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	server := &http.Server{Handler: kept(proxy), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintln(out, "listening on", listener.Addr())
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// kept reads a request's body before it is sent, so that it can be sent again.
func kept(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
		if err != nil {
			http.Error(w, "the request can't be read, or is too long", http.StatusRequestEntityTooLarge)
			return
		}
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody()
		r.ContentLength = int64(len(body))
		if len(body) == 0 {
			r.Body, r.GetBody = http.NoBody, nil
		}
		next.ServeHTTP(w, r)
	})
}
