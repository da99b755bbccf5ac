package forwarding

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorlease/quorlease/api/capped"
	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/gate"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/netaddr"
)

// Bounds of a connection. An answer may take as long as it likes: some stream for an hour.
const (
	headersWithin = 10 * time.Second
	idleMax       = 2 * time.Minute
	headersMax    = 64 << 10
	// connectionsMax is how many programs may be connected at once, and adminMax how many ask
	// about the gateway itself.
	connectionsMax = 32_768
	adminMax       = 100
	// adminDrain is how long questions about health may take to end, and a reload that is under way.
	adminDrain = 2 * time.Second
)

// assembled is a gateway with what it asks, and where its alerts go.
type assembled struct {
	// own is nil where the authority is elsewhere.
	own       *own
	alerts    *alerts
	authority *client.Client
	gateway   *gateway.Gateway
	// gate is nil where no proxy asks. It goes by the book.
	gate *gate.Gate
	book book
}

// Close closes first what asks, and last what hears of it.
func (a *assembled) Close() error {
	var failed []error
	if a.gateway != nil {
		failed = append(failed, a.gateway.Close())
	}
	if a.gate != nil {
		failed = append(failed, a.gate.Close())
	}
	if a.authority != nil {
		failed = append(failed, a.authority.Close())
	}
	if a.own != nil {
		failed = append(failed, a.own.Close())
	}
	return errors.Join(append(failed, a.alerts.Close())...)
}

// running is a gateway with everything that listens for it.
type running struct {
	*assembled
	programs *http.Server
	// admin is nil where nobody may ask, and authorizer where no proxy does.
	admin, authorizer *http.Server

	logger hclog.Logger
	// identity is the certificate, nil where there is none.
	identity atomic.Pointer[tls.Certificate]
	// draining: it was told to stop.
	draining atomic.Bool
	// failed gets why a listener stopped by itself, and listening waits for all.
	failed    chan error
	listening sync.WaitGroup
}

// Run serves until the context ends, which is no error, or a listener or the authority in this
// process fails. With a file, or that authority, a hangup makes it read its files again, whatever
// such a signal meant before. Complete was called before.
func (o *Options) Run(ctx context.Context, logger hclog.Logger) error {
	hangups := make(chan os.Signal, 1)
	if o.config != "" || o.isEmbedded() {
		signal.Reset(syscall.SIGHUP)
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
	}
	r, err := o.start(ctx, logger)
	if err != nil {
		return err
	}
	// Files are read beside, one reload after the other: one that blocks, such as a pipe, does not keep it from stopping.
	signals, reloaded := hangups, make(chan struct{}, 1)
	for err == nil && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case err = <-r.failed:
		case <-r.own.stopped():
			err = r.own.failure()
		case <-signals:
			signals = nil
			go func() {
				r.reload(ctx, o)
				reloaded <- struct{}{}
			}()
		case <-reloaded:
			signals = hangups
		}
	}
	if err == nil {
		logger.Info("told to stop", "drain", o.drain)
	}
	r.stop(o.drain) //nolint:contextcheck // ctx has ended: stopping has its own time
	if signals == nil {
		select {
		case <-reloaded:
		case <-time.After(adminDrain):
		}
	}
	return err
}

// start opens the listeners first, so that a port that is taken is found before anything
// else is made.
func (o *Options) start(ctx context.Context, logger hclog.Logger) (*running, error) {
	var programs, admin, proxies net.Listener
	var opened []net.Listener
	closeListeners := func() error {
		var failed []error
		for _, l := range opened {
			failed = append(failed, l.Close())
		}
		return errors.Join(failed...)
	}
	for _, one := range []struct {
		flag, address string
		to            *net.Listener
	}{
		{"--listen", o.file.Listen, &programs},
		{"--admin", o.file.Admin, &admin},
		{"--authorize", o.file.Authorize, &proxies},
	} {
		if one.address == "" {
			continue
		}
		l, err := netaddr.Listen(ctx, one.flag, one.address)
		if err != nil {
			return nil, errors.Join(err, closeListeners())
		}
		*one.to = l
		opened = append(opened, l)
	}
	r := &running{logger: logger, failed: make(chan error, 3)}
	certificate, err := o.certificate()
	if err != nil {
		return nil, errors.Join(err, closeListeners())
	}
	r.identity.Store(certificate)
	programs = r.secured(programs)
	if err := r.build(ctx, o); err != nil {
		return nil, errors.Join(err, closeListeners())
	}
	for _, warning := range append(o.file.Warnings, o.file.Stale(time.Now())...) {
		logger.Warn(warning)
	}
	r.listen("--listen", r.programs, programs)
	where := []any{"listen", programs.Addr()}
	if admin != nil {
		r.admin = r.newAdmin(logger)
		r.listen("--admin", r.admin, admin)
		where = append(where, "admin", admin.Addr())
	}
	if proxies != nil {
		r.authorizer = r.newAuthorizer(logger)
		r.listen("--authorize", r.authorizer, proxies)
		where = append(where, "authorize", proxies.Addr())
	}
	if o.file.Gateway.Shadow {
		logger.Warn("it is a shadow: everything is forwarded, and nobody is refused")
	}
	logger.Info("serving", append(where, "nodes", strings.Join(o.nodes(), ","))...)
	return r, nil
}

