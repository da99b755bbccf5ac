package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
	"github.com/quorlease/quorlease/cmd/quorlease/source"
)

// applyFlags are those of `limits apply` and `limits diff`.
type applyFlags struct {
	file     string
	prune    bool
	dryRun   bool
	revision uint64
}

func newLimitsApply(a *app) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Add and change the limits that a file names",
		Long: `Add and change what a limits file names, as one change or not at all. What it
does not name stays, unless --prune is given. Applying the same file again
changes nothing.

With --revision the change is refused (exit code 1) when somebody else has
changed the limits since that revision was read.`,
		Example: `  quorlease limits apply -f limits.yaml
  quorlease limits apply -f limits.yaml --prune --dry-run
  quorlease limits apply -f limits.yaml --revision 7`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			request, err := a.readLimits(f.file)
			if err != nil {
				return err
			}
			request.Prune, request.DryRun = f.prune, f.dryRun
			if c.Flags().Changed("revision") {
				request.ExpectedRevision = &f.revision
			}
			answer, err := a.applyLimits(c.Context(), request)
			if err != nil {
				return err
			}
			return a.print(answer, func(w io.Writer) { applyText(w, answer, f.dryRun) })
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "limits `file`; - is standard input")
	flags.BoolVar(&f.prune, "prune", false, "delete what the file does not name")
	flags.BoolVar(&f.dryRun, "dry-run", false, "check, and show what would change")
	flags.Uint64Var(&f.revision, "revision", 0, "refuse unless this is the `revision` now")
	return cmd
}

func newLimitsDiff(a *app) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Show what applying a file would change",
		Long: `Show what apply with the same flags would change. Exit code 0: nothing, 1: it
differs, 2: error.`,
		Example: `  quorlease limits diff -f limits.yaml --prune`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			differs, err := a.diff(c.Context(), f)
			if err != nil {
				return &exit.Error{Code: exit.Usage, Err: err}
			}
			if differs {
				return &exit.Error{Code: exit.Failed}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "limits `file`; - is standard input")
	flags.BoolVar(&f.prune, "prune", false, "count as different what the file does not name")
	return cmd
}

func (a *app) diff(ctx context.Context, f applyFlags) (differs bool, err error) {
	if err := a.checkFormat(); err != nil {
		return false, err
	}
	request, err := a.readLimits(f.file)
	if err != nil {
		return false, err
	}
	request.Prune, request.DryRun = f.prune, true
	answer, err := a.applyLimits(ctx, request)
	if err != nil {
		return false, err
	}
	err = a.print(answer, func(w io.Writer) { show.Changes(w, answer.GetChanges()) })
	return len(answer.GetChanges()) > 0, err
}

func newLimitsValidate(a *app) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "validate -f FILE",
		Short: "Check a limits file without asking a node",
		Long: `Check a limits file without asking a node. What is wrong is said with line and
column, one line each, and the exit code is 1.`,
		Example: `  quorlease limits validate -f limits.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			request, err := a.readLimits(file)
			if err != nil {
				return err
			}
			return a.print(request, func(w io.Writer) {
				fmt.Fprintf(w, "valid: %s, %s\n", show.Count(len(request.GetLimits()), "limit"),
					show.Count(len(request.GetRetryBudgets()), "retry budget"))
			})
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "limits `file`; - is standard input")
	return cmd
}

// readLimits is what a limits file asks to apply.
func (a *app) readLimits(name string) (*quorleasev1.LimitsApplyRequest, error) {
	_, file, err := source.Read(name, a.stdin)
	if err != nil {
		return nil, source.Lines(err)
	}
	return file.Request, nil
}

func (a *app) applyLimits(
	ctx context.Context, request *quorleasev1.LimitsApplyRequest,
) (answer *quorleasev1.LimitsApplyResponse, err error) {
	kind := ask.Once
	if request.GetDryRun() {
		kind = ask.Read
	}
	answer, err = answerOf(ctx, a, kind,
		ask.CallOf(quorleasev1.NewLimitsClient, quorleasev1.LimitsClient.Apply, request))
	var open *ask.OutcomeUnknownError
	if errors.As(err, &open) {
		err = fmt.Errorf("%w; `quorlease limits diff` tells, and applying the same again does no harm", err)
	}
	return answer, err
}

func applyText(w io.Writer, r *quorleasev1.LimitsApplyResponse, dryRun bool) {
	show.Changes(w, r.GetChanges())
	switch {
	case len(r.GetChanges()) == 0:
		fmt.Fprintf(w, "nothing to change, revision %d\n", r.GetRevision())
	case dryRun:
		fmt.Fprintf(w, "%s not made (dry run)\n", show.Count(len(r.GetChanges()), "change"))
	default:
		fmt.Fprintf(w, "%s, revision %d\n", show.Count(len(r.GetChanges()), "change"), r.GetRevision())
	}
}

// fileOf is what a list of limits looks like as a file.
func fileOf(r *quorleasev1.LimitsListResponse) []byte {
	return limitsfile.Format(&quorleasev1.LimitsApplyRequest{
		Limits: r.GetLimits(), RetryBudgets: r.GetRetryBudgets(),
	})
}
