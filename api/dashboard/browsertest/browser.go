// Package browsertest drives a headless Chromium for tests of the page.
package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// ErrMissing says that there is no browser to test with.
var ErrMissing = errors.New("no Chromium is installed (Debian: chromium)")

// closeWithin is how long the browser may take to end by itself.
const closeWithin = 10 * time.Second

// Browser is one process. Its tabs are used one after the other.
type Browser struct {
	ctx  context.Context //nolint:containedctx // it is not a call's, it is the library's handle of the process
	stop []context.CancelFunc
}

// Open starts a browser in which the names of hosts, as in "evil.example", are
// this machine. Close ends it.
func Open(ctx context.Context, hosts ...string) (*Browser, error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		return nil, ErrMissing
	}
	var rules []string
	for _, host := range hosts {
		rules = append(rules, "MAP "+host+" 127.0.0.1")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", strings.Join(rules, ",")))
	ctx, free := chromedp.NewExecAllocator(ctx, options...)
	ctx, stop := chromedp.NewContext(ctx)
	if err := chromedp.Do(ctx); err != nil {
		stop()
		free()
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return &Browser{ctx: ctx, stop: []context.CancelFunc{stop, free}}, nil
}

// Close ends the browser and waits for it.
func (b *Browser) Close() error {
	ctx, cancel := context.WithTimeout(b.ctx, closeWithin)
	defer cancel()
	err := chromedp.Cancel(ctx)
	for _, stop := range b.stop {
		stop()
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("end the browser: %w", err)
	}
	return nil
}

// Tab is a window of its own, so that it is never in the background.
type Tab struct {
	ctx  context.Context //nolint:containedctx // it is not a call's, it is the library's handle of the tab
	stop context.CancelFunc

	mu       sync.Mutex
	troubles []string // guarded by mu
}

// Tab opens one.
func (b *Browser) Tab() (*Tab, error) {
	ctx, stop := chromedp.NewContext(b.ctx, chromedp.WithNewWindow(true))
	t := &Tab{ctx: ctx, stop: stop}
	err := chromedp.Listen(ctx, t.hear)
	if err != nil {
		stop()
		return nil, fmt.Errorf("open a tab: %w", err)
	}
	return t, nil
}

// Close closes the tab.
func (t *Tab) Close() { t.stop() }

// hear keeps what a page should not have: exceptions, and errors in the log,
// among which is whatever its policy refused.
func (t *Tab) hear(event any) {
	trouble := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		trouble = e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			trouble += " " + e.ExceptionDetails.Exception.Description
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError {
			trouble = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if trouble == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.troubles = append(t.troubles, trouble)
}

// Troubles returns the errors so far.
func (t *Tab) Troubles() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.troubles...)
}

// Visit loads a page and returns its status.
func (t *Tab) Visit(url string) (int, error) {
	answer, err := chromedp.Run(t.ctx, chromedp.NavigateResponse(url))
	if err != nil {
		return 0, fmt.Errorf("visit %s: %w", url, err)
	}
	return int(answer.Status), nil
}

// Ask evaluates an expression in the page; a promise is waited for.
func Ask[T any](t *Tab, expression string) (T, error) {
	value, err := chromedp.Run(t.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		return value, fmt.Errorf("%s: %w", expression, err)
	}
	return value, nil
}

// Until waits until a condition holds in the page, looking once a frame, and
// returns the page's performance.now() then.
func (t *Tab) Until(condition string, within time.Duration) (float64, error) {
	return Ask[float64](t, fmt.Sprintf(`new Promise((done, fail) => {
		const end = performance.now() + %d;
		const look = () => {
			if (%s) done(performance.now());
			else if (performance.now() > end) fail(new Error("not within the time: " + document.body.innerText));
			else requestAnimationFrame(look);
		};
		look();
	})`, within.Milliseconds(), condition))
}

// Press presses keys one after the other; "\t" is Tab.
func (t *Tab) Press(keys string) error {
	for _, key := range keys {
		events := kb.Encode(key)
		if len(events) == 3 {
			// Down, what it types, and up. A key that goes down with its text types it
			// only if the page leaves it the key, as with a person.
			events[0].Text, events[0].UnmodifiedText = events[1].Text, events[1].UnmodifiedText
			events = slices.Delete(events, 1, 2)
		}
		for _, event := range events {
			if _, err := chromedp.Call(t.ctx, input.DispatchKeyEvent, *event); err != nil {
				return fmt.Errorf("press %q: %w", keys, err)
			}
		}
	}
	return nil
}

// Look sets the size in CSS pixels and the colours that a reader prefers.
func (t *Tab) Look(width, height int64, scheme string) error {
	err := chromedp.Do(t.ctx, chromedp.EmulateViewport(width, height))
	if err == nil {
		_, err = chromedp.Call(t.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
			},
		})
	}
	if err != nil {
		return fmt.Errorf("look at it in %s, %d wide: %w", scheme, width, err)
	}
	return nil
}

// Picture is the page as a PNG, all of its height.
func (t *Tab) Picture() ([]byte, error) {
	data, err := chromedp.Run(t.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		return nil, fmt.Errorf("take a picture: %w", err)
	}
	return data, nil
}
