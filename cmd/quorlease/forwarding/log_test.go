package forwarding

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
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

// A panic is an error in the log, and an answer that can't be finished is not.
func TestPanics(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		cause any
		want  string
	}{
		{errors.New("a mistake"), `[ERROR] a request ended in a panic: cause="a mistake"`},
		{"a mistake", `[ERROR] a request ended in a panic: cause="a mistake"`},
		{http.ErrAbortHandler, ""},
	} {
		var out bytes.Buffer
		h := guarded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(row.cause) }),
			hclog.New(&hclog.LoggerOptions{Output: &out, DisableTime: true}))
		func() {
			defer func() {
				if again := recover(); again != http.ErrAbortHandler { //nolint:errorlint // it is this very one
					t.Errorf("%v panics with %v", row.cause, again)
				}
			}()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		}()
		if !strings.HasPrefix(out.String(), row.want) || row.want == "" && out.Len() > 0 {
			t.Errorf("%v: %q", row.cause, out.String())
		}
	}
}
