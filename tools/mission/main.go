// Command mission shows which test settles which row of docs/mission.md, and that
// these tests would notice.
//
//	mission table            prints docs/reference/mission.md
//	mission check            fails where that page is not what it would print
//	mission break            takes away the mechanism behind ten rows, drawn by
//	                         -seed, one after another: a test of each must fail;
//	                         or of all (-rows 0), or of some (-only S1-04,S2-09)
//
// Breaking leaves the tree alone: the compiler is told to read another file in the
// place of one of ours (go build -overlay).
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// page is what table prints, from the top of the tree.
const page = "docs/reference/mission.md"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, log io.Writer) int {
	flags := flag.NewFlagSet("mission", flag.ContinueOnError)
	flags.SetOutput(log)
	root := flags.String("root", ".", "top of the tree")
	seed := flags.Uint64("seed", 1, "which rows break draws")
	rows := flags.Int("rows", 10, "how many rows break draws, 0 for all")
	only := flags.String("only", "", "rows to break, with commas between, and no draw")
	if len(args) == 0 {
		fmt.Fprintln(log, "mission: want one of table, check, break")
		return 2
	}
	if err := flags.Parse(args[1:]); err != nil {
		return 2
	}
	var err error
	switch args[0] {
	case "table":
		err = printTable(*root, out)
	case "check":
		err = checkTable(*root)
	case "break":
		err = breakRows(ctx, draw{root: *root, seed: *seed, rows: *rows, only: *only}, out)
	default:
		fmt.Fprintf(log, "mission: %q: want one of table, check, break\n", args[0])
		return 2
	}
	if err != nil {
		fmt.Fprintln(log, "mission:", err)
		return 1
	}
	return 0
}

func printTable(root string, out io.Writer) error {
	text, err := table(root)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

func checkTable(root string) error {
	want, err := table(root)
	if err != nil {
		return err
	}
	found, err := os.ReadFile(root + "/" + page)
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	if string(found) == want {
		return nil
	}
	was, is := strings.Split(string(found), "\n"), strings.Split(want, "\n")
	for i := range is {
		if i >= len(was) || was[i] != is[i] {
			return fmt.Errorf("%s is not what `make mission-table` writes; line %d should be %q", page, i+1, is[i])
		}
	}
	return fmt.Errorf("%s is longer than what `make mission-table` writes", page)
}
