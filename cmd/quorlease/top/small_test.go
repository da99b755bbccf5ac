package top

import (
	"strings"
	"testing"
	"time"
)

// TestSmallScreens: also where there is little room it is said that what is shown is
// old, something of the pane with the focus is there, and the help has every key.
func TestSmallScreens(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {40, 10}, {40, 6}, {20, 5}} {
		for focus, want := range [panes]string{"batch-scorer", "azure-gpt4o", "n1", "Client"} {
			m := after(false, size[0], size[1], arrived(storm()), lostNow, tickMsg(taken.Add(7*time.Second)))
			m.focus = pane(focus)
			got := screen(m)
			if !strings.Contains(got, "STALE for 7s") || !strings.Contains(got, "\n"+want) {
				t.Errorf("%v: want that it is stale, and %s:\n%s", size, want, got)
			}
		}
	}
	help := screen(pressed(after(false, 40, 10, arrived(storm())), "?"))
	for _, key := range []string{
		"tab", "shift+tab", "up", "down", "pgup", "pgdown", "home", "end", "s ", "d ", "/ ", "p ", "or binding",
		"q  quit", "ctrl+z  to the background",
	} {
		if !strings.Contains(help, key) {
			t.Errorf("the help does not have %q:\n%s", key, help)
		}
	}
}

// TestDimensions: one key shows what is left of every dimension, and hides it again.
func TestDimensions(t *testing.T) {
	t.Parallel()
	m := pressed(after(false, 100, 40, arrived(storm())), "tab")
	if got := screen(m); strings.Contains(got, "(requests)") {
		t.Errorf("want the dimension that binds alone:\n%s", got)
	}
	m = pressed(m, "d")
	got := screen(m)
	binding, other := strings.Index(got, "input_tok"), strings.Index(got, "(requests)")
	if binding < 0 || other < binding || !strings.Contains(got, "800/1000") || !strings.Contains(got, "LIMIT (5)") {
		t.Errorf("want all five dimensions, the one that binds first:\n%s", got)
	}
	// Whatever it is sorted by that is not of a dimension, they stay together.
	for _, column := range []string{"QUEUE", "DENIED/MIN"} {
		for !strings.Contains(m.foot(), "sort: "+column) {
			m = pressed(m, "s")
		}
		if rows := m.rows(limits); rows[0].cells[3] != "input_tokens" || rows[1].cells[3] != "(requests)" {
			t.Errorf("by %s: %v, then %v", column, rows[0].cells, rows[1].cells)
		}
	}
	if got := screen(pressed(m, "d")); strings.Contains(got, "(requests)") {
		t.Errorf("want the dimension that binds alone again:\n%s", got)
	}
}

// TestBehind: a node says how far it is behind, where that is known.
func TestBehind(t *testing.T) {
	t.Parallel()
	m := after(false, 100, 40, arrived(storm()))
	for i, want := range []string{"12", "0", "-"} {
		if got := m.rows(nodes)[i].cells[3]; got != want {
			t.Errorf("row %d is %q behind, want %s", i, got, want)
		}
	}
}
