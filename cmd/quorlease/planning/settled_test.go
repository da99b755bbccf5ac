package planning

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is wrong with a file of settled tasks is said with its line and the value.
func TestSettledThatIsWrong(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ tasks, want string }{
		"no number":     {"1 2\n1 two\n", `tasks.txt:2: "two": want a whole number`},
		"one number":    {"\n# charged used\n1\n", `tasks.txt:3: "1": want two whole numbers, charged and used`},
		"three numbers": {"1 2 3\n", `tasks.txt:1: "1 2 3": want two whole numbers`},
		"no charge":     {"0 2\n", "tasks.txt:1: 0: a task is charged at least 1"},
		"negative":      {"5 -2\n", `tasks.txt:1: "-2": want a whole number`},
		"too few":       {strings.Repeat("1 1\n", 99), "tasks.txt: settled: 99 tasks, at least 100"},
		"far off": {
			strings.Repeat("1 2\n", 100), "tasks.txt: one in a hundred tasks used 100% more than it was charged: no margin",
		},
		"a long line": {strings.Repeat("1", 1<<20), "token too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &Options{settled: filepath.Join(t.TempDir(), "tasks.txt")}
			if err := os.WriteFile(o.settled, []byte(row.tasks), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := o.measure(); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %s", err, row.want)
			}
		})
	}
	both := &Options{settled: "tasks.txt", wrong: "8%"}
	if err := both.source(); err == nil || !strings.Contains(err.Error(), "--error and --settled both") {
		t.Errorf("both: %v", err)
	}
	both = &Options{settled: "tasks.txt", measured: true}
	if err := both.source(); err == nil || !strings.Contains(err.Error(), "--settled and --measured both") {
		t.Errorf("both: %v", err)
	}
}
