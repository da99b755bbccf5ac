// Package forwarding runs a gateway: it puts together what the command line, the
// environment and a file say, listens, and stops without cutting anybody off.
package forwarding

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/file"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/cmd/quorlease/alarm"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/netaddr"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
	"github.com/quorlease/quorlease/cmd/quorlease/source"
)

// Use, Short, Long and Example are the command's help.
const (
	Use   = "gateway (--config FILE | --upstream URL)"
	Short = "Stand between programs and a provider, and ask before forwarding"
	Long  = `Run a gateway until it is told to stop (SIGINT, SIGTERM): programs send it what
they would send to a provider of language models, it asks the nodes (--endpoints),
and it forwards what is granted. It logs to standard error.

--upstream alone is enough to try it: one deployment, for programs on this machine,
which say with the header x-client-id who they are. A file (--config) says
everything else, and who may ask from elsewhere; where flags or the environment say
something that it says too, they count. It has no keys, and only names of files and
variables that do; names of files are relative to its own directory. SIGHUP makes
it read the file again: all of it counts then, or nothing.

--authority embedded decides in this process and asks no nodes: the limits are those
of --limits, which SIGHUP makes it read again too, and what must survive is in --data.

Where no node answers it lets through what each limit says for that case, and
raises an alert, in its log and at --alert-webhook and --alertmanager. Beyond
loopback it wants clients with keys, and TLS or --insecure.

It collects garbage when the heap has grown fivefold, or to 2 GiB; GOGC and
GOMEMLIMIT in the environment say otherwise.

With --shadow it stands before a limiter that is there already: it forwards everything
at once and as it comes, refuses nobody, and reports what it would have refused
(gateway report). What it lets pass is charged all the same: give it limits of its own.

--check says what it would do, and opens no port. Exit codes: 0 told to stop, or
nothing wrong, 1 it could not start, 2 a setting is wrong, 5 its embedded authority
stopped to protect its data (look at it before you start it again).`
	Example = `  quorlease gateway --upstream https://api.openai.com
  quorlease gateway --listen 127.0.0.1:7401 --upstream http://127.0.0.1:8000 --provider compatible
  quorlease gateway --config gateway.yaml --check
  quorlease gateway --config gateway.yaml --admin 127.0.0.1:7402
  quorlease gateway --upstream http://127.0.0.1:4000 --shadow --admin 127.0.0.1:7402
  quorlease gateway --config gateway.yaml --authority embedded --data ./state --limits limits.yaml`
)

const (
	listenDefault = "127.0.0.1:7401"
	// clientDefault is what a gateway is called at the authority.
	clientDefault = "gateway"
	drainDefault  = 30 * time.Second
	drainMax      = time.Hour
	// secretFileMax is how much is read of a file with keys, in bytes.
	secretFileMax = 128 << 10
)

// Options are the settings that are no part of the file.
type Options struct {
	flags *pflag.FlagSet

	config, listen, admin, authorize, upstream, provider string

	drain    time.Duration
	insecure bool
	// shadow: forward everything, and refuse nobody.
	shadow bool
	// Check: say what would be done.
	Check  bool
	alerts alarm.Targets
	// Endpoints are nodes, and EndpointsSet says that somebody named them.
	Endpoints    []string
	EndpointsSet bool

	whom
	file *file.File
}

// Define puts the settings into a set of flags.
func (o *Options) Define(flags *pflag.FlagSet) {
	o.flags = flags
	flags.StringVarP(&o.config, "config", "c", "", "YAML `file` that says what it stands in front of, and for whom")
	flags.StringVar(&o.listen, "listen", listenDefault, "`address` to listen on for programs")
	flags.StringVar(&o.admin, "admin", "",
		"`address` to listen on for /healthz, /readyz, /metrics, /shadow and /cleared; none without")
	flags.StringVar(&o.authorize, "authorize", "",
		"`address` to listen on for proxies that ask before they forward by themselves; none without")
	flags.StringVar(&o.upstream, "upstream", "", "`URL` of a provider, instead of a file")
	flags.StringVar(&o.provider, "provider", "",
		"how it answers: openai, azure, anthropic, gemini, vertex, bedrock or compatible; else as its `name` suggests")
	o.define(flags)
	o.alerts.Define(flags)
	flags.DurationVar(&o.drain, "drain", drainDefault, "how long answers may take to end when it is told to stop")
	flags.BoolVar(&o.insecure, "insecure", false, "accept plaintext beyond loopback")
	flags.BoolVar(&o.shadow, "shadow", false,
		"forward everything as it comes, refuse nobody, and report what would have been refused")
	flags.BoolVar(&o.Check, "check", false, "say what it would do, and end")
}

// Complete reads the file and checks everything that can be checked before anything is
// opened. It reports every problem.
func (o *Options) Complete(ctx context.Context) (err error) {
	if o.drain < 0 || o.drain > drainMax {
		return exit.Usagef("--drain %v is outside 0s to %v", o.drain, drainMax)
	}
	if o.file, err = o.read(); err != nil {
		return &exit.Error{Code: exit.Usage, Err: source.Lines(err)}
	}
	badAuthority := o.checkAuthority(ctx)
	o.override()
	_, badTarget := o.alerts.Sinks()
	if err := errors.Join(o.checkListen(ctx), o.checkBeside(ctx, "--admin", o.file.Admin),
		o.checkBeside(ctx, "--authorize", o.file.Authorize), o.checkApart(), badAuthority, badTarget); err != nil {
		return &exit.Error{Code: exit.Usage, Err: err}
	}
	return nil
}

