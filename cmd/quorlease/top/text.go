package top

import (
	"fmt"
	"io"
	"strings"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

// Text writes one picture for a script or a log: all rows, dimensions and
// columns, as the tables of other commands are.
func Text(w io.Writer, answer *quorleasev1.OverviewWatchResponse) {
	p := newPicture(pictureMsg{answer: answer})
	fmt.Fprintf(w, "time    %s\nnode    %s\nquorum  %s\nleader  %s\nnodes   %d of %d healthy\n",
		p.taken.UTC().Format(time.RFC3339), show.Dash(p.node), show.YesNo(p.quorum), show.Dash(p.leader),
		p.healthy, p.members)
	if p.unlimited != "" {
		fmt.Fprintf(w, "p95     %s where nothing limits\n", p.unlimited)
	}
	fmt.Fprintf(w, "429s    %d in the last minute\nok      %d in the last minute\nalerts  %d firing\n%s\n",
		lastMinute(p.throttled), lastMinute(p.ok), p.alerts, retryAlerts(p))
	for of := range panes {
		t := p.tables[of]
		if len(t.rows) == 0 {
			continue
		}
		var titles []string
		for _, c := range columns[of] {
			titles = append(titles, c.title)
		}
		rows := t.rows
		if of == limits {
			rows = p.dimensions
		}
		cells := make([][]string, 0, len(rows))
		for _, r := range rows {
			cells = append(cells, r.cells)
		}
		fmt.Fprintln(w)
		show.Table(w, strings.Join(titles, " "), cells)
		if t.total > int64(len(t.rows)) {
			fmt.Fprintf(w, "%d of %d\n", len(t.rows), t.total)
		}
	}
}
