package forwarding

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile/written"
	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

// modelsShown is how many models of a deployment are named.
const modelsShown = 5

// Report writes what Run would do, after it has made everything but the ports. Complete was
// called before.
func (o *Options) Report(w io.Writer, now time.Time) error {
	if _, err := o.certificate(); err != nil {
		return err
	}
	made, err := o.assemble(nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := made.Close(); err != nil {
		return err
	}
	f := o.file
	transport := "plaintext"
	if f.Certificate != "" {
		transport = "TLS with " + f.Certificate
	}
	facts := [][2]string{
		{"listen", f.Listen + ", " + transport},
		{"admin", show.Dash(f.Admin)},
		{"nodes", strings.Join(o.nodes(), ", ")},
		{"client", f.Client},
		{"asks", o.asks()},
	}
	if f.Gateway.Shadow {
		facts = append(facts, [2]string{"shadow", "forwards everything, and refuses nobody"})
	}
	o.facts(w, facts)
	rows := make([][]string, 0, len(f.Gateway.Deployments))
	for i := range f.Gateway.Deployments {
		rows = append(rows, o.deployment(&f.Gateway.Deployments[i]))
	}
	fmt.Fprintln(w)
	show.Table(w, "DEPLOYMENT PROVIDER UPSTREAM KEY MODELS", rows)
	if len(f.Gateway.Classes) > 0 {
		fmt.Fprintln(w)
		show.Table(w, "CLASS MAX-WAIT CLOSED", classes(f.Gateway.Classes))
	}
	if len(f.Who.Clients) > 0 {
		fmt.Fprintln(w)
		show.Table(w, "CLIENT TENANT KEYS CLASSES MAY", clients(f.Who.Clients))
	}
	for _, warning := range append(f.Warnings, f.Stale(now)...) {
		fmt.Fprintf(w, "\nwarning: %s\n", exit.Printable(warning))
	}
	return nil
}

func (o *Options) facts(w io.Writer, rows [][2]string) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(tw, "%s\t%s\n", row[0], exit.Printable(row[1]))
	}
	// The writer behind it is a buffer, which does not fail.
	_ = tw.Flush()
}

// asks says who may.
func (o *Options) asks() string {
	switch n, w := len(o.file.Who.Clients), o.file.Who; {
	case w.Unidentified == who.Warn || w.Unidentified == who.Shadow:
		return fmt.Sprintf("anybody (identify.missing: %s); known by their keys: %d", w.Unidentified, n)
	case n == 0:
		return "programs on this machine, by what they call themselves"
	default:
		return fmt.Sprintf("who has a key; known by their keys: %d", n)
	}
}

func (o *Options) deployment(d *gateway.Deployment) []string {
	key, models := "the client's", "all others"
	switch {
	case d.Key != "":
		key = "its own"
	case len(o.file.Who.Clients) > 0:
		// What clients identify with is not passed on.
		key = "none"
	}
	if n := len(d.Models); n > modelsShown {
		models = strings.Join(d.Models[:modelsShown], ",") + fmt.Sprintf(",… (%d)", n)
	} else if n > 0 {
		models = strings.Join(d.Models, ",")
	}
	return []string{d.Name, d.Provider.Name, d.Upstream.Redacted(), key, models}
}

func classes(all []gateway.Class) (rows [][]string) {
	for _, c := range all {
		wait, closed := "default", "shed"
		switch {
		case c.MaxWait < 0:
			wait = "none"
		case c.MaxWait > 0:
			wait = written.FormatDuration(c.MaxWait)
		}
		if c.Closed == circuit.Defer {
			closed = "defer"
		}
		rows = append(rows, []string{c.Name, wait, closed})
	}
	return rows
}

func clients(all []who.Client) (rows [][]string) {
	for i := range all {
		c := &all[i]
		may := strings.Join(c.May, ",")
		if c.Any {
			may = "any name"
		}
		rows = append(rows, []string{
			c.Name, c.Tenant, strconv.Itoa(len(c.Keys)), strings.Join(c.Classes, ","), may,
		})
	}
	return rows
}
