package front

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// Bare serves what a gateway is compared with, until ctx ends: the standard library's
// reverse proxy, with the same bounds of its connections as a gateway has.
func Bare(ctx context.Context, listener net.Listener, to string) error {
	where, err := url.Parse(to)
	if err != nil || where.Host == "" {
		return errors.Join(fmt.Errorf("the provider's address %q is no URL", to), listener.Close())
	}
	transport := &http.Transport{
		DialContext:  (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		MaxIdleConns: 4096, MaxIdleConnsPerHost: 1024, IdleConnTimeout: 90 * time.Second, DisableCompression: true,
	}
	defer transport.CloseIdleConnections()
	server := &http.Server{
		Handler: &httputil.ReverseProxy{
			Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(where) },
		},
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the proxy: %w", err)
	}
	return nil
}
