package top

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// press is a key, by what bubbletea calls it.
func press(name string) tea.KeyPressMsg {
	special := map[string]tea.KeyPressMsg{
		"tab": {Code: tea.KeyTab}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift},
		"left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
		"pgdown": {Code: tea.KeyPgDown}, "pgup": {Code: tea.KeyPgUp}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "backspace": {Code: tea.KeyBackspace},
		"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+z": {Code: 'z', Mod: tea.ModCtrl},
		"ctrl+u": {Code: 'u', Mod: tea.ModCtrl},
	}
	if key, ok := special[name]; ok {
		return key
	}
	return tea.KeyPressMsg{Text: name, Code: []rune(name)[0]}
}

func pressed(m model, names ...string) model {
	for _, name := range names {
		m = with(m, press(name))
	}
	return m
}

// first is the first cell of the first row of a pane.
func first(m model, of pane) string {
	rows := m.rows(of)
	if len(rows) == 0 {
		return ""
	}
	return rows[0].cells[0]
}

func screen(m model) string { return ansi.Strip(m.View().Content) }

func TestKeys(t *testing.T) {
	t.Parallel()
	m := after(true, 80, 24, arrived(storm()))
	for _, row := range []struct {
		name string
		keys []string
		want func(model) bool
	}{
		{"tab", []string{"tab"}, func(m model) bool { return m.focus == limits }},
		{"tab_goes_round", []string{"tab", "right", "tab", "right"}, func(m model) bool { return m.focus == clients }},
		{"back", []string{"shift+tab", "left"}, func(m model) bool { return m.focus == nodes }},
		{"sort", []string{"s"}, func(m model) bool { return first(m, clients) == "batch-scorer" && m.sorts[clients] == 1 }},
		{"sort_by_left", []string{"s", "s", "s", "s"}, func(m model) bool {
			rows := m.rows(clients)
			return first(m, clients) == "batch-scorer" && rows[len(rows)-1].cells[0] == "nightly"
		}},
		{"sort_by_throttled", []string{"s", "s"}, func(m model) bool { return m.rows(clients)[2].cells[0] == "nightly" }},
		{"sort_goes_round", []string{"s", "s", "s", "s", "s", "s"}, func(m model) bool { return m.sorts[clients] == 0 }},
		{"sort_limits", []string{"tab", "s", "s"}, func(m model) bool { return first(m, limits) == "spend" }},
		{"sort_nodes_by_nothing", []string{"tab", "tab", "s"}, func(m model) bool { return first(m, nodes) == "n1" }},
		{"filter", []string{"/", "R", "E", "P", "enter"}, func(m model) bool {
			return len(m.rows(clients)) == 1 && len(m.rows(alerts)) == 1 && len(m.rows(nodes)) == 3 && !m.typing
		}},
		{"filter_takes_keys", []string{"/", "q", "s", "p"}, func(m model) bool { return m.filter == "qsp" && !m.paused }},
		{"filter_back", []string{"/", "é", "x", "backspace", "backspace"}, func(m model) bool { return m.filter == "" }},
		{"filter_empty_back", []string{"/", "backspace"}, func(m model) bool { return m.filter == "" && m.typing }},
		{"filter_cleared", []string{"/", "x", "ctrl+u"}, func(m model) bool { return m.filter == "" && m.typing }},
		{"filter_left", []string{"/", "x", "esc"}, func(m model) bool { return m.filter == "" && !m.typing }},
		{"filter_dropped", []string{"/", "x", "enter", "esc"}, func(m model) bool { return len(m.rows(clients)) == 5 }},
		{"filter_bounded", []string{"/", strings.Repeat("x", filterMax), "y"}, func(m model) bool {
			return m.filter == strings.Repeat("x", filterMax)
		}},
		{"filter_shows_nothing_hidden", []string{"/", "\u202e"}, func(m model) bool { return m.filter == "" }},
		{"help", []string{"?"}, func(m model) bool { return m.help && strings.Contains(screen(m), "pane: next / before") }},
		{"help_goes", []string{"?", "x"}, func(m model) bool { return !m.help && m.focus == clients }},
		{"up_stays", []string{"up"}, func(m model) bool { return m.tops[clients] == 0 }},
		{"pause", []string{"p"}, func(m model) bool { return m.paused && strings.Contains(screen(m), "PAUSED") }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := pressed(m, row.keys...); !row.want(got) {
				t.Errorf("after %q: %+v\n%s", row.keys, got, screen(got))
			}
		})
	}
	for _, quits := range [][]string{{"q"}, {"ctrl+c"}, {"?", "q"}, {"/", "ctrl+c"}} {
		before := pressed(m, quits[:len(quits)-1]...)
		_, command := before.Update(press(quits[len(quits)-1]))
		if command == nil {
			t.Errorf("%q does not quit", quits)
		} else if _, ok := command().(tea.QuitMsg); !ok {
			t.Errorf("%q does not quit", quits)
		}
	}
}

