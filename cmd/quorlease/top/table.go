package top

import (
	"cmp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

// pane is one of the tables, in their order on the screen.
type pane int

const (
	clients pane = iota
	limits
	nodes
	alerts
	panes
)

// column is one of a pane.
type column struct {
	title string
	// weight says which goes first where there is no room: the lightest. The first
	// column never goes.
	weight int
	// least is how narrow it may become, in cells. 0: as wide as its texts, or not
	// there.
	least int
	// number: to the right, and sorted from the largest.
	number bool
	// sorts: a pane can be sorted by it.
	sorts bool
	// bar draws the row's fill before the text.
	bar bool
}

var columns = [panes][]column{
	clients: {
		{title: "CLIENT", least: 20, sorts: true},
		{title: "STATE", weight: 10},
		{title: "429/H", weight: 9, number: true, sorts: true},
		{title: "RETRIES", weight: 8, number: true, sorts: true},
		{title: "LEFT", weight: 7, number: true, sorts: true, bar: true},
		{title: "WAITS", weight: 6},
		{title: "BUDGET", weight: 5},
		{title: "ERROR", weight: 4, least: 6},
		{title: "OVER_FOR", weight: 3, number: true, sorts: true},
		{title: "FREES_IN", weight: 2, number: true},
	},
	limits: {
		{title: "LIMIT", least: 20, sorts: true},
		{title: "STATE", weight: 10},
		{title: "LEVEL", weight: 9, number: true, sorts: true, bar: true},
		{title: "BINDING", weight: 7, least: 10},
		{title: "RATE", weight: 5, number: true},
		{title: "QUEUE", weight: 8, number: true, sorts: true},
		{title: "DENIED/MIN", weight: 3, number: true, sorts: true},
		{title: "OLDEST", weight: 4, number: true, sorts: true},
		{title: "ETA", weight: 6, number: true, sorts: true},
		{title: "GRANTED", weight: 2, number: true},
		{title: "KEYS", weight: 1, number: true},
	},
	nodes: {
		{title: "NODE", least: 12},
		{title: "ROLE", weight: 5},
		{title: "HEALTH", weight: 6},
		{title: "BEHIND", weight: 5, number: true, sorts: true},
		{title: "GRPC", weight: 4},
		{title: "HTTP", weight: 3},
		{title: "VERSION", weight: 2},
	},
	alerts: {
		{title: "ALERT", least: 12},
		{title: "SEVERITY", weight: 3, number: true, sorts: true},
		{title: "ABOUT", weight: 6, least: 8, sorts: true},
		{title: "VALUE", weight: 5},
		{title: "FOR", weight: 4, number: true, sorts: true},
		{title: "TEXT", weight: 1, least: 10},
	},
}

// sortable are the columns that a pane can be sorted by.
func sortable(of pane) (indexes []int) {
	for i, c := range columns[of] {
		if c.sorts {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// tone is how a row looks.
type tone int

const (
	plain tone = iota
	worrying
	bad
)

// row is a line of a table: clean texts, and the numbers to sort by.
type row struct {
	cells   []string
	numbers []int64
	// fill is what the bar shows, in parts per million, below 0 for none.
	fill int64
	tone tone
}

// add appends a cell. This is where texts are cleaned.
func (r *row) add(text string, number int64) {
	r.cells = append(r.cells, show.Dash(clean(text)))
	r.numbers = append(r.numbers, number)
}

// contains says whether a text stands somewhere in a row, in capitals or not.
func (r row) contains(text string) bool {
	return strings.Contains(strings.ToLower(strings.Join(r.cells, " ")), strings.ToLower(text))
}

// compare orders rows by a column.
func compare(of pane, by int, a, b row) int {
	if columns[of][by].number {
		return cmp.Compare(b.numbers[by], a.numbers[by])
	}
	return cmp.Compare(a.cells[by], b.cells[by])
}

const (
	// gap lies between columns, in cells.
	gap = 2
	// barCells is how wide a bar is, with the space after it one more.
	barCells = 8
	// barsFrom is the width of a screen that has room for bars.
	barsFrom = 80
)

// grid is a table that was fitted to a width.
type grid struct {
	columns []column
	// chosen are the columns that have room, with their widths.
	chosen, widths []int
	bars           bool
}

// fit chooses columns and widths. heading is what stands over the first column.
func fit(of pane, rows []row, heading string, width int) grid {
	g := grid{columns: columns[of], bars: width >= barsFrom}
	var natural []int
	for i, c := range g.columns {
		wide := ansi.StringWidth(c.title)
		if i == 0 {
			wide = ansi.StringWidth(heading)
		}
		for _, r := range rows {
			wide = max(wide, ansi.StringWidth(g.prefix(i, r))+ansi.StringWidth(r.cells[i]))
		}
		g.chosen, natural = append(g.chosen, i), append(natural, wide)
	}
	for !g.shrink(natural, width) {
		g.drop()
	}
	return g
}

// prefix is the bar before a cell, if it has one.
func (g grid) prefix(i int, r row) string {
	if !g.bars || !g.columns[i].bar || r.fill < 0 {
		return ""
	}
	return bar(r.fill) + " "
}

// shrink gives the chosen columns the widths that they want, and makes those that
// may be narrower as narrow as it takes, the last first. It says whether that is
// enough.
func (g *grid) shrink(natural []int, width int) bool {
	g.widths = nil
	over := gap*(len(g.chosen)-1) - width
	for _, i := range g.chosen {
		g.widths = append(g.widths, natural[i])
		over += natural[i]
	}
	alone := len(g.chosen) == 1
	for n := len(g.chosen) - 1; n >= 0 && over > 0; n-- {
		least := g.columns[g.chosen[n]].least
		if alone {
			least = 1
		}
		if spare := min(g.widths[n]-least, over); least > 0 && spare > 0 {
			g.widths[n] -= spare
			over -= spare
		}
	}
	return over <= 0 || alone
}

// drop leaves out the lightest column.
func (g *grid) drop() {
	lightest := len(g.chosen) - 1
	for n := lightest; n > 0; n-- {
		if g.columns[g.chosen[n]].weight < g.columns[g.chosen[lightest]].weight {
			lightest = n
		}
	}
	g.chosen = slices.Delete(g.chosen, lightest, lightest+1)
}

// heading draws the titles. first stands over the first column.
func (g grid) heading(first string) string {
	return g.line(func(i int) (prefix, text string) {
		if i == 0 {
			return "", first
		}
		return "", g.columns[i].title
	})
}

// row draws a row.
func (g grid) row(r row) string {
	return g.line(func(i int) (prefix, text string) { return g.prefix(i, r), r.cells[i] })
}

// line draws one text for each chosen column, behind its prefix.
func (g grid) line(cell func(i int) (prefix, text string)) string {
	var b strings.Builder
	for n, i := range g.chosen {
		if n > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		prefix, text := cell(i)
		width := max(g.widths[n]-ansi.StringWidth(prefix), 1)
		text = ansi.Truncate(text, width, "…")
		space := strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
		if g.columns[i].number {
			b.WriteString(prefix + space + text)
		} else {
			b.WriteString(prefix + text + space)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// bar is a part of a whole, in parts per million. What is not nothing shows.
func bar(fill int64) string {
	full := int((fill*barCells + 999_999) / 1_000_000)
	return strings.Repeat("█", full) + strings.Repeat("░", barCells-full)
}

// sparks are the heights of a sparkline; nothing has a sign of its own.
var sparks = []rune("·▁▂▃▄▅▆▇█")

// spark draws the end of a series, width cells at most, as high as the most is.
func spark(series []int64, width int, most int64) string {
	var b strings.Builder
	for _, n := range series[max(len(series)-max(width, 0), 0):] {
		height := 0
		if n > 0 {
			height = 1 + int(float64(n)/float64(max(most, n))*float64(len(sparks)-2))
		}
		b.WriteRune(sparks[min(height, len(sparks)-1)])
	}
	return b.String()
}
