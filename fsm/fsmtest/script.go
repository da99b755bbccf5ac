package fsmtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// RunScripts runs every .txt file of a directory as a subtest of the file's name.
// With rewrite, what comes out becomes what is expected; read the difference
// before you commit it.
//
// A script is blocks between blank lines. A line that begins with # is prose.
// Otherwise the first line of a block is a command and the lines after it are its
// input, up to a line ---- after which comes the expected output. Before the
// command there may be a line "at 1.5s", which is the stamp from there on. Every
// command that changes something is one log entry; see commands for what there is.
// A second machine applies the same and is saved and restored after every
// entry: it has to agree (G9).
func RunScripts(t *testing.T, dir string, rewrite bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in %s: %v", dir, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &script{Driver: WithShadow(t), file: file}
			out := s.run(string(source), rewrite)
			if !rewrite || out == string(source) {
				return
			}
			if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// script is one file being run.
type script struct {
	*Driver
	file string
	now  time.Duration
}

// block is one command of a script.
type block struct {
	command string
	input   []string
	want    []string
	hasWant bool
	text    []string
}

const separator = "----"

// run runs the blocks and returns the script as it came out.
func (s *script) run(source string, rewrite bool) string {
	s.T.Helper()
	var out []string
	for i, text := range strings.Split(strings.TrimRight(source, "\n"), "\n\n") {
		b := s.parse(text)
		if b.command == "" {
			out = append(out, text)
			continue
		}
		got := s.execute(b)
		if want := strings.Join(b.want, "\n"); got != want && !rewrite {
			s.T.Errorf("%s, block %d at %v: %s\ngot:\n%s\nwant:\n%s", s.file, i+1, s.now, b.command, got, want)
		}
		if got != "" {
			out = append(out, strings.Join(append(b.text, separator, got), "\n"))
		} else {
			out = append(out, strings.Join(b.text, "\n"))
		}
	}
	return strings.Join(out, "\n\n") + "\n"
}

func (s *script) parse(text string) block {
	s.T.Helper()
	var b block
	for _, line := range strings.Split(text, "\n") {
		switch {
		case b.hasWant:
			b.want = append(b.want, line)
			continue
		case line == separator:
			b.hasWant = true
			continue
		case strings.HasPrefix(line, "#") || line == "":
		case strings.HasPrefix(line, "at ") && b.command == "":
			at, err := time.ParseDuration(strings.TrimPrefix(line, "at "))
			if err != nil {
				s.T.Fatalf("%s: %s: %v", s.file, line, err)
			}
			s.now = at
		case b.command == "":
			b.command = line
		default:
			b.input = append(b.input, line)
		}
		b.text = append(b.text, line)
	}
	return b
}

// execute runs one command and returns what there is to see.
func (s *script) execute(b block) string {
	s.T.Helper()
	words := strings.Fields(b.command)
	run, known := commands()[words[0]]
	if !known {
		s.T.Fatalf("%s: %q is no command", s.file, b.command)
	}
	s.Effects = nil
	lines := run(s, words[1:], b.input)
	for _, e := range s.Effects {
		lines = append(lines, showEffect(e))
	}
	return strings.Join(lines, "\n")
}
