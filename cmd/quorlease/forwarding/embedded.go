package forwarding

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/cmd/quorlease/alarm"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/netaddr"
	"github.com/quorlease/quorlease/cmd/quorlease/source"
	"github.com/quorlease/quorlease/embedded"
)

// Where the authority is.
const (
	inCluster = "cluster"
	inProcess = "embedded"
)

// whom is whom the gateway asks: nodes elsewhere, or one in its own process.
type whom struct {
	authority, data, limits, listen, http string
}

func (w *whom) define(flags *pflag.FlagSet) {
	flags.StringVar(&w.authority, "authority", inCluster,
		"`who` decides: cluster, the nodes at --endpoints; or embedded, this process alone")
	flags.StringVar(&w.data, "data", "", "`directory` for what an embedded authority must keep")
	flags.StringVar(&w.limits, "limits", "",
		"limits `file` of an embedded authority, all that counts; without it the limits that --data has")
	flags.StringVar(&w.listen, "authority-listen", "",
		"loopback `address` where other commands may ask an embedded authority; none without")
	flags.StringVar(&w.http, "authority-http", "",
		"loopback `address` of an embedded authority's page and metrics; none without")
}

// isEmbedded says whether the authority is in this process.
func (w *whom) isEmbedded() bool { return w.authority == inProcess }

// checkAuthority checks who decides, and the file of limits.
func (o *Options) checkAuthority(ctx context.Context) error {
	w := &o.whom
	if w.authority != inCluster && w.authority != inProcess {
		return exit.Usagef("--authority %q: must be %s or %s", w.authority, inCluster, inProcess)
	}
	if !w.isEmbedded() {
		// What the environment says may be meant for another command.
		for _, name := range []string{"data", "limits", "authority-listen", "authority-http"} {
			if o.flags.Lookup(name).Changed {
				return exit.Usagef("--%s is for --authority %s", name, inProcess)
			}
		}
		return nil
	}
	// As above: the environment's are those of other commands.
	endpoints := o.flags.Lookup("endpoints")
	switch {
	case endpoints != nil && endpoints.Changed:
		return exit.Usagef("--authority %s and --endpoints exclude one another: name one", inProcess)
	case o.file.Endpoints != nil:
		return exit.Usagef("--authority %s, and %s has endpoints: name one", inProcess, o.config)
	case w.data == "":
		return exit.Usagef("--authority %s needs --data with a directory", inProcess)
	}
	return errors.Join(
		checkLocal(ctx, "--authority-listen", w.listen), checkLocal(ctx, "--authority-http", w.http),
		source.Lines(embedded.CheckLimits(w.limits)))
}

// checkLocal checks an address that may be asked from this machine only, where there is one.
func checkLocal(ctx context.Context, flag, address string) error {
	if address == "" {
		return nil
	}
	if err := netaddr.Check(flag, address); err != nil {
		return err
	}
	return netaddr.CheckLoopback(ctx, flag, address)
}

// nodes are whom it asks, in words.
func (o *Options) nodes() []string {
	if o.isEmbedded() {
		return []string{"this process, in " + o.data}
	}
	return o.file.Endpoints
}

// own is the authority in this process, and what hears of its incidents. Nil: it is elsewhere.
type own struct {
	*embedded.Authority
	alarm *alarm.Alarm
}

// openOwn opens the authority in this process, where it is there.
func (o *Options) openOwn(ctx context.Context, logger hclog.Logger) (*own, error) {
	if !o.isEmbedded() {
		return nil, nil //nolint:nilnil // it is elsewhere
	}
	authority, err := embedded.Open(ctx, embedded.Config{
		Dir: o.data, Limits: o.limits, Listen: o.whom.listen, HTTP: o.http, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	opened := &own{Authority: authority}
	if len(o.alerts.Webhooks)+len(o.alerts.Alertmanagers) == 0 {
		return opened, nil
	}
	node := authority.Node()
	config := alarm.Config{
		Node: node.Status().Self, Events: node.Events(), Targets: o.alerts, Firing: node.Firing,
		Logger: logger.Named("alarm"),
	}
	if at := authority.HTTPAddr(); at != "" {
		config.Link = "http://" + at
	}
	//nolint:contextcheck // it goes on until the node has stopped
	if opened.alarm, err = alarm.Open(config); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// Close ends the node first, and then what hears of it.
func (w *own) Close() error {
	err := w.Authority.Close()
	if w.alarm != nil {
		w.alarm.Close()
	}
	return err
}

// stopped is closed when the node in this process has stopped. Nil: there is none.
func (w *own) stopped() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.Done()
}

// failure is why it stopped.
func (w *own) failure() error { return fmt.Errorf("the embedded authority stopped: %w", w.Err()) }

// dial makes a client of whoever decides. Where that is this process and it is not open nobody is
// reached, which is enough to check a configuration.
func (o *Options) dial(from *own, config client.Config) (*client.Client, error) {
	if from != nil {
		return from.Client(config)
	}
	config.Endpoints = o.file.Endpoints
	if o.isEmbedded() {
		config.Endpoints = []string{"127.0.0.1:1"}
		config.Dial = func(context.Context, string) (net.Conn, error) { return nil, errors.New("not open") }
	}
	return client.New(config)
}

// reloadLimits reads the limits again, all of them or nothing.
func (r *running) reloadLimits(ctx context.Context) {
	if r.own == nil {
		return
	}
	changes, err := r.own.Reload(ctx)
	if err != nil {
		r.logger.Error("the limits are not taken, and those of before count", "err", err)
		return
	}
	r.logger.Info("read the limits again", "changes", changes)
}
