package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestDocuments runs every shell command of the documents that a newcomer
// reads, in their order, and compares what they print with what the document
// shows. A command that it doesn't know fails the test.
//
// In a block marked `console` a line after "$ " is a command and what follows is
// what it prints; "…" stands for anything, alone on a line for any lines. A
// block marked `yaml` that begins with a comment naming a file becomes that
// file.
//
// Three things are not run as they stand: `git clone`, which needs a network;
// `make test`, which would run this test again; and `go run ./cmd/quorlease` and
// `./quorlease`, which become the program under test. The ports of the documents
// become free ones, and the process id after `kill` that of the node for which
// the document shows it, or else that of the leader.
//
// What asks for events, for figures or for the state of the cluster is asked again
// until it prints what the document shows: noticing and electing take their time.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"README.md", "docs/start.md", "docs/operating/alerts.md", "docs/operating/planning.md", "docs/operating/top.md",
		"docs/operating/scaling.md", "docs/operating/comparing.md", "docs/operating/how-it-scales.md",
		"docs/operating/gateway.md", "docs/operating/embedded.md", "docs/operating/migrating.md",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			d := newDocument(t)
			defer d.stop()
			steps := parseDocument(string(text))
			if len(steps) == 0 {
				t.Fatal("no command found")
			}
			for _, s := range steps {
				d.run(s)
			}
		})
	}
}

// docStep is one command with what it prints, or one file.
type docStep struct {
	line          int
	command, want string
	file, content string
}

func parseDocument(text string) (steps []docStep) {
	kind := ""
	var block []string
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && kind == "":
			kind, block = fence+" ", nil
		case isFence:
			steps = append(steps, parseBlock(strings.TrimSpace(kind), block, i-len(block)+1)...)
			kind = ""
		case kind != "":
			block = append(block, line)
		}
	}
	return steps
}

func parseBlock(kind string, block []string, first int) (steps []docStep) {
	switch kind {
	case "yaml":
		name, ok := strings.CutPrefix(block[0], "# ")
		if ok && strings.HasSuffix(name, ".yaml") && !strings.Contains(name, " ") {
			steps = append(steps, docStep{line: first, file: name, content: strings.Join(block, "\n") + "\n"})
		}
	case "console":
		for i, line := range block {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				steps = append(steps, docStep{line: first + i, command: command})
			} else if len(steps) > 0 {
				steps[len(steps)-1].want += line + "\n"
			}
		}
	}
	return steps
}

// document is the state of the terminals in which a document is typed.
type document struct {
	t    *testing.T
	dir  string
	env  []string
	port map[string]string
	// running are `dev` or `serve`, in the order of starting; started counts them
	// from the beginning.
	running []*terminal
	started int
	// shown are the nodes' names by the process ids that the document shows.
	shown map[string]string
}

func newDocument(t *testing.T) *document {
	t.Helper()
	d := &document{t: t, dir: t.TempDir(), env: os.Environ(), port: map[string]string{}, shown: map[string]string{}}
	values := map[string]string{}
	if err := ownPorts(func(name, value string) {
		values[name] = value
		d.env = append(d.env, name+"="+value)
	}); err != nil {
		t.Fatal(err)
	}
	for kind, base := range map[string]int{"G": 7101, "P": 7201, "H": 7301} {
		for n := range 4 {
			d.port[strconv.Itoa(base+n)] = values[fmt.Sprint(kind, n+1)]
		}
	}
	d.port["7401"], d.port["7402"], d.port["7501"] = values["G5"], values["H5"], values["P5"]
	d.env = append(d.env, "QUORLEASE_LISTEN=127.0.0.1:"+values["G5"])
	// A gateway's file names them; no provider is asked.
	for _, provider := range []string{"OPENAI", "AZURE_OPENAI", "ANTHROPIC", "GROQ", "GEMINI", "BEDROCK"} {
		d.env = append(d.env, provider+"_API_KEY=a-key")
	}
	return d
}

