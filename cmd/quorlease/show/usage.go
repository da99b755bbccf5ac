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

// others is how rows are named that count many together.
const others = "(other)"

// usageHeading is that of a table; the first column is what the rows are named by.
const usageHeading = "LIMIT DIMENSION GRANTS DENIALS GRANTED DENIED"

// Usage writes what was granted and denied, by client, limit or team.
func Usage(w io.Writer, by string, r *quorleasev1.UsageBookQueryResponse) {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	fmt.Fprintf(w, "from %s to %s\n\n", at(r.GetFrom().AsTime()), at(r.GetTo().AsTime()))
	heading := strings.ToUpper(by) + " " + usageHeading
	skip := 0
	if by == "limit" {
		heading, skip = usageHeading, 1
	}
	var rows [][]string
	for _, row := range r.GetRows() {
		cells := usageCells(row)
		if row.GetOther() {
			cells[skip] = others
		}
		rows = append(rows, cells[skip:])
	}
	Table(w, heading, rows)
}

// UsageCSV writes the same as comma-separated values, with a column that says which rows
// count many together.
func UsageCSV(w io.Writer, by string, r *quorleasev1.UsageBookQueryResponse) {
	out := csv.NewWriter(w)
	heading, skip := append([]string{by}, strings.Fields(strings.ToLower(usageHeading))...), 0
	if by == "limit" {
		heading, skip = heading[1:], 1
	}
	// The writer behind it is a buffer, which does not fail.
	_ = out.Write(append(heading, "other"))
	for _, row := range r.GetRows() {
		cells := usageCells(row)
		cells[0] = harmless(cells[0])
		_ = out.Write(append(cells[skip:], fmt.Sprint(row.GetOther())))
	}
	out.Flush()
}

// harmless puts an apostrophe before a name that a spreadsheet would take for a formula,
// and work out: whoever asks for a lease chooses it.
func harmless(name string) string {
	if name != "" && strings.Contains("=+-@＝＋－＠", string([]rune(name)[:1])) {
		return "'" + name
	}
	return name
}

func usageCells(row *quorleasev1.UsageRow) []string {
	return []string{
		row.GetName(), row.GetLimit(), row.GetDimension(), Number(row.GetGrants()), Number(row.GetDenials()),
		Number(row.GetGranted()), Number(row.GetDenied()),
	}
}

// UsageMissing says which nodes' counts are not in the answer, if any.
func UsageMissing(w io.Writer, r *quorleasev1.UsageBookQueryResponse) {
	if missing := r.GetMissing(); len(missing) > 0 {
		fmt.Fprintf(w, "without %s, which did not answer\n", exit.Printable(strings.Join(missing, ", ")))
	}
}
