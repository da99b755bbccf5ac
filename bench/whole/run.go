package whole

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/quorlease/quorlease/bench/sheet"
)

// Result is one run of all. Its JSON is documented in docs/reference/bench.md: a field is
// added, never renamed.
type Result struct {
	Version  string      `json:"version"`
	Settings sheet.Place `json:"settings"`
	Seconds  float64     `json:"seconds"`
	Parts    []Measured  `json:"parts"`
	// Missed says, a line each, what is not as it must be.
	Missed []string `json:"missed"`
	// OK: no part failed, no guarantee broke, no bound was missed.
	OK bool `json:"ok"`
}

// Measured is a part that was run.
type Measured struct {
	Part    string  `json:"part"`
	Seconds float64 `json:"seconds"`
	// Failed says why there is no result. Empty: there is.
	Failed string `json:"failed"`
	// Result is that of the part.
	Result  Shown `json:"result"`
	section sheet.Section
}

// Run runs one part after the other, and ends every process that they started. A part that
// fails is in the result, and the others are run all the same. Whoever ends ctx gets an
// error and no result.
func Run(ctx context.Context, c Config) (*Result, error) { return run(ctx, &c, Parts()) }

func run(ctx context.Context, c *Config, all []Part) (*Result, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	parts := c.chosen(all)
	var left time.Duration
	for _, p := range parts {
		left += p.Takes(c)
		if p.Ready == nil {
			continue
		}
		if err := p.Ready(c); err != nil {
			return nil, err
		}
	}
	r := &Result{Version: c.Version, Settings: sheet.Here(), Parts: []Measured{}, Missed: []string{}}
	began := time.Now()
	for i, p := range parts {
		c.say("%d of %d: %s, %s; %s left in all", i+1, len(parts), p.Name, p.Title, about(left))
		one, err := c.part(ctx, p)
		if err != nil {
			return nil, err
		}
		r.Parts = append(r.Parts, one)
		left -= p.Takes(c)
		outcome := "everything was kept"
		if missed := one.section.Missed(); len(missed) > 0 {
			outcome = fmt.Sprintf("%d things were not as they must be", len(missed))
		}
		c.say("%s took %s: %s", p.Name, about(time.Duration(one.Seconds*float64(time.Second))), outcome)
	}
	r.Seconds = time.Since(began).Seconds()
	r.Missed = append(r.Missed, r.Sheet().Missed()...)
	r.OK = len(r.Missed) == 0
	return r, nil
}

// about is a time for people who wait.
func about(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("about %d s", int(d.Seconds()+0.5))
	}
	return fmt.Sprintf("about %d min", int(d.Minutes()+0.5))
}

func (c *Config) say(format string, values ...any) {
	if c.Progress != nil {
		fmt.Fprintf(c.Progress, format+"\n", values...)
	}
}

// part runs one in a directory of its own.
func (c *Config) part(ctx context.Context, p Part) (one Measured, err error) {
	own := *c
	own.Dir = filepath.Join(c.Dir, p.Name)
	if err := os.Mkdir(own.Dir, 0o700); err != nil {
		return one, fmt.Errorf("%s: %w", p.Name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(own.Dir)) }()
	if c.Progress != nil {
		own.Progress = &prefixed{to: c.Progress, prefix: p.Name + ": "}
	}
	began := time.Now()
	result, err := p.Run(ctx, &own)
	one = Measured{Part: p.Name, Seconds: time.Since(began).Seconds()}
	switch {
	case ctx.Err() != nil:
		return one, fmt.Errorf("%s: %w", p.Name, cmp.Or(err, ctx.Err()))
	case err != nil:
		one.Failed = err.Error()
		one.section = sheet.Section{Section: p.Name, Title: p.Title, Failed: one.Failed}
	default:
		one.Result, one.section = result, result.Section()
	}
	return one, nil
}

// prefixed says whose line it is. What is written to it are whole lines.
type prefixed struct {
	to     io.Writer
	prefix string
}

// Write writes a line with its prefix.
func (p *prefixed) Write(line []byte) (int, error) {
	if _, err := p.to.Write(append([]byte(p.prefix), line...)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Sheet is all parts together.
func (r *Result) Sheet() *sheet.Sheet {
	s := &sheet.Sheet{Title: "quorlease bench all", Version: r.Version, Place: r.Settings}
	for i := range r.Parts {
		s.Sections = append(s.Sections, r.Parts[i].section)
	}
	return s
}

// Text writes the result for people.
func (r *Result) Text(w io.Writer) error { return r.Sheet().Text(w) }

// HTML writes one page that needs nothing else.
func (r *Result) HTML(w io.Writer) error { return r.Sheet().HTML(w) }

// JSON writes the result as one object.
func (r *Result) JSON(w io.Writer) error { return sheet.JSON(w, r) }
