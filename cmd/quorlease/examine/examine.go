// Package examine turns a command line into an examination of a limits file, and
// what was found into text or JSON.
package examine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/api/limitsfile"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/planning"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
	"github.com/quorlease/quorlease/cmd/quorlease/source"
	"github.com/quorlease/quorlease/doctor"
)

// Long and Example are the command's help.
const (
	Long = `Look through a limits file for what goes wrong later, without asking a node: no
headroom, shares that don't add up, numbers that nobody has looked up for 90
days, and, from the section clients, callers that come back in step, try again
at every layer, ignore the waits that they are told, go elsewhere on the first
refusal, do the same work twice, or watch nothing but errors.

Each finding has a line, a code, a severity (critical, warning, note), and what
to do. A file that would be refused has its mistakes as findings.

Exit code 0: nothing was found, 1: something was, 2: error.`
	Example = `  quorlease doctor -f limits.yaml
  quorlease doctor -f limits.yaml --error 8% -o json`
)

// Options are the flags of `doctor`.
type Options struct {
	file, now, wrong string
}

// Define adds the flags.
func (o *Options) Define(flags *pflag.FlagSet) {
	flags.StringVarP(&o.file, "file", "f", "", "limits `file`; - is standard input")
	flags.StringVar(&o.now, "now", "", "the `day` on which to examine, like 2026-11-30; else today")
	flags.StringVar(&o.wrong, "error", "", "measured error of estimates, its 99th percentile, as a `share`")
}

// Answer is what the command prints, and whether anything was found. Every error
// has exit code 2.
func (o *Options) Answer(stdin io.Reader, asJSON bool) (answer []byte, found bool, err error) {
	name, list, err := o.examine(stdin)
	if err != nil {
		return nil, false, &exit.Error{Code: exit.Usage, Err: err}
	}
	var out bytes.Buffer
	if asJSON {
		err = inJSON(&out, name, list)
	} else {
		text(&out, name, list)
	}
	return out.Bytes(), len(list) > 0, err
}

func (o *Options) examine(stdin io.Reader) (name string, found []doctor.Finding, err error) {
	options := doctor.Options{Now: time.Now()}
	if o.now != "" {
		if options.Now, err = time.Parse(time.DateOnly, o.now); err != nil {
			return "", nil, fmt.Errorf("--now: %s: want a day like 2026-11-30", limitsfile.Quote(o.now))
		}
	}
	if options.ErrorP99, err = planning.Share(o.wrong); err != nil {
		return "", nil, err
	}
	name, file, err := source.Read(o.file, stdin)
	var mistakes limitsfile.SourceErrors
	switch {
	case errors.As(err, &mistakes):
		return name, doctor.Refused(mistakes), nil
	case err != nil:
		return "", nil, err
	}
	found, err = doctor.Examine(file, options)
	return name, found, err
}

func text(w io.Writer, name string, found []doctor.Finding) {
	if len(found) == 0 {
		fmt.Fprintf(w, "%s: nothing found\n", exit.Printable(name))
		return
	}
	for _, f := range found {
		where := f.Field
		if where != "" {
			where += ": "
		}
		fmt.Fprintf(w, "%s:%d:%d: %s %s: %s%s\n  %s\n", exit.Printable(name), f.Line, f.Column, f.Severity, f.Code,
			exit.Printable(where), exit.Printable(f.What), f.Do)
	}
	var counts []string
	for _, s := range doctor.Severities {
		if n := count(found, s); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, s))
		}
	}
	fmt.Fprintf(w, "\n%s: %s\n", show.Count(len(found), "finding"), strings.Join(counts, ", "))
}

func count(found []doctor.Finding, s doctor.Severity) (n int) {
	for _, f := range found {
		if f.Severity == s {
			n++
		}
	}
	return n
}

type findingJSON struct {
	Line     int             `json:"line"`
	Column   int             `json:"column"`
	Severity doctor.Severity `json:"severity"`
	Code     doctor.Code     `json:"code"`
	Field    string          `json:"field"`
	What     string          `json:"what"`
	Do       string          `json:"do"`
}

func inJSON(w io.Writer, name string, found []doctor.Finding) error {
	out := struct {
		File     string        `json:"file"`
		Findings []findingJSON `json:"findings"`
	}{File: name, Findings: []findingJSON{}}
	for _, f := range found {
		out.Findings = append(out.Findings, findingJSON{f.Line, f.Column, f.Severity, f.Code, f.Field, f.What, f.Do})
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(out); err != nil {
		return fmt.Errorf("print the findings: %w", err)
	}
	return nil
}
