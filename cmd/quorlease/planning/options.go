// Package planning turns a command line into a plan, and a plan into text or JSON.
package planning

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/api/limitsfile"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/source"
	"github.com/quorlease/quorlease/plan"
)

// Use, Long and Example are the command's help.
const (
	Use  = "plan -f FILE --cost DIM=N,… [--live RATE] [--tasks N] [--clients N]"
	Long = `Reckon what a limit of a file carries: how many tasks a minute each dimension
allows and which one binds, what live work leaves, how long a backlog takes and at
what pace, over how long a window clients would have to spread if chance alone
kept them apart, and what a burst does to the bucket. No node is asked for that
without --measured.

--cost says what one task takes; one request unless it says so. With more than
one limit in the file that has these dimensions, --limit names it. --live is how
many tasks come whatever else happens.

A quarter of the limit is the suggested margin. It shrinks with a measured error
of the estimates only: --error takes the 99th percentile of how much more than
what was charged was used, --settled works it out from tasks of yours, and
--measured asks the nodes for how far the leases of that limit were off that were
settled in a week.

The last table lets tasks come in one moment at a full bucket, by its capacity
and its rate. Everything is exact and rounded where it is printed.`
	Example = `  quorlease plan -f limits.yaml --cost input_tokens=2500,output_tokens=300 \
    --live 72/min --tasks 6000 --clients 200
  quorlease plan -f limits.yaml --limit provider --cost input_tokens=2500 --tasks 6000 --error 8%
  quorlease plan -f limits.yaml --cost requests=1 --arrivals 25 --capacities 10,15,20,25 --rates 2/s`
)

// Options are the flags of `plan`.
type Options struct {
	file, limit, live, wrong, settled string
	cost, rates                       []string
	measured                          bool
	tasks, clients                    int64
	arrivals                          int64
	capacities                        []string
}

// Define adds the flags.
func (o *Options) Define(flags *pflag.FlagSet) {
	flags.StringVarP(&o.file, "file", "f", "", "limits `file`; - is standard input")
	flags.StringVar(&o.limit, "limit", "", "`name` of the limit, where the file has more than one that fits")
	flags.StringSliceVar(&o.cost, "cost", nil, "what one task takes, `DIM=N`,…")
	flags.StringVar(&o.live, "live", "0/min", "tasks that come whatever else happens, as a `rate`")
	flags.Int64Var(&o.tasks, "tasks", 0, "how `many` are in the backlog")
	flags.Int64Var(&o.clients, "clients", 0, "how `many` begin at once")
	flags.StringVar(&o.wrong, "error", "", "measured error of estimates, its 99th percentile, as a `share`")
	flags.StringVar(&o.settled, "settled", "", "measure that error on tasks in a `file`: a line each, charged and used")
	flags.BoolVar(&o.measured, "measured", false, "take that error from what the nodes saw settled in a week")
	flags.Int64Var(&o.arrivals, "arrivals", 0, "how `many` tasks come in one moment; 0: as many as there are clients")
	flags.StringSliceVar(&o.capacities, "capacities", nil,
		"`sizes` of the bucket to compare, in tasks; else the file's and larger ones")
	flags.StringSliceVar(&o.rates, "rates", nil, "`rates` of tasks to compare, like 2/s; else the file's")
}

// result is a plan with what it is of.
type result struct {
	limit    *logv1.Limit
	place    string
	question plan.Question
	// errors are nil where they were not measured here.
	errors *measured
	answer *plan.Answer
}

// Answer is what the command prints. Its errors name the flag, or the line of the
// file, and the value. It asks nodes only where the flags say so.
func (o *Options) Answer(ctx context.Context, stdin io.Reader, ask Ask, asJSON bool) ([]byte, error) {
	name, file, err := source.Read(o.file, stdin)
	if err != nil {
		return nil, source.Lines(err)
	}
	r, err := o.plan(ctx, name, file, ask)
	if err != nil {
		return nil, err
	}
	if asJSON {
		return r.inJSON()
	}
	var out bytes.Buffer
	r.text(&out)
	return out.Bytes(), nil
}

func (o *Options) plan(ctx context.Context, name string, file *limitsfile.File, ask Ask) (*result, error) {
	q, err := o.question()
	if err == nil {
		err = o.source()
	}
	if err != nil {
		return nil, err
	}
	costs, err := o.costs()
	if err != nil {
		return nil, err
	}
	i, l, err := o.choose(name, file, costs)
	if err != nil {
		return nil, err
	}
	at := fmt.Sprintf("limits[%d]", i)
	line, column := file.Place(at)
	r := &result{limit: l, place: fmt.Sprintf("%s:%d:%d", name, line, column), question: q}
	r.question.Target = l.GetTarget()
	r.question.Dimensions = charged(l, costs)
	if err = o.estimates(ctx, ask, r); err != nil {
		return nil, err
	}
	if o.arrivals == 0 {
		r.question.Arrivals = o.clients
	}
	r.answer, err = plan.Reckon(r.question)
	var problem *plan.QuestionError
	if errors.As(err, &problem) && problem.Field == "burst" {
		return nil, tooSmall(name, file, at, problem)
	}
	if err != nil {
		return nil, exit.Usagef("--%w", err)
	}
	return r, nil
}

