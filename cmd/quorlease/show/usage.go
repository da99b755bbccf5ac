package show

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

// UsageLong explains the command and its columns.
const UsageLong = `Show what was granted and denied in the last hours or in a period, by client, by
limit, by key of a limit, or by team (the attribute team of an acquire), for each
limit and dimension. GRANTS and DENIALS are acquires, GRANTED and DENIED the tokens
that they asked for. By limit and by key RETURNED are tokens that were not used
when leases were settled or released, EXTRA those that were used on top, and USED
what is left: the ledger of a team is that of its key. The first hour counts from
its beginning.

One node answers for all: those that did not answer are named on standard error,
or in JSON as missing. (other) is what is beyond --top, or beyond the names that a
node keeps.`

// others is how rows are named that count many together.
const others = "(other)"

// usageHeading is that of a table behind the name of the rows, and usedHeading what
// comes behind it where it is known what was used: of limits and keys.
const (
	usageHeading = "LIMIT DIMENSION GRANTS DENIALS GRANTED DENIED"
	usedHeading  = " RETURNED EXTRA USED"
)

// usageColumns are those of a table, by what its rows are named. A limit is its own name.
func usageColumns(by string) string {
	switch by {
	case "limit":
		return usageHeading + usedHeading
	case "key":
		return "KEY " + usageHeading + usedHeading
	default:
		return strings.ToUpper(by) + " " + usageHeading
	}
}

// Usage writes what was granted and denied, by client, key, limit or team.
func Usage(w io.Writer, by string, r *quorleasev1.UsageBookQueryResponse) {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	fmt.Fprintf(w, "from %s to %s\n\n", at(r.GetFrom().AsTime()), at(r.GetTo().AsTime()))
	var rows [][]string
	for _, row := range r.GetRows() {
		cells := usageCells(by, row)
		if row.GetOther() {
			cells[0] = others
		}
		rows = append(rows, cells)
	}
	Table(w, usageColumns(by), rows)
}

// UsageCSV writes the same as comma-separated values, with a column that says which rows
// count many together.
func UsageCSV(w io.Writer, by string, r *quorleasev1.UsageBookQueryResponse) {
	out := csv.NewWriter(w)
	// The writer behind it is a buffer, which does not fail.
	_ = out.Write(append(strings.Fields(strings.ToLower(usageColumns(by))), "other"))
	for _, row := range r.GetRows() {
		cells := usageCells(by, row)
		cells[0] = Harmless(cells[0])
		_ = out.Write(append(cells, fmt.Sprint(row.GetOther())))
	}
	out.Flush()
}

// Harmless puts an apostrophe before a name that a spreadsheet would take for a formula,
// and work out: whoever asks for a lease chooses it.
func Harmless(name string) string {
	if name != "" && strings.Contains("=+-@＝＋－＠", string([]rune(name)[:1])) {
		return "'" + name
	}
	return name
}

func usageCells(by string, row *quorleasev1.UsageRow) []string {
	cells := []string{
		row.GetLimit(), row.GetDimension(), Number(row.GetGrants()), Number(row.GetDenials()),
		Number(row.GetGranted()), Number(row.GetDenied()),
	}
	if by == "limit" || by == "key" {
		cells = append(cells, Number(row.GetReturned()), Number(row.GetExtra()),
			Number(row.GetGranted()-row.GetReturned()+row.GetExtra()))
	}
	if by == "limit" {
		return cells
	}
	return append([]string{row.GetName()}, cells...)
}

// UsageMissing says which nodes' counts are not in the answer, and which hours from the
// beginning that was asked for, if any.
func UsageMissing(w io.Writer, from time.Time, r *quorleasev1.UsageBookQueryResponse) {
	if first := r.GetFrom().AsTime(); !from.IsZero() && first.After(from) {
		fmt.Fprintf(w, "without what was before %s, which is not kept\n", first.UTC().Format(time.RFC3339))
	}
	if missing := r.GetMissing(); len(missing) > 0 {
		fmt.Fprintf(w, "without %s, which did not answer\n", exit.Printable(strings.Join(missing, ", ")))
	}
}
