package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/api/dashboard/browsertest"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// soon is how long the page may take to show what it was told.
const soon = 10 * time.Second

// evil is a name that the browser takes for this machine.
const evil = "evil.example"

// browser is started by the first test that needs it.
var browser = sync.OnceValues(func() (*browsertest.Browser, error) {
	return browsertest.Open(context.Background(), evil)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if b, err := browser(); err == nil {
		if err := b.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// page is the page in a tab, fed by the test.
type page struct {
	t    *testing.T
	tab  *browsertest.Tab
	feed *fakeFeed
	// quiet: the page may have errors.
	quiet bool
}

func newTab(t *testing.T) *browsertest.Tab {
	t.Helper()
	b, err := browser()
	if errors.Is(err, browsertest.ErrMissing) {
		t.Skipf("%v: the page was not looked at", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	tab, err := b.Tab()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tab.Close)
	return tab
}

// open shows a picture, and waits until it is there.
func open(t *testing.T, picture *quorleasev1.OverviewWatchResponse) *page {
	t.Helper()
	p := &page{t: t, tab: newTab(t), feed: newFakeFeed(t, picture)}
	p.look(1280, 900, "light")
	code, err := p.tab.Visit(p.feed.URL)
	if err != nil || code != 200 {
		t.Fatalf("%d: %v", code, err)
	}
	p.until(`document.getElementById("main").getAttribute("aria-busy") === "false"`)
	t.Cleanup(func() {
		if troubles := p.tab.Troubles(); len(troubles) > 0 && !p.quiet {
			t.Errorf("the page complains: %q", troubles)
		}
	})
	return p
}

// with is the same page for a subtest.
func (p *page) with(t *testing.T) *page { return &page{t: t, tab: p.tab, feed: p.feed} }

func (p *page) look(width, height int64, scheme string) {
	p.t.Helper()
	if err := p.tab.Look(width, height, scheme); err != nil {
		p.t.Fatal(err)
	}
}

func (p *page) until(condition string) float64 {
	p.t.Helper()
	at, err := p.tab.Until(condition, soon)
	if err != nil {
		p.t.Fatal(err)
	}
	return at
}

func (p *page) press(keys string) {
	p.t.Helper()
	if err := p.tab.Press(keys); err != nil {
		p.t.Fatal(err)
	}
}

// ask evaluates an expression of the page.
func ask[T any](p *page, expression string) T {
	p.t.Helper()
	value, err := browsertest.Ask[T](p.tab, expression)
	if err != nil {
		p.t.Fatal(err)
	}
	return value
}

// text is what an element says.
func (p *page) text(selector string) string {
	p.t.Helper()
	return ask[string](p, fmt.Sprintf(`document.querySelector(%q).textContent`, selector))
}

// attribute is one of an element's, "" where it has none.
func (p *page) attribute(selector, name string) string {
	p.t.Helper()
	return ask[string](p, fmt.Sprintf(`document.querySelector(%q).getAttribute(%q) ?? ""`, selector, name))
}

// row is what the cells of the first row of a table say.
func (p *page) row(table string) []string {
	p.t.Helper()
	cells := fmt.Sprintf(`document.querySelector("#%s tbody tr").cells`, table)
	return ask[[]string](p, `[...`+cells+`].map((c) => c.innerText)`)
}
