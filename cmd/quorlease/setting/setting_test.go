package setting

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// values are the settings of a made-up command.
type values struct {
	id      string
	join    []string
	expect  int
	plain   bool
	timeout time.Duration
	config  string
}

func (v *values) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.StringVar(&v.id, "id", "none", "")
	flags.StringSliceVar(&v.join, "join", []string{"default:1"}, "")
	flags.IntVar(&v.expect, "bootstrap-expect", 0, "")
	flags.BoolVar(&v.plain, "insecure", false, "")
	flags.DurationVar(&v.timeout, "timeout", time.Second, "")
	flags.StringVar(&v.config, "config", "", "")
	FromEnvironment(flags)
	Range(flags, "bootstrap-expect", "0 to 9")
	flags.String("command-line-only", "", "")
	return flags
}

func lookupIn(environment map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	}
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	var v values
	flags := v.flags()
	if err := flags.Parse([]string{"--id", "from-flag"}); err != nil {
		t.Fatal(err)
	}
	if err := Environment(flags, lookupIn(map[string]string{
		"QUORLEASE_ID": "from-environment", "QUORLEASE_JOIN": "a:1,b:2", "QUORLEASE_TIMEOUT": "",
		"QUORLEASE_COMMAND_LINE_ONLY": "x",
	})); err != nil {
		t.Fatal(err)
	}
	file := "id: from-file\njoin: [c:3]\nbootstrap-expect: 3\ninsecure: true\n"
	if err := File(flags, "c.yaml", []byte(file)); err != nil {
		t.Fatal(err)
	}
	if v.id != "from-flag" {
		t.Errorf("id %q: the command line must win", v.id)
	}
	if got := strings.Join(v.join, " "); got != "a:1 b:2" {
		t.Errorf("join %q: the environment must win over the file", got)
	}
	if v.expect != 3 || !v.plain {
		t.Errorf("bootstrap-expect %d, insecure %t: the file must win over the default", v.expect, v.plain)
	}
	other := flags.Lookup("command-line-only").Value.String()
	if v.timeout != time.Second || other != "" {
		t.Errorf("timeout %s, command-line-only %q: must keep the default", v.timeout, other)
	}
}

func TestFileKinds(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"join: [a:1, \"b:2\"]\n":          "a:1 b:2",
		"join:\n  - a:1\n  - b:2\n":       "a:1 b:2",
		"join: a:1,b:2\n":                 "a:1 b:2",
		"# nothing but a comment\n":       "default:1",
		"":                                "default:1",
		"---\njoin: 'a:1'\n# the end\n":   "a:1",
		"id: n1 # a comment\njoin: x:1\n": "x:1",
	} {
		var v values
		if err := File(v.flags(), "c.yaml", []byte(file)); err != nil {
			t.Errorf("%q: %v", file, err)
		}
		if got := strings.Join(v.join, " "); got != want {
			t.Errorf("%q: join %q, want %q", file, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"id: n1\nbootstrap_expect: 3\n": `c.yaml:2:1: unknown setting "bootstrap_expect"`,
		"config: other.yaml\n":          `c.yaml:1:1: unknown setting "config"`,
		"command-line-only: x\n":        `unknown setting "command-line-only"`,
		"bootstrap-expect: three\n":     `c.yaml:1:19: bootstrap-expect: "three": not a whole number from 0 to 9`,
		"id: {a: b}\n":                  `a single value or a list is expected`,
		"- id\n":                        `a mapping of settings is expected`,
		"id: n1\nid: n2\n":              `"id" already defined`,
		"id: [\n":                       `c.yaml: `,
	} {
		var v values
		err := File(v.flags(), "c.yaml", []byte(file))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want one line with %q", file, err, want)
		}
	}
	var v values
	err := Environment(v.flags(), lookupIn(map[string]string{"QUORLEASE_BOOTSTRAP_EXPECT": "three"}))
	if err == nil || !strings.HasPrefix(err.Error(), `QUORLEASE_BOOTSTRAP_EXPECT="three": `) {
		t.Errorf("got %v, want an error that names the variable", err)
	}
}

// What the command line gets wrong is said with the flag, the value and what it
// may be, and not in the words of the library that reads numbers.
func TestFlagError(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--bootstrap-expect=1.5": `--bootstrap-expect "1.5": not a whole number from 0 to 9`,
		"--attempt=-1":           `--attempt "-1": not a whole number from 0 to 4294967295`,
		"--attempt=4294967296":   `--attempt "4294967296": not a whole number from 0 to 4294967295`,
		"--from=-1":              `--from "-1": not a whole number from 0 to 18446744073709551615`,
		"--insecure=perhaps":     `--insecure "perhaps": neither true nor false`,
		"--timeout=soon":         `--timeout "soon": not a duration like 500ms, 2s or 1m30s`,
		"--nope":                 `unknown flag: --nope`,
	} {
		var v values
		flags := v.flags()
		flags.Uint32("attempt", 0, "")
		flags.Uint64("from", 0, "")
		if got := FlagError(flags.Parse([]string{args})); got != want {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
	}
}
