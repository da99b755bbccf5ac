package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// View draws the model.
func (m model) View() tea.View {
	view := tea.NewView(strings.Join(m.lines(), "\n"))
	view.AltScreen = true
	return view
}

// lines are those of the screen, as many as it has at most.
func (m model) lines() []string {
	if m.width < 1 || m.height < 1 {
		return nil
	}
	var lines []string
	if m.help {
		// It has the screen to itself: on a small one every line counts.
		lines = strings.Split(keys, "\n")
	} else {
		lines = m.head()
	}
	if !m.help && m.shown != nil {
		shares := m.shares()
		for of := range panes {
			lines = append(lines, m.pane(of, shares[of])...)
		}
	}
	lines = lines[:min(len(lines), m.height-1)]
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, m.foot())
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, m.width, "")
	}
	return lines
}

// head is what stands above the panes. Of a small screen the status takes a third:
// what is stale has to be said, and the rows are what one came for.
func (m model) head() (lines []string) {
	lines = m.wrap(m.status())
	lines = lines[:min(len(lines), max((m.height-1)/3, 1))]
	if notice := m.notice(); notice != "" {
		lines = append(lines, m.paint(worrying, notice))
	}
	if m.shown != nil && m.height >= 12 {
		lines = append(lines, m.chart()...)
	}
	return lines
}

// part is a piece of the status.
type part struct {
	text string
	tone tone
}

// status says how the cluster is, the most important first.
func (m model) status() []part {
	p := m.shown
	if p == nil {
		return []part{{"quorlease", plain}}
	}
	health, healthTone := "ok", plain
	switch {
	case !p.quorum:
		health, healthTone = "NO QUORUM", bad
	case p.leader == "":
		health, healthTone = "electing", worrying
	case p.healthy < p.members:
		health, healthTone = "degraded", worrying
	}
	leader := p.leader
	if leader == "" {
		leader = "none"
	}
	retries := part{retryAlerts(p), plain}
	if p.retryAlerts > 0 {
		retries.tone = bad
	}
	parts := []part{
		{"cluster " + health, healthTone},
		{"leader " + leader, plain},
		{fmt.Sprintf("nodes %d/%d", p.healthy, p.members), healthTone},
		retries,
		{fmt.Sprintf("alerts %d", p.alerts), plain},
		{p.taken.UTC().Format(time.TimeOnly) + " " + p.node, plain},
	}
	if p.unlimited != "" {
		parts = append(parts, part{"p95 " + p.unlimited, plain})
	}
	return parts
}

// retryAlerts is the counter of the page, in its words.
func retryAlerts(p *picture) string {
	return fmt.Sprintf("retry-budget alerts: %d firing", p.retryAlerts)
}

// wrap puts parts into as many lines as they need.
func (m model) wrap(parts []part) (lines []string) {
	var line strings.Builder
	used := 0
	for _, p := range parts {
		width := ansi.StringWidth(p.text)
		if used > 0 && used+gap+width > m.width {
			lines = append(lines, line.String())
			line.Reset()
			used = 0
		}
		if used > 0 {
			line.WriteString(strings.Repeat(" ", gap))
			used += gap
		}
		line.WriteString(m.paint(p.tone, p.text))
		used += width
	}
	return append(lines, line.String())
}

// notice says what is not as usual, empty where nothing is.
func (m model) notice() string {
	var said []string
	if age, stale := m.stale(); stale {
		said = append(said, "STALE"+seconds(" for ", age))
	}
	if m.lost != nil {
		next := "asking " + clean(m.lost.next) + seconds(" in ", m.lost.again.Sub(m.now))
		said = append(said, next, clean(m.lost.endpoint)+": "+clean(m.lost.problem))
	} else if m.latest == nil {
		said = append(said, "waiting for a first picture")
	}
	if m.paused {
		said = append([]string{"PAUSED"}, said...)
	}
	return strings.Join(said, "; ")
}

// seconds is a duration with a word before it, and nothing where it is less than a
// second.
func seconds(word string, d time.Duration) string {
	if d < time.Second {
		return ""
	}
	return word + briefly(d)
}