// estimates finds out how far estimates are off, from where the flags say.
func (o *Options) estimates(ctx context.Context, ask Ask, r *result) (err error) {
	switch {
	case o.measured:
		r.errors, err = o.atNodes(ctx, ask, r.limit.GetName(), r.question.Dimensions)
	case o.settled != "":
		r.errors, err = o.measure()
	default:
		return nil
	}
	if err == nil {
		r.question.ErrorP99 = &r.errors.P99
	}
	return err
}

// tooSmall is the error of a bucket that never holds a task: where its size stands,
// or else the rate that it follows from.
func tooSmall(name string, file *limitsfile.File, at string, p *plan.QuestionError) error {
	field := at + ".burst." + p.Dimension
	line, column := file.Place(field)
	if l, c := file.Place(at); l == line && c == column {
		line, column = file.Place(at + ".rate." + p.Dimension)
	}
	return &limitsfile.SourceError{File: name, Line: line, Column: column, Field: field, Problem: p.Text}
}

// question is what the flags say by themselves.
func (o *Options) question() (q plan.Question, err error) {
	q = plan.Question{Tasks: o.tasks, Clients: o.clients, Arrivals: o.arrivals}
	for _, n := range []struct {
		flag  string
		value int64
	}{{"tasks", o.tasks}, {"clients", o.clients}, {"arrivals", o.arrivals}} {
		if n.value < 0 || n.value > plan.TasksMax {
			return q, exit.Usagef("--%s %d is outside 0 to %d", n.flag, n.value, int64(plan.TasksMax))
		}
	}
	if o.arrivals == 0 && o.clients == 0 && len(o.rates)+len(o.capacities) > 0 {
		return q, exit.Usagef("--rates and --capacities say what if tasks come at once: say how many with --arrivals")
	}
	if q.Live, err = rate("live", o.live); err != nil {
		return q, err
	}
	for _, text := range o.rates {
		r, err := rate("rates", text)
		if err != nil {
			return q, err
		}
		q.Rates = append(q.Rates, r)
	}
	if q.Capacities, err = sizes(o.capacities); err != nil {
		return q, err
	}
	q.ErrorP99, err = Share(o.wrong)
	return q, err
}

func sizes(texts []string) (list []int64, err error) {
	for _, text := range texts {
		n, problem := written.ParseSize(text)
		if problem == "" && (n < 1 || n > plan.TasksMax) {
			problem = fmt.Sprintf("%d is outside 1 to %d", n, int64(plan.TasksMax))
		}
		if problem != "" {
			return nil, exit.Usagef("--capacities: %s", problem)
		}
		list = append(list, n)
	}
	return list, nil
}

// Share reads the measured error of estimates, nil where there is none.
func Share(text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	share, problem := written.ParseShare(text)
	if problem == "" && share > plan.ErrorMax {
		problem = fmt.Sprintf("%s is outside 0%% to %s", text, written.FormatShare(plan.ErrorMax))
	}
	if problem != "" {
		return nil, exit.Usagef("--error: %s", problem)
	}
	return &share, nil
}

func rate(flag, text string) (plan.Rate, error) {
	amount, interval, problem := written.ParseRate(text)
	if problem != "" {
		return plan.Rate{}, exit.Usagef("--%s: %s", flag, problem)
	}
	return plan.Rate{Amount: amount, Interval: interval}, nil
}

// cost is what a task takes of one dimension.
type cost struct {
	dimension string
	tokens    int64
}

func (o *Options) costs() (list []cost, err error) {
	if len(o.cost) == 0 {
		return nil, exit.Usagef("--cost is missing: say what one task takes, like --cost input_tokens=2500,requests=1")
	}
	for _, pair := range o.cost {
		dimension, number, found := strings.Cut(pair, "=")
		if !found {
			return nil, exit.Usagef("--cost: %s is not DIM=N", strconv.Quote(pair))
		}
		if problem := limitsfile.DimensionProblem(dimension); problem != "" {
			return nil, exit.Usagef("--cost: %s", problem)
		}
		tokens, problem := written.ParseSize(number)
		if problem == "" && tokens == 0 {
			problem = "0: a task takes at least 1"
		}
		if problem != "" {
			return nil, exit.Usagef("--cost %s: %s", dimension, problem)
		}
		if slices.ContainsFunc(list, func(c cost) bool { return c.dimension == dimension }) {
			return nil, exit.Usagef("--cost: %s is given twice", dimension)
		}
		list = append(list, cost{dimension, tokens})
	}
	return list, nil
}

const requests = "requests"

// charged are the dimensions of the limit that a task takes something of: one
// request unless the costs say otherwise.
func charged(l *logv1.Limit, costs []cost) (list []plan.Dimension) {
	for _, d := range l.GetDimensions() {
		at := slices.IndexFunc(costs, func(c cost) bool { return c.dimension == d.GetName() })
		tokens := int64(1)
		switch {
		case at >= 0:
			tokens = costs[at].tokens
		case d.GetName() != requests:
			continue
		}
		list = append(list, plan.Dimension{
			Name: d.GetName(), Burst: d.GetBurst(), Cost: tokens,
			Rate: plan.Rate{Amount: d.GetAmount(), Interval: time.Duration(d.GetInterval())},
		})
	}
	return list
}
