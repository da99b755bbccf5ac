package outcome_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorlease/quorlease/cmd/quorlease/outcome"
)

// TestAnEarlierFileStays: until a run is over, and where its page can't be made, the file
// of the run before is what it was.
func TestAnEarlierFileStays(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "page.html")
	holds := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	words := func(text string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	}
	if err := outcome.Write("html", path, words("before, and longer")); err != nil {
		t.Fatal(err)
	}
	if err := outcome.Writable("html", path); err != nil {
		t.Fatal(err)
	}
	holds("before, and longer")
	half := errors.New("half of it")
	if err := outcome.Write("html", path, func(w io.Writer) error {
		return errors.Join(words("half")(w), half)
	}); !errors.Is(err, half) {
		t.Errorf("%v, want %v", err, half)
	}
	holds("before, and longer")
	if err := outcome.Write("html", path, words("after")); err != nil {
		t.Fatal(err)
	}
	holds("after")
}

func TestWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	nowhere := filepath.Join(t.TempDir(), "no", "page.html")
	nothing := func(io.Writer) error { return nil }
	for name, err := range map[string]error{
		"before": outcome.Writable("html", nowhere), "after": outcome.Write("html", nowhere, nothing),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "--html: open "+nowhere) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := errors.Join(outcome.Writable("html", ""), outcome.Write("html", "", nothing)); err != nil {
		t.Error(err)
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	data, failed := t.TempDir(), errors.New("failed")
	if err := outcome.Within(data, "test", func(dir, program string) error {
		if !filepath.IsAbs(dir) || filepath.Dir(dir) != data || program == "" {
			t.Errorf("%s, %s", dir, program)
		}
		return failed
	}); !errors.Is(err, failed) {
		t.Errorf("%v, want %v", err, failed)
	}
	if left, err := os.ReadDir(data); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	err := outcome.Within(filepath.Join(data, "no"), "test", nil)
	if err == nil || !strings.HasPrefix(err.Error(), "--data: ") {
		t.Error(err)
	}
}
