package dashboard_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// focused is what has the focus: its id, or the column of a title.
const focused = `(() => {
	const e = document.activeElement;
	return e.id || e.dataset.column || e.className || e.tagName;
})()`

// outlined says whether one sees where the focus is.
const outlined = `(() => {
	const style = getComputedStyle(document.activeElement);
	return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
})()`

func TestEverythingByKeyboard(t *testing.T) {
	p := open(t, storm())
	t.Run("Tab_goes_through_everything_in_order_and_shows_where", func(t *testing.T) {
		p := p.with(t)
		want := []string{
			"skip", "filter", "pause", "help-open", "A",
			"client", "throttled", "fraction", "left", "budget", "honours", "error", "series-provider",
			"name", "used", "waiting", "state", "denied", "id", "role", "healthy", "behind", "address", "version",
			"severity", "kind", "who", "since", "text", "runbook",
		}
		var got []string
		for range want {
			p.press("\t")
			got = append(got, ask[string](p, focused))
			if !ask[bool](p, outlined) {
				t.Errorf("nobody sees that %s has the focus", got[len(got)-1])
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("Enter_on_a_title_sorts", func(t *testing.T) {
		p := p.with(t)
		names := `[...document.querySelectorAll("#clients tbody bdi")].map((b) => b.textContent)
			.filter((n) => ["batch-scorer", "nightly-embed", "checkout", "support-bot"].includes(n))`
		given := ask[[]string](p, names)
		ask[bool](p, `(document.querySelector("#clients [data-column=client]").focus(), true)`)
		for _, step := range []struct{ sort, first string }{
			{"ascending", "batch-scorer"}, {"descending", "support-bot"}, {"", given[0]},
		} {
			p.press("\r")
			if got := p.attribute("#clients th", "aria-sort"); got != step.sort {
				t.Errorf("aria-sort %q, want %q", got, step.sort)
			}
			if got := ask[[]string](p, names); got[0] != step.first || len(got) != len(given) {
				t.Errorf("%s: %q, want %s first", step.sort, got, step.first)
			}
		}
		if got := ask[string](p, focused); got != "client" {
			t.Errorf("the focus went to %q", got)
		}
	})
	t.Run("every_column_can_be_sorted_by", func(t *testing.T) {
		p := p.with(t)
		ask[bool](p, `[...document.querySelectorAll("th button")].every((b) => {
			b.click(); b.click(); b.click();
			return true;
		})`)
	})
	t.Run("a_filter", func(t *testing.T) {
		p := p.with(t)
		rows := `document.querySelectorAll("#clients tbody tr").length`
		p.press("/")
		p.press("NIGHTLY")
		p.until(rows + ` === 1`)
		if got := p.row("clients"); !strings.HasPrefix(got[0], "nightly-embed") {
			t.Errorf("%q", got)
		}
		if got := p.text("#limits-none"); got != "Nothing here has that in it." {
			t.Errorf("%q", got)
		}
		p.press("?")
		if ask[bool](p, `document.getElementById("help").open`) {
			t.Error("a ? in the filter opens the help")
		}
		p.press("\x1b")
		p.until(rows + ` === 4`)
	})
	t.Run("help_opens_and_closes_and_the_focus_comes_back", func(t *testing.T) {
		p := p.with(t)
		for _, way := range [][2]string{{"?", "\x1b"}, {"\r", "\r"}} {
			ask[bool](p, `(document.getElementById("help-open").focus(), true)`)
			p.press(way[0])
			if got := ask[string](p, focused); got != "help-close" {
				t.Errorf("%q opens the help with the focus on %q", way[0], got)
			}
			p.press(way[1])
			p.until(`!document.getElementById("help").open && document.activeElement.id === "help-open"`)
		}
	})
	t.Run("p_holds_still", func(t *testing.T) {
		p := p.with(t)
		p.press("p")
		p.feed.show(t, calm())
		p.until(`document.getElementById("announce").textContent.startsWith("Over:")`)
		if got := p.text("#feed"); !strings.HasPrefix(got, "held still since") {
			t.Errorf("%q", got)
		}
		if got := ask[int](p, `document.querySelectorAll("#clients tbody tr").length`); got != 4 {
			t.Errorf("%d rows, though it holds still", got)
		}
		p.press("p")
		p.until(`document.querySelectorAll("#clients tbody tr").length === 1`)
		p.until(`document.getElementById("feed").textContent === "live"`)
	})
}

func TestALostNodeIsPlain(t *testing.T) {
	p := open(t, storm())
	p.quiet = true
	p.feed.cut(true)
	p.until(`!document.getElementById("lost").hidden`)
	p.until(`document.getElementById("lost").textContent.includes("shutting down")`)
	if got := p.text("#lost"); !strings.HasPrefix(got, "Disconnected since ") {
		t.Errorf("%q", got)
	}
	if got := p.text("#feed"); !strings.HasPrefix(got, "disconnected, asking again in ") {
		t.Errorf("%q", got)
	}
	if got := ask[int](p, `document.querySelectorAll("#clients tbody tr").length`); got != 4 {
		t.Errorf("%d rows are left of the last picture", got)
	}
	p.feed.cut(false)
	p.until(`document.getElementById("lost").hidden && document.getElementById("feed").textContent === "live"`)
}

// poor are texts with less contrast to their ground than 4.5, as "text: ratio".
const poor = `(() => {
	const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => {
		const [x, y, z] = [r, g, b].map((v) => v / 255)
			.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
		return 0.2126 * x + 0.7152 * y + 0.0722 * z;
	};
	const ground = (e) => {
		for (; e; e = e.parentElement) {
			const c = numbers(getComputedStyle(e).backgroundColor);
			if (c.length < 4 || c[3] > 0) return c;
		}
		return [255, 255, 255];
	};
	const found = [];
	for (const e of document.body.querySelectorAll("*")) {
		const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
		if (!own || !e.checkVisibility() || e.closest("noscript")) continue;
		const [a, b] = [light(numbers(getComputedStyle(e).color)), light(ground(e))];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) found.push(e.textContent.trim() + ": " + ratio.toFixed(2));
	}
	return found;
})()`

// wide are elements that stick out of the window.
const wide = `[...document.body.querySelectorAll("*")].filter((e) => e.checkVisibility() && !e.closest(".unseen")
	&& e.getBoundingClientRect().right > innerWidth + 1)
	.map((e) => e.tagName + " " + e.className + " " + e.textContent.slice(0, 40))`

func TestReadableEverywhere(t *testing.T) {
	picture := storm()
	picture.Clients[2].Client = strings.Repeat("checkout-", 14)
	p := open(t, picture)
	seen := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 800, 360} {
			p.look(width, 900, scheme)
			p.until(fmt.Sprintf(`innerWidth === %d && matchMedia("(prefers-color-scheme: %s)").matches`, width, scheme))
			if got := ask[[]string](p, poor); len(got) > 0 {
				t.Errorf("%s, %d wide: hard to read: %q", scheme, width, got)
			}
			if got := ask[[]string](p, wide); len(got) > 0 {
				t.Errorf("%s: wider than %d: %q", scheme, width, got)
			}
			seen[ask[string](p, `getComputedStyle(document.body).backgroundColor`)] = true
			data, err := p.tab.Picture()
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(t.ArtifactDir(), fmt.Sprintf("%s-%d.png", scheme, width))
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d grounds in two schemes", len(seen))
	}
	if ask[string](p, `getComputedStyle(document.querySelector("#clients td")).transitionDuration`) != "0s" {
		t.Error("it moves for somebody who wants nothing to move")
	}
}

// First paint depends on the machine; it is told, not judged.
func TestThePageIsSmallAndFast(t *testing.T) {
	p := open(t, storm())
	p.until(`performance.getEntriesByName("first-contentful-paint").length > 0`)
	paint := ask[float64](p, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
	t.Logf("first paint after %.0f ms", paint)
	from := ask[[]string](p, `[...new Set(performance.getEntriesByType("resource").map((r) => new URL(r.name).origin))]`)
	if !slices.Equal(from, []string{p.feed.URL}) {
		t.Errorf("it asked %q, want only %s", from, p.feed.URL)
	}
}