var documentPort = regexp.MustCompile(`127\.0\.0\.1:7[12345]0[1234]\b`)

// translate makes a command of a document one that can be run here.
func (d *document) translate(command string) string {
	for _, form := range []string{"go run ./cmd/quorlease", "./quorlease"} {
		if rest, ok := strings.CutPrefix(command, form+" "); ok {
			command = "quorlease " + rest
		}
	}
	return documentPort.ReplaceAllStringFunc(command, func(addr string) string {
		host, port, _ := strings.Cut(addr, ":")
		return host + ":" + d.port[port]
	})
}

func (d *document) run(s docStep) {
	d.t.Helper()
	if s.file != "" {
		if err := os.WriteFile(filepath.Join(d.dir, s.file), []byte(d.translate(s.content)), 0o600); err != nil {
			d.t.Fatal(err)
		}
		return
	}
	command := d.translate(s.command)
	words := strings.Fields(command)
	switch {
	case strings.HasPrefix(command, "git clone https://github.com/quorlease/quorlease"):
	case command == "go build -o quorlease ./cmd/quorlease":
		d.check(s, d.shell("cd "+shellQuote(repositoryRoot(d.t))+" && go build -o "+
			shellQuote(filepath.Join(d.dir, "built"))+" ./cmd/quorlease"))
	case words[0] == "make" && len(words) == 2:
		d.check(s, d.shell("make -C "+shellQuote(repositoryRoot(d.t))+" -n "+words[1]+" >/dev/null"))
	case words[0] == "kill" && len(words) == 3:
		d.check(s, d.shell(strings.Join(append(words[:2], strconv.Itoa(d.pidFor(words[2]))), " ")))
	case words[0] == "quorlease" && words[1] == "dev":
		d.interrupt()
		for _, row := range nodeRow.FindAllStringSubmatch(s.want, -1) {
			d.shown[row[2]] = row[1]
		}
		d.check(s, d.background(command, "Ctrl-C stops all of them."))
	case strings.HasPrefix(command, "quorlease events"), strings.HasPrefix(command, "quorlease cluster status"),
		strings.HasPrefix(command, "quorlease clients"), strings.Contains(command, "/metrics | grep"),
		strings.HasPrefix(command, "quorlease top"), strings.HasPrefix(command, "quorlease gateway report"):
		var got result
		pattern := patternOf(s.want)
		eventually(func() bool {
			got = d.shell(command)
			return pattern.MatchString(normal(d.asShown(got.text)))
		})
		d.check(s, got)
	case strings.HasPrefix(command, "quorlease bench provider"):
		d.check(s, d.background(command, "Ctrl-C stops it."))
	case words[0] == "quorlease" && words[1] == "gateway" && !strings.Contains(command, "--check"):
		d.check(s, d.background(command, "serving: "))
	case words[0] == "quorlease" && words[1] == "serve":
		if slices.ContainsFunc(d.running, func(r *terminal) bool { return strings.Contains(r.cmd.Args[2], " dev") }) {
			d.interrupt()
		}
		d.check(s, d.background(command, "serving: "))
	case words[0] == "quorlease" || words[0] == "curl":
		d.check(s, d.shell(command))
	default:
		d.t.Fatalf("line %d: %q: this test does not know the command", s.line, s.command)
	}
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func repositoryRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// result is what a command printed, on both streams, and its exit code.
type result struct {
	text string
	code int
}

func (d *document) shell(command string) result {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Env = d.dir, d.env
	out, err := cmd.CombinedOutput()
	if err != nil && exitCode(err) < 0 {
		d.t.Fatalf("%s: %v", command, err)
	}
	return result{string(out), exitCode(err)}
}

func (d *document) stop() {
	d.t.Helper()
	d.interrupt()
}

// nodeRow is a node in what `dev` prints, with its process id.
var nodeRow = regexp.MustCompile(`(?m)^(n\d) +(\d+) +(?:leader|follower) `)

// pidFor is the process id that `dev` printed for the node that has this one in
// the document, or for the leader.
func (d *document) pidFor(shown string) int {
	d.t.Helper()
	if name := d.shown[shown]; name != "" {
		return d.pidOf(name)
	}
	var status struct{ Leader string }
	if err := json.Unmarshal([]byte(d.shell("quorlease cluster status -o json").text), &status); err != nil {
		d.t.Fatal(err)
	}
	return d.pidOf(status.Leader)
}

// pidOf is the process id that `dev` printed for a node.
func (d *document) pidOf(name string) int {
	d.t.Helper()
	for _, r := range d.running {
		for _, row := range nodeRow.FindAllStringSubmatch(readIfAny(r.output), -1) {
			if row[1] != name {
				continue
			}
			pid, err := strconv.Atoi(row[2])
			if err != nil {
				d.t.Fatal(err)
			}
			return pid
		}
	}
	d.t.Fatalf("dev printed no process id for %q", name)
	return 0
}

// asShown puts the document's ports for those of this test.
func (d *document) asShown(text string) string {
	for shown, real := range d.port {
		text = strings.ReplaceAll(text, "127.0.0.1:"+real, "127.0.0.1:"+shown)
	}
	return text
}

// check compares what a command printed with what the document shows, and its
// exit code with what goes with that.
func (d *document) check(s docStep, got result) {
	d.t.Helper()
	if want := wantedCode(s); got.code != want {
		d.t.Errorf("line %d: %q: exit code %d, want %d\n%s", s.line, s.command, got.code, want, got.text)
	}
	text := d.asShown(got.text)
	if pattern := patternOf(s.want); !pattern.MatchString(normal(text)) {
		d.t.Errorf("line %d: %q printed\n%s\nthe document shows\n%s", s.line, s.command, text, s.want)
	}
}

func wantedCode(s docStep) int {
	switch {
	case strings.HasPrefix(s.want, "DENIED"):
		return 3
	case strings.HasPrefix(s.want, "quorlease: "), strings.Contains(s.command, "limits diff") && s.want != "":
		return 1
	case strings.Contains(s.command, "doctor") && !strings.Contains(s.want, "nothing found"):
		return 1
	default:
		return 0
	}
}

// varying is what differs from run to run; both sides lose it.
var varying = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`[ \t]+`), " "},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "ID"},
	{regexp.MustCompile(`/\S*quorlease-dev-[^ ,\n]*`), "DIRECTORY"},
	{regexp.MustCompile(`leader n\d`), "leader NODE"},
	{regexp.MustCompile(`(?m)^(n\d) \d+ (leader|follower) `), "$1 PID ROLE "},
	{regexp.MustCompile(`(?m)^(n\d) VOTER (yes|no) (.*) \S+$`), "$1 VOTER HEALTH $3 VERSION"},
	{regexp.MustCompile(`(?m)^term \d+$`), "term N"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|s|m\d+(\.\d+)?s|m)\b`), "DURATION"},
	{regexp.MustCompile(`RATE DURATION \d+`), "RATE DURATION N"},
}

func normal(text string) string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.instead)
	}
	return strings.TrimRight(text, "\n")
}

// patternOf makes a pattern of what a document shows.
func patternOf(want string) *regexp.Regexp {
	var pattern bytes.Buffer
	pattern.WriteString(`^`)
	for line := range strings.SplitSeq(normal(want), "\n") {
		if line == "…" {
			pattern.WriteString(`(?:.*\n)*`)
			continue
		}
		parts := strings.Split(line, "…")
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(part)
		}
		pattern.WriteString(strings.Join(parts, `.*`) + `\n`)
	}
	// The last line may lack its end, and lines that stand for any may be none.
	text := pattern.String()
	if rest, ok := strings.CutSuffix(text, `\n(?:.*\n)*`); ok {
		text = rest + `(?:\n.*)*`
	} else if rest, ok := strings.CutSuffix(text, `\n`); ok {
		text = rest + `\n?`
	} else {
		text += `.*`
	}
	return regexp.MustCompile(text + `$`)
}
