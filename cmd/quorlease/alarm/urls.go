package alarm

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
)

// Targets say where alerts go. They are settings.
type Targets struct {
	Webhooks, Alertmanagers URLs
}

// The flags.
const (
	webhookFlag      = "alert-webhook"
	alertmanagerFlag = "alertmanager"
)

// Define makes the flags of the targets.
func (t *Targets) Define(flags *pflag.FlagSet) {
	flags.Var(&t.Webhooks, webhookFlag, "post alerts as JSON to these `urls`")
	flags.Var(&t.Alertmanagers, alertmanagerFlag, "post alerts to the Alertmanagers at these `urls`")
}

// URLs is a flag that may be given several times, or once with commas between. It
// takes anything, so that no error about the command line repeats what is secret
// in a URL; Sinks says what is wrong.
type URLs []string

// Set adds URLs.
func (u *URLs) Set(value string) error {
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part != "" {
			*u = append(*u, part)
		}
	}
	return nil
}

// String is what Set takes.
func (u *URLs) String() string { return strings.Join(*u, ",") }

// Type is what a flag of this kind is called.
func (*URLs) Type() string { return "urls" }

// Environment passes the targets on to a node by its environment: unlike its
// arguments others can't read that, and a URL may hold a secret.
func (t Targets) Environment() (variables []string) {
	if len(t.Webhooks) > 0 {
		variables = append(variables, setting.EnvironmentName(webhookFlag)+"="+t.Webhooks.String())
	}
	if len(t.Alertmanagers) > 0 {
		variables = append(variables, setting.EnvironmentName(alertmanagerFlag)+"="+t.Alertmanagers.String())
	}
	return variables
}

// Sinks opens the targets. Its errors name flag and value, without the secrets.
func (t Targets) Sinks() (sinks []alert.Sink, err error) {
	for _, kind := range []struct {
		flag string
		urls URLs
		open func(string) (alert.Sink, error)
	}{
		{webhookFlag, t.Webhooks, alert.Webhook},
		{alertmanagerFlag, t.Alertmanagers, alert.Alertmanager},
	} {
		for _, u := range kind.urls {
			sink, err := kind.open(u)
			if err != nil {
				return nil, exit.Usagef("--%s: %w", kind.flag, err)
			}
			sinks = append(sinks, sink)
		}
	}
	return sinks, nil
}
