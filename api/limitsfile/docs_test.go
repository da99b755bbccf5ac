package limitsfile_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile"
)

// The reference's own file is one that the parser takes, and each of its keys is
// explained.
func TestReferenceIsTrue(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/reference/limits-file.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	_, rest, _ := strings.Cut(page, "```yaml\n")
	sample, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page has no file")
	}
	if _, err := limitsfile.Parse([]byte(sample)); err != nil {
		t.Errorf("the page's file: %v", err)
	}
	// An unknown field makes the parser list those that it knows.
	for _, file := range []string{"limits: [{x: 1}]", "retry_budgets: [{x: 1}]", "clients: [{x: 1}]"} {
		_, err := limitsfile.Parse([]byte(file))
		if err == nil {
			t.Fatal(file)
		}
		_, list, _ := strings.Cut(err.Error(), "known are ")
		for _, key := range strings.Split(list, ", ") {
			if !strings.Contains(page, "| `"+key+"` |") {
				t.Errorf("%s is not explained", key)
			}
			if !strings.Contains(sample, key+":") {
				t.Errorf("%s is not in the page's file", key)
			}
		}
	}
}

// TestExampleIsTrue: the example that ships is one that the parser takes, with the
// figures of the third incident.
func TestExampleIsTrue(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../examples/limits/provider.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := resolvedAll(t, string(data))
	t.Run("S3-05", func(t *testing.T) {
		t.Parallel()
		want := map[string]int64{"requests": 1_000, "input_tokens": 400_000, "output_tokens": 80_000}
		for _, d := range all.GetLimits()[0].GetDimensions() {
			if d.GetAmount() != want[d.GetName()] || d.GetInterval() != int64(time.Minute) {
				t.Errorf("%s: %d in %v, want %d a minute", d.GetName(), d.GetAmount(), time.Duration(d.GetInterval()),
					want[d.GetName()])
			}
			delete(want, d.GetName())
		}
		if len(want) > 0 {
			t.Errorf("the example does not limit %v", want)
		}
	})
}