// TestRows moves over more rows than fit.
func TestRows(t *testing.T) {
	t.Parallel()
	many := storm()
	for range 30 {
		many.Clients = append(many.Clients, stormClients()[3])
	}
	m := after(true, 80, 24, arrived(many))
	visible := m.visible(clients)
	if visible < 5 || visible >= 35 {
		t.Fatalf("%d rows on the screen:\n%s", visible, screen(m))
	}
	for _, row := range []struct {
		keys []string
		want int
	}{
		{[]string{"down", "j"}, 2},
		{[]string{"down", "j", "k", "up", "up"}, 0},
		{[]string{"pgdown"}, visible},
		{[]string{"pgdown", "pgup"}, 0},
		{[]string{"end"}, 35 - visible},
		{[]string{"end", "down", "pgdown"}, 35 - visible},
		{[]string{"end", "home"}, 0},
	} {
		if got := pressed(m, row.keys...); got.tops[clients] != row.want {
			t.Errorf("after %q the first row is %d, want %d", row.keys, got.tops[clients], row.want)
		}
	}
	// Rows that went away leave no hole.
	short := with(pressed(m, "end"), arrived(storm()))
	if !strings.Contains(screen(short), "batch-scorer") {
		t.Errorf("the rows that are there are not shown:\n%s", screen(short))
	}
}

// TestPause holds a picture, and goes on with the newest.
func TestPause(t *testing.T) {
	t.Parallel()
	next := storm()
	next.Leader = "n1"
	m := with(pressed(after(true, 120, 30, arrived(storm())), "p"), arrived(next))
	if !strings.Contains(screen(m), "leader n2") {
		t.Errorf("the picture is not held:\n%s", screen(m))
	}
	if m = pressed(m, "p"); !strings.Contains(screen(m), "leader n1") || strings.Contains(screen(m), "PAUSED") {
		t.Errorf("it does not go on:\n%s", screen(m))
	}
}

// TestStale marks a picture that is old, whoever noticed, and not one that is new.
func TestStale(t *testing.T) {
	t.Parallel()
	m := after(true, 120, 30, arrived(storm()))
	for age, want := range map[time.Duration]bool{0: false, 3 * time.Second: false, 4 * time.Second: true} {
		if got := strings.Contains(screen(with(m, tickMsg(taken.Add(age)))), "STALE"); got != want {
			t.Errorf("after %s stale is %t, want %t", age, got, want)
		}
	}
	gone := with(m, lostNow, tickMsg(taken.Add(7*time.Second)))
	for _, want := range []string{
		"STALE for 7s", "asking 127.0.0.1:7102 in 2s", "127.0.0.1:7101: connection refused", "batch-scorer",
	} {
		if !strings.Contains(screen(gone), want) {
			t.Errorf("no %q:\n%s", want, screen(gone))
		}
	}
	at := lostNow
	at.at, at.again = taken.Add(time.Millisecond), taken.Add(time.Second)
	if now := screen(with(m, at)); !strings.Contains(now, "STALE; asking 127.0.0.1:7102; ") {
		t.Errorf("at once:\n%s", now)
	}
	if back := with(gone, arrived(storm())); strings.Contains(screen(back), "STALE") {
		t.Errorf("it is back:\n%s", screen(back))
	}
}

// TestCounter shows how many alerts about retry budgets fire, on a narrow screen
// too.
func TestCounter(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{0, 1, 17} {
		answer := storm()
		answer.RetryAlerts = n
		want := map[int64]string{
			0: "retry-budget alerts: 0 firing", 1: "retry-budget alerts: 1 firing", 17: "retry-budget alerts: 17 firing",
		}[n]
		for _, width := range []int{30, 80} {
			if got := screen(after(false, width, 24, arrived(answer))); !strings.Contains(got, want) {
				t.Errorf("%d columns: no %q:\n%s", width, want, got)
			}
		}
	}
}
