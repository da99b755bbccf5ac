package forwarding

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
)

// What libraries log is written like what the command logs.
func TestLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(&handler{logger: hclog.New(&hclog.LoggerOptions{
		Output: &out, Level: hclog.Debug, DisableTime: true,
	})})
	log.Error("an error", "client", "a b")
	log.Log(t.Context(), slog.LevelWarn+1, "a warning")
	log.Log(t.Context(), slog.LevelDebug-1, "too small")
	log.WithGroup("").WithGroup("a").With("b", 1).WithGroup("c").Info("deep",
		"d", 2, slog.Group("e", "f", 3), slog.Group("", "g", 4))
	want := `[ERROR] an error: client="a b"
[WARN]  a warning
[INFO]  deep: a.b=1 a.c.d=2 a.c.e.f=3 a.c.g=4
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if log.Enabled(t.Context(), slog.LevelDebug-1) || !log.Enabled(t.Context(), slog.LevelDebug) {
		t.Error("a level that is not logged is enabled, or the other way round")
	}
}
