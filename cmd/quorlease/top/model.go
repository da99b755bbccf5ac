package top

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// filterMax bounds a filter, in bytes.
const filterMax = 64

// model is what the screen is made of. It has no clock: messages bring the time.
type model struct {
	colours       bool
	width, height int

	// shown is drawn. latest is the newest; it is another one while paused.
	shown, latest *picture
	// lost is why there are no newer pictures, nil while there are.
	lost *lostMsg
	now  time.Time

	focus pane
	// sorts are by which of its columns a pane is sorted: 0 as the node sent it.
	sorts [panes]int
	// tops are the first rows that are shown.
	tops   [panes]int
	filter string
	// typing says that keys go into the filter, whole that limits have a row for each
	// of their dimensions.
	typing, paused, help, whole bool
}

func newModel(colours bool) model { return model{colours: colours} }

// Init has nothing to start: the feed runs by itself.
func (m model) Init() tea.Cmd { return nil }

// Update takes in one message.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tickMsg:
		m.now = time.Time(msg)
	case lostMsg:
		m.lost, m.now = &msg, msg.at
	case pictureMsg:
		m.latest, m.lost, m.now = newPicture(msg), nil, msg.at
		if !m.paused {
			m.shown = m.latest
		}
	case tea.KeyPressMsg:
		return m.press(msg)
	}
	return m, nil
}

// press does what a key says.
func (m model) press(key tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch name := key.String(); {
	case name == "ctrl+c":
		return m, tea.Quit
	case name == "ctrl+z":
		return m, tea.Suspend
	case m.typing:
		return m.typed(name, key.Key().Text), nil
	case name == "q":
		return m, tea.Quit
	case m.help:
		m.help = false
		return m, nil
	default:
		return m.choose(name), nil
	}
}

// typed changes the filter.
func (m model) typed(name, text string) model {
	switch name {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-size]
	case "ctrl+u":
		m.filter = ""
	default:
		hidden := func(r rune) bool { return !unicode.IsPrint(r) }
		if len(m.filter)+len(text) <= filterMax && !strings.ContainsFunc(text, hidden) {
			m.filter += text
		}
	}
	m.tops = [panes]int{}
	return m
}

// choose changes what is shown, and how.
func (m model) choose(name string) model {
	switch name {
	case "tab", "right", "l":
		m.focus = (m.focus + 1) % panes
	case "shift+tab", "left", "h":
		m.focus = (m.focus + panes - 1) % panes
	case "up", "k":
		m.tops[m.focus]--
	case "down", "j":
		m.tops[m.focus]++
	case "pgup":
		m.tops[m.focus] -= max(m.visible(m.focus), 1)
	case "pgdown":
		m.tops[m.focus] += max(m.visible(m.focus), 1)
	case "home", "g":
		m.tops[m.focus] = 0
	case "end", "G":
		m.tops[m.focus] = len(m.rows(m.focus))
	case "s":
		m.sorts[m.focus] = (m.sorts[m.focus] + 1) % (1 + len(sortable(m.focus)))
		m.tops[m.focus] = 0
	case "d":
		m.whole = !m.whole
		m.tops[limits] = 0
	case "/":
		m.typing = true
	case "esc":
		m.filter = ""
	case "p":
		m.paused = !m.paused
		m.shown = m.latest
	case "?":
		m.help = true
	}
	m.tops[m.focus] = min(max(m.tops[m.focus], 0), max(len(m.rows(m.focus))-m.visible(m.focus), 0))
	return m
}

// rows are those of a pane that the filter lets through, in the order that was
// chosen.
func (m model) rows(of pane) []row {
	if m.shown == nil {
		return nil
	}
	all := m.shown.tables[of].rows
	if of == limits && m.whole {
		all = m.shown.dimensions
	}
	var kept []row
	for _, r := range all {
		if of == nodes || r.contains(m.filter) {
			kept = append(kept, r)
		}
	}
	if by := m.sorts[of]; by > 0 {
		column := sortable(of)[by-1]
		slices.SortStableFunc(kept, func(a, b row) int { return compare(of, column, a, b) })
	}
	return kept
}

// staleAfter is when a picture is old: nodes send one each second.
const staleAfter = 3 * time.Second

// stale says that what is shown is not how things are, and for how long not.
func (m model) stale() (age time.Duration, is bool) {
	if m.latest == nil {
		return 0, false
	}
	age = max(m.now.Sub(m.latest.at), 0)
	return age, m.lost != nil || age > staleAfter
}