// chart is what providers refused against what they did not, to one scale.
func (m model) chart() []string {
	throttled := fmt.Sprintf(" %d/min", lastMinute(m.shown.throttled))
	ok := fmt.Sprintf(" %d/min", lastMinute(m.shown.ok))
	const label = len("429s ")
	cells := m.width - label - max(len(throttled), len(ok))
	most := int64(1)
	for _, series := range [][]int64{m.shown.throttled, m.shown.ok} {
		for _, n := range series[max(len(series)-max(cells, 0), 0):] {
			most = max(most, n)
		}
	}
	looks := plain
	if lastMinute(m.shown.throttled) > 0 {
		looks = bad
	}
	return []string{
		"429s " + m.paint(looks, spark(m.shown.throttled, cells, most)) + throttled,
		"ok   " + spark(m.shown.ok, cells, most) + ok,
	}
}

// shares are the lines that each pane gets, with its heading.
func (m model) shares() (shares [panes]int) {
	room := m.height - 1 - len(m.head())
	// Where there is no room for all of them there is one, that with the focus.
	if room < 2*int(panes) {
		shares[m.focus] = max(room, 0)
		return shares
	}
	var wants [panes]int
	for of := range panes {
		wants[of] = 1 + len(m.rows(of))
		shares[of] = min(wants[of], 2)
		room -= shares[of]
	}
	// One line each in turn; the focus takes two.
	for given := true; given && room > 0; {
		given = false
		for turn := range int(panes) + 1 {
			of := (m.focus + pane(turn)) % panes
			if room > 0 && shares[of] < wants[of] {
				shares[of]++
				room--
				given = true
			}
		}
	}
	return shares
}

// visible is how many rows of a pane are on the screen.
func (m model) visible(of pane) int {
	if m.shown == nil {
		return 0
	}
	return max(m.shares()[of]-1, 0)
}

// pane draws one, heading first, in so many lines at most.
func (m model) pane(of pane, lines int) []string {
	if lines < 1 {
		return nil
	}
	rows := m.rows(of)
	// Rows may have gone since the keys were pressed.
	first := min(m.tops[of], max(len(rows)-(lines-1), 0))
	shown := rows[first:min(first+lines-1, len(rows))]
	title := m.title(of, first, len(shown), len(rows))
	g := fit(of, rows, title, m.width)
	heading := ansi.Truncate(g.heading(title), m.width, "")
	if of == m.focus {
		heading = "\x1b[7m" + heading + strings.Repeat(" ", max(m.width-ansi.StringWidth(heading), 0)) + "\x1b[0m"
	} else {
		heading = "\x1b[1m" + heading + "\x1b[0m"
	}
	drawn := []string{heading}
	for _, r := range shown {
		drawn = append(drawn, m.paint(r.tone, g.row(r)))
	}
	return drawn
}

// title is that of the first column, and which rows of how many are shown.
func (m model) title(of pane, first, shown, kept int) string {
	title, total := columns[of][0].title, m.shown.tables[of].total
	if of == limits && m.whole || m.filter != "" && of != nodes {
		total = int64(kept)
	}
	if int64(shown) == total {
		return fmt.Sprintf("%s (%d)", title, total)
	}
	return fmt.Sprintf("%s %d-%d/%d", title, min(first+1, kept), first+shown, total)
}

// paint gives a text the look of its tone. Without colours what is bad is bold.
func (m model) paint(t tone, text string) string {
	var code string
	switch {
	case text == "" || t == plain:
		return text
	case t == bad && m.colours:
		code = "1;31"
	case t == bad:
		code = "1"
	case m.colours:
		code = "33"
	default:
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// keys is the help. Its first nine lines fit on the smallest screens.
const keys = `tab l / shift+tab h   pane: next / before
up k / down j         a row up / down
pgup / pgdown         a screen up / down
home g / end G        first / last row
s  sort by next column, at last as sent
d  all dimensions of limits, or binding
/  filter: enter keeps it, esc drops it
p  hold the picture, and let go
q  quit        ctrl+z  to the background

OVER is a client that has spent its retry budget, LEFT the retries that it
has of those it is allowed, WAITS whether it waits as long as it is told.
A limit is shown at its most pressed key, by the dimension that binds; with
all of them, the others are those in brackets.`

// foot is the last line.
func (m model) foot() string {
	if m.typing {
		return "/" + m.filter + "▏ enter keeps it, esc shows all"
	}
	if m.help {
		return "any key goes back, q quits"
	}
	order := "node's order"
	if by := m.sorts[m.focus]; by > 0 {
		order = columns[m.focus][sortable(m.focus)[by-1]].title
	}
	foot := "q quit  ? help  tab pane  s sort: " + order + "  p pause"
	if m.filter != "" {
		return foot + "  / filter: " + m.filter
	}
	return foot + "  / filter"
}
