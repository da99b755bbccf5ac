package top

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"google.golang.org/protobuf/reflect/protoreflect"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// after is a model of a size that got messages.
func after(colours bool, width, height int, messages ...tea.Msg) model {
	return with(newModel(colours), append([]tea.Msg{tea.WindowSizeMsg{Width: width, Height: height}}, messages...)...)
}

func with(m model, messages ...tea.Msg) model {
	for _, msg := range messages {
		next, _ := m.Update(msg)
		m = next.(model)
	}
	return m
}

func arrived(answer *quorleasev1.OverviewWatchResponse) pictureMsg {
	return pictureMsg{endpoint: "127.0.0.1:7101", answer: answer, at: taken}
}

// lostNow is a node that went away a while after the picture.
var lostNow = lostMsg{
	endpoint: "127.0.0.1:7101", problem: "connection refused", next: "127.0.0.1:7102",
	at: taken.Add(5 * time.Second), again: taken.Add(9 * time.Second),
}

// TestViews compares the screen with what it was when somebody looked at it. What
// is visible of escape sequences stands as they do in a terminal's manual.
func TestViews(t *testing.T) {
	t.Parallel()
	quiet := &quorleasev1.OverviewWatchResponse{Node: "n3", Nodes: storm().GetNodes()}
	for _, row := range []struct {
		name     string
		messages []tea.Msg
	}{
		{"storm", []tea.Msg{arrived(storm())}},
		{"no_quorum", []tea.Msg{arrived(quiet)}},
		{"stale", []tea.Msg{arrived(storm()), lostNow, tickMsg(taken.Add(7 * time.Second))}},
		{"first", nil},
		{"help", []tea.Msg{arrived(storm()), press("?")}},
	} {
		for _, size := range [][2]int{{80, 24}, {120, 40}, {44, 16}} {
			for _, colours := range []bool{true, false} {
				name := fmt.Sprintf("%s_%dx%d", row.name, size[0], size[1])
				if !colours {
					name += "_plain"
				} else if size[0] != 80 {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					m := after(colours, size[0], size[1], row.messages...)
					got := m.View().Content
					if !m.View().AltScreen {
						t.Error("it draws over what was on the screen")
					}
					compareGolden(t, name, strings.ReplaceAll(got, "\x1b", "␛")+"\n")
				})
			}
		}
	}
}

// TestSizes draws at sizes from nothing to large: no line is wider than the screen,
// and there are as many as it has.
func TestSizes(t *testing.T) {
	t.Parallel()
	for _, width := range []int{0, 1, 2, 3, 5, 8, 13, 20, 21, 29, 34, 40, 55, 66, 79, 80, 81, 89, 100, 120, 144} {
		for _, height := range []int{0, 1, 2, 3, 5, 8, 11, 12, 13, 20, 24, 60} {
			for focus := range panes {
				m := after(true, width, height, arrived(storm()), lostNow)
				m.focus = focus
				lines := m.lines()
				if width > 0 && height > 0 && len(lines) != height {
					t.Fatalf("%dx%d: %d lines", width, height, len(lines))
				}
				for _, line := range lines {
					if w := ansi.StringWidth(line); w > width {
						t.Fatalf("%dx%d: %d cells: %q", width, height, w, line)
					}
				}
			}
		}
	}
}

// What bad looks like does not hang on colours alone, and without them there is
// none.
func TestNoColor(t *testing.T) {
	t.Parallel()
	m := after(false, 120, 40, arrived(storm()), lostNow)
	for sequence := range strings.SplitSeq(m.View().Content, "\x1b[") {
		if code, _, _ := strings.Cut(sequence, "m"); strings.HasPrefix(code, "3") || strings.HasPrefix(code, "1;3") {
			t.Errorf("a colour: %q", sequence)
		}
	}
	if !strings.Contains(ansi.Strip(m.View().Content), "OVER ") {
		t.Error("nothing says that a client is over its budget")
	}
	for value, want := range map[string]bool{"": true, "1": false, "yes": false} {
		o := &Options{LookupEnv: func(string) (string, bool) { return value, value != "" }}
		if got := o.colours(); got != want {
			t.Errorf("NO_COLOR=%q: colours %t, want %t", value, got, want)
		}
	}
}

// hostile is what a name may try: to clear the screen, to set the title, to write
// the clipboard, to turn the text around, to hide, to begin a line of its own.
const hostile = "a\x1b[2J\x1b]0;owned\a\x1b]52;c;ZXZpbA==\x07\u009b31m\u202eb\u200b\r\n\tc\x00\x7f\u2028d"

// TestHostileNames fills every text of a picture with what might steer a terminal.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	answer := storm()
	poison(answer.ProtoReflect())
	lost := lostMsg{endpoint: hostile, problem: hostile, next: hostile}
	typed := []tea.Msg{press("/"), press("a")}
	for _, messages := range [][]tea.Msg{{arrived(answer)}, {arrived(answer), lost}, append(typed, arrived(answer))} {
		for _, width := range []int{30, 80, 400} {
			m := after(true, width, 60, messages...)
			for _, line := range m.lines() {
				check(t, line)
			}
		}
	}
	var out bytes.Buffer
	Text(&out, answer)
	for line := range strings.SplitSeq(out.String(), "\n") {
		check(t, line)
	}
}

// check wants nothing in a line but its own looks and what can be seen.
func check(t *testing.T, line string) {
	t.Helper()
	for _, own := range []string{"0", "1", "7", "33", "1;31"} {
		line = strings.ReplaceAll(line, "\x1b["+own+"m", "")
	}
	if strings.ContainsAny(line, "\x1b\a\r\n\t\x00\x7f\u009b\u202e\u200b\u2028") {
		t.Errorf("it reaches the terminal: %q", line)
	}
}

// poison sets every text of a message, and of those in it.
func poison(m protoreflect.Message) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
		case field.Message() != nil && field.IsList():
			for i := range value.List().Len() {
				poison(value.List().Get(i).Message())
			}
		case field.Message() != nil:
			poison(value.Message())
		case field.Kind() == protoreflect.StringKind && !field.IsList():
			m.Set(field, protoreflect.ValueOfString(hostile))
		}
		return true
	})
}

// TestPage shows in the documentation what the screen shows.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operating", "top.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := "```\n" + ansi.Strip(after(false, 80, 24, arrived(storm())).View().Content) + "\n```\n"
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/operating/top.md does not show\n%s", want)
	}
}

// TestText is what scripts get.
func TestText(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	Text(&out, storm())
	compareGolden(t, "once", out.String())
}
