// Command proxy is a server with a page, a login and a mux of its own, and a gateway behind them.
// Who has logged in asks models at /ai/, as itself, without a key of the provider's.
//
//	go run ./examples/proxy --upstream https://api.openai.com --user ada:a-token
//	curl http://127.0.0.1:8080/ai/v1/chat/completions -H "Authorization: Bearer a-token" -d …
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/who"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
}

// users are the names of those who have logged in, by the hash of the token that they were given.
type users map[[sha256.Size]byte]string

func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("proxy", flag.ContinueOnError)
	flags.SetOutput(log)
	endpoints := flags.String("endpoints", "127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103", "addresses of `nodes`")
	listen := flags.String("listen", "127.0.0.1:8080", "`address` of this server")
	upstream := flags.String("upstream", "https://api.openai.com", "`URL` of the provider")
	known := users{}
	flags.Func("user", "a user and his token, as `name:token`; may be repeated", func(text string) error {
		name, token, ok := strings.Cut(text, ":")
		if !ok || name == "" || token == "" {
			return errors.New("not name:token")
		}
		known[sha256.Sum256([]byte(token))] = name
		return nil
	})
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	to, err := url.Parse(*upstream)
	if err != nil {
		return fmt.Errorf("upstream: %w", err)
	}
	authority, err := client.New(client.Config{
		Endpoints: strings.Split(*endpoints, ","), Client: "proxy", Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		return err
	}
	defer authority.Close()
	key := rand.Text()
	models, err := newGateway(authority, to, key)
	if err != nil {
		return err
	}
	defer models.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "listening on", listener.Addr())
	return serve(ctx, listener, newMux(known, key, models))
}

// newGateway makes a gateway that believes this server, by a key that nobody else has, whoever it
// says is asking. All of its users are one tenant; who has several makes a who.Client of each.
func newGateway(authority *client.Client, upstream *url.URL, key string) (*gateway.Gateway, error) {
	clients, err := who.New(who.Config{Clients: []who.Client{
		{Name: "proxy", Tenant: "users", Any: true, Keys: []string{who.HashKey(key)}},
	}})
	if err != nil {
		return nil, err
	}
	openAI, err := provider.Named(provider.NameOpenAI)
	if err != nil {
		return nil, err
	}
	return gateway.New(gateway.Config{
		Authority: authority, Who: clients,
		Deployments: []gateway.Deployment{{
			Name: "openai", Provider: openAI, Upstream: upstream, Key: os.Getenv("OPENAI_API_KEY"),
		}},
	})
}

// newMux has the gateway behind the login, and a page in front of it.
func newMux(known users, key string, models http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "Models are at /ai/v1/chat/completions.\n")
	})
	mux.Handle("/ai/", http.StripPrefix("/ai", loggedIn(known, key, models)))
	return mux
}

// loggedIn lets users in by their tokens, and says to the gateway who they are. What they say of
// themselves in headers goes no further.
func loggedIn(known users, key string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		name, ok := known[sha256.Sum256([]byte(token))]
		if !ok {
			http.Error(w, "Log in first.", http.StatusUnauthorized)
			return
		}
		r = r.Clone(r.Context())
		for _, header := range append(who.Credentials(), who.NameHeader, who.TenantHeader) {
			r.Header.Del(header)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set(who.NameHeader, name)
		next.ServeHTTP(w, r)
	})
}

// serve serves until ctx ends, and then lets answers end that have begun.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(ending), ignoreClosed(<-failed))
}

// ignoreClosed is nil for the error of a server that was told to stop.
func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