// read is the file, or what stands for it.
func (o *Options) read() (*file.File, error) {
	switch {
	case o.config == "" && o.upstream == "":
		return nil, errors.New("--config or --upstream is missing: https://api.openai.com, for example")
	case o.config == "":
		f, err := file.Zero(o.upstream, o.provider)
		if err != nil {
			return nil, fmt.Errorf("--%w", err)
		}
		return f, nil
	case o.upstream != "" || o.provider != "":
		return nil, errors.New("--upstream and --provider are for a gateway without --config, which says both")
	}
	data, err := readAtMost(o.config, file.Max)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	return file.Parse(o.config, data, file.Secrets{
		ReadFile:  func(name string) ([]byte, error) { return readAtMost(o.beside(name), secretFileMax) },
		LookupEnv: os.LookupEnv,
	})
}

// beside is where a file is that the configuration names.
func (o *Options) beside(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(o.config), name)
}

// readAtMost reads a file and one byte more than there may be, so that what is too long is
// refused instead of cut.
func readAtMost(name string, most int64) ([]byte, error) {
	opened, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	data, err := io.ReadAll(io.LimitReader(opened, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("read %s: it has more than %d bytes", name, most)
	}
	return data, err
}

// override puts in what was said elsewhere, and the defaults.
func (o *Options) override() {
	f := o.file
	if f.Listen == "" || setting.IsSet(o.flags.Lookup("listen")) {
		f.Listen = o.listen
	}
	if f.Admin == "" || setting.IsSet(o.flags.Lookup("admin")) {
		f.Admin = o.admin
	}
	if f.Authorize == "" || setting.IsSet(o.flags.Lookup("authorize")) {
		f.Authorize = o.authorize
	}
	if setting.IsSet(o.flags.Lookup("shadow")) {
		f.Gateway.Shadow = o.shadow
	}
	if f.Endpoints == nil || o.EndpointsSet {
		f.Endpoints = o.Endpoints
	}
	if f.Client == "" {
		f.Client = clientDefault
	}
	f.Certificate, f.CertificateKey = o.beside(f.Certificate), o.beside(f.CertificateKey)
}

// checkShadow checks that nobody gets by a shadow what is somebody else's: it refuses nobody, a web
// page on this machine neither, and does not read every body, so that it can't tell by a model where
// a client's key belongs.
func checkShadow(all []gateway.Deployment) error {
	if len(all) > 1 {
		return exit.Usagef("shadow: %d deployments: a shadow stands in front of one, where all requests go", len(all))
	}
	for i := range all {
		d := &all[i]
		named := slices.ContainsFunc(who.Credentials(), func(name string) bool { return d.Header.Get(name) != "" })
		if d.Key != "" || named {
			return exit.Usagef("shadow: it refuses nobody: whoever asks would use the key of deployments[%d] %q. Take it out: "+
				"clients go on sending their own", i, d.Name)
		}
	}
	return nil
}

// checkListen checks where programs ask. Without clients nobody may from elsewhere, unless
// the file lets in whoever is not identified.
func (o *Options) checkListen(ctx context.Context) error {
	f := o.file
	if err := netaddr.Check("--listen", f.Listen); err != nil {
		return err
	}
	beyond := netaddr.CheckLoopback(ctx, "--listen", f.Listen)
	f.Who.Loopback = beyond == nil && len(f.Who.Clients) == 0
	if f.Gateway.Shadow {
		if err := checkShadow(f.Gateway.Deployments); err != nil {
			return err
		}
	}
	strict := f.Who.Unidentified == who.Default || f.Who.Unidentified == who.Enforce
	switch {
	case beyond == nil:
		return nil
	case len(f.Who.Clients) == 0 && strict:
		return exit.Usagef("--listen %s is not on loopback, and no clients are configured: "+
			"name them and their keys in a file (--config), or take 127.0.0.1", f.Listen)
	case f.Certificate == "" && !o.insecure:
		return beyond
	}
	return nil
}

// checkBeside checks where others than programs ask.
func (o *Options) checkBeside(ctx context.Context, flag, address string) error {
	if address == "" {
		return nil
	}
	if err := netaddr.Check(flag, address); err != nil {
		return err
	}
	if isSame(address, o.file.Listen) {
		return exit.Usagef("%s %s is where programs ask (--listen)", flag, address)
	}
	if o.insecure {
		return nil
	}
	return netaddr.CheckLoopback(ctx, flag, address)
}

// checkApart checks that proxies ask elsewhere than who runs the gateway.
func (o *Options) checkApart() error {
	if f := o.file; f.Admin != "" && isSame(f.Admin, f.Authorize) {
		return exit.Usagef("--authorize %s is where figures are asked for (--admin)", f.Authorize)
	}
	return nil
}

// isSame says whether two addresses are one. Two of port 0 are different ones.
func isSame(a, b string) bool { return a == b && !strings.HasSuffix(a, ":0") }
