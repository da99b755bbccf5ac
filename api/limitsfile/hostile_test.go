package limitsfile_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile"
)

// filled repeats part up to the largest file.
func filled(part string) string {
	return strings.Repeat(part, limitsfile.FileMax/len(part))
}

func numbered(format string) string {
	var b strings.Builder
	for i := 0; b.Len() < limitsfile.FileMax-32; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// cost is the processor time of this process and what it allocates meanwhile: no parallel
// test runs beside one that isn't, and what else the machine does takes none of it.
func cost(t *testing.T, work func()) (took time.Duration, bytes uint64) {
	t.Helper()
	used := func() (time.Duration, uint64) {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			t.Fatal(err)
		}
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), memory.TotalAlloc
	}
	before, allocated := used()
	work()
	took, bytes = used()
	return took - before, bytes - allocated
}

// A YAML parser that is handed these takes minutes, gigabytes or the whole
// stack. None may take long here, and none is a limits file.
func TestHostileFilesAreCheap(t *testing.T) {
	for name, file := range map[string]string{
		"brackets": filled("["), "balanced": filled("[") + "]", "braces": filled("{a: "),
		"dashes on a line": filled("- "), "dashes": filled("-\n"), "closers": filled("]"),
		"question marks": filled("? "), "colons": filled("a: "), "commas": "[" + filled(",")[:1000000/2] + "]",
		"keys": numbered("k%d: 1\n"), "empty keys": numbered("k%d:\n"), "empty keys in a list": filled("- a:\n"),
		"keys in a row": "{" + numbered("k%d: 1,") + "}", "keys without value": "{" + numbered("k%d,") + "}",
		"list": filled("- a\n"), "list in a row": "[" + filled("a,"), "anchors": filled("&a "), "tags": filled("!!a "),
		"lines": filled("\n"), "comments": filled("#\n"), "documents": filled("---\n"),
		"text":   "a: |\n" + filled("  x\n"),
		"quoted": "a: \"" + filled("\\n"), "long": "a: " + filled("x"), "words": "a: " + filled("x\n  "),
		"stairs": func() string {
			var b strings.Builder
			for i := 0; b.Len() < limitsfile.FileMax-1100; i++ {
				b.WriteString(strings.Repeat(" ", i) + "a:\n")
			}
			return b.String()
		}(),
		"laughs": "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n",
	} {
		t.Run(name, func(t *testing.T) {
			file = file[:min(len(file), limitsfile.FileMax)]
			took, bytes := cost(t, func() {
				if _, err := limitsfile.Parse([]byte(file)); err == nil {
					t.Error("accepted")
				}
			})
			// Ten times what the slowest takes; the parser alone takes more than that
			// for some of them.
			if took > 10*time.Second || bytes > 1<<30 {
				t.Errorf("took %v of processor time and %d bytes", took, bytes)
			}
		})
	}
}

// The largest honest file still passes.
func TestManyLimits(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("limits:\n")
	n := 0
	for ; b.Len() < limitsfile.FileMax-200; n++ {
		fmt.Fprintf(&b, "  - name: limit-%d\n    per: [key]\n"+
			"    rate:\n      requests: 10/min\n      tokens: 1000/min\n", n)
	}
	req, err := limitsfile.Parse([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(req.GetLimits()); got != n {
		t.Errorf("%d limits, want %d", got, n)
	}
}
