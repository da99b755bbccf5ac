package planning

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/quorlease/quorlease/api/limitsfile"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	"github.com/quorlease/quorlease/plan"
)

// settledMax bounds a file of settled tasks.
const settledMax = 1_000_000

// measured is how far estimates were off, and what was measured.
type measured struct {
	plan.Errors
	of string
}

// measure is the error of the estimates: of the tasks in the file.
func (o *Options) measure() (*measured, error) {
	file, err := os.Open(o.settled)
	if err != nil {
		return nil, fmt.Errorf("read settled tasks: %w", err)
	}
	defer file.Close()
	tasks, err := settledIn(o.settled, file)
	if err != nil {
		return nil, err
	}
	errs, err := plan.Measure(tasks)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.settled, err)
	}
	if errs.P99 > plan.ErrorMax {
		return nil, fmt.Errorf("%s: %s", o.settled, beyond(errs.P99))
	}
	return &measured{Errors: errs}, nil
}

// settledIn reads a task a line: what it was charged and what it used, with space or
// a comma between. Empty lines and those that begin with # are none.
func settledIn(name string, r io.Reader) (tasks []plan.Settled, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
		if len(words) != 2 {
			return nil, fmt.Errorf("%s:%d: %s: want two whole numbers, charged and used", name, n, limitsfile.Quote(text))
		}
		charged, problem := written.ParseSize(words[0])
		used, other := written.ParseSize(words[1])
		switch {
		case problem+other != "":
			return nil, fmt.Errorf("%s:%d: %s%s", name, n, problem, other)
		case charged == 0:
			return nil, fmt.Errorf("%s:%d: 0: a task is charged at least 1", name, n)
		case len(tasks) == settledMax:
			return nil, fmt.Errorf("%s:%d: more than %d tasks", name, n, settledMax)
		}
		tasks = append(tasks, plan.Settled{Charged: charged, Used: used})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read settled tasks: %s: %w", name, err)
	}
	return tasks, nil
}
