package planning

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/quorlease/quorlease/api/limitsfile"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/plan"
)

// settledMax bounds a file of settled tasks.
const settledMax = 1_000_000

// measure is the error of the estimates: of the tasks in a file, or as it was given.
func (o *Options) measure() (bp *int64, errs *plan.Errors, err error) {
	if o.settled == "" {
		bp, err = Share(o.wrong)
		return bp, nil, err
	}
	if o.wrong != "" {
		return nil, nil, exit.Usagef("--error and --settled both say how far estimates are off: give one")
	}
	file, err := os.Open(o.settled)
	if err != nil {
		return nil, nil, fmt.Errorf("read settled tasks: %w", err)
	}
	defer file.Close()
	tasks, err := settledIn(o.settled, file)
	if err != nil {
		return nil, nil, err
	}
	measured, err := plan.Measure(tasks)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", o.settled, err)
	}
	if measured.P99 > plan.ErrorMax {
		return nil, nil, fmt.Errorf("%s: one in a hundred tasks used %s more than it was charged: no margin covers 100%%",
			o.settled, written.FormatShare(measured.P99))
	}
	return &measured.P99, &measured, nil
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