// build makes what answers. What was made is closed again where something fails.
func (r *running) build(ctx context.Context, o *Options) error {
	logger := slog.New(&handler{logger: r.logger})
	opened, err := o.openOwn(ctx, r.logger)
	if err != nil {
		return err
	}
	if r.assembled, err = o.assemble(opened, logger); err != nil { //nolint:contextcheck // it outlives the start
		return err
	}
	r.programs = &http.Server{
		Handler:           guarded(r.gateway, r.logger),
		ReadHeaderTimeout: headersWithin,
		IdleTimeout:       idleMax,
		MaxHeaderBytes:    headersMax,
		ConnState:         capped.States(connectionsMax),
		ErrorLog:          r.logger.Named("http").StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	return nil
}

// guarded bounds the time that a body takes, and logs a panic as what it is: what net/http complains of is mostly about
// connections. http.ErrAbortHandler is the end of an answer that can't be finished.
func guarded(next http.Handler, logger hclog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if err, is := cause.(error); !is || !errors.Is(err, http.ErrAbortHandler) {
				logger.Error("a request ended in a panic", "cause", cause, "stack", string(debug.Stack()))
			}
			panic(http.ErrAbortHandler)
		}()
		defer hurry(w, r, pauseMax, bodyWithin)()
		next.ServeHTTP(w, r)
	})
}

// assemble makes the gateway, what it asks, and where its alerts go. Nobody is asked yet. It takes
// the authority in this process over, where there is one.
func (o *Options) assemble(from *own, logger *slog.Logger) (*assembled, error) {
	// What can't be used was refused before.
	sinks, _ := o.alerts.Sinks()
	made := &assembled{own: from, alerts: newAlerts(o.file.Client, logger, sinks)}
	if err := o.connect(made, logger); err != nil {
		return nil, &exit.Error{Code: exit.Usage, Err: errors.Join(err, made.Close())}
	}
	return made, nil
}

// connect makes what a gateway consists of.
func (o *Options) connect(made *assembled, logger *slog.Logger) error {
	book, err := who.New(o.file.Who)
	if err != nil {
		return err
	}
	made.book.Store(book)
	if made.authority, err = o.dial(made.own, client.Config{
		Client: o.file.Client, Logger: logger, Alerts: []alert.Sink{alert.Func(made.alerts.Notify)},
	}); err != nil {
		return err
	}
	config := o.file.Gateway
	config.Authority, config.Who, config.Logger = made.authority, book, logger
	config.Told.OnSpendCap, config.Told.OnCleared = made.alerts.capped, made.alerts.cleared
	if made.gateway, err = gateway.New(config); err != nil || o.file.Authorize == "" {
		return err
	}
	made.gate, err = o.newGate(made)
	return err
}

// listen runs a server until it is closed, which is no failure.
func (r *running) listen(flag string, s *http.Server, l net.Listener) {
	r.listening.Go(func() {
		if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			r.failed <- fmt.Errorf("%s: %w", flag, err)
		}
	})
}

// stop stops, in this order: readiness and the port, so that nobody new comes; answers, which
// end by themselves or after drain; the gateway, which settles what they used; what it asks;
// health and metrics, which can be asked for until then. What nobody answers at the end is lost,
// as is said, and it was stopped all the same.
func (r *running) stop(drain time.Duration) {
	r.draining.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if r.authorizer != nil && r.authorizer.Shutdown(ctx) != nil {
		_ = r.authorizer.Close()
	}
	if err := r.programs.Shutdown(ctx); err != nil {
		r.logger.Warn("answers were cut off", "drain", drain)
		_ = r.programs.Close()
	}
	if err := r.Close(); err != nil {
		r.logger.Warn("not everything could be told at the end", "err", err)
	}
	if r.admin != nil {
		ctx, cancel := context.WithTimeout(context.Background(), adminDrain)
		defer cancel()
		if r.admin.Shutdown(ctx) != nil {
			_ = r.admin.Close()
		}
	}
	r.listening.Wait()
}
