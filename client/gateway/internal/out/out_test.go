package out_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/gateway/internal/out"
)

// timed is a response whose connection has deadlines.
type timed struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (w *timed) SetWriteDeadline(t time.Time) error {
	w.deadlines = append(w.deadlines, t)
	return nil
}

// TestWriter: what a library's proxy writes is bounded like all else, and what a provider says
// before its answer reaches nobody, nor takes away what the gateway has said.
func TestWriter(t *testing.T) {
	t.Parallel()
	recorded := &timed{ResponseRecorder: httptest.NewRecorder()}
	recorded.Header().Set("X-Quorlease-Warning", "said before")
	w := out.NewWriter(recorded, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	w.Header().Set("Set-Cookie", "theirs")
	w.WriteHeader(http.StatusEarlyHints)
	clear(w.Header())
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusAccepted)
	w.WriteHeader(http.StatusTeapot)
	if _, err := w.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := http.NewResponseController(w).Flush(); err != nil || !recorded.Flushed {
		t.Errorf("flushed %v: %v", recorded.Flushed, err)
	}
	if len(recorded.deadlines) != 1 || time.Until(recorded.deadlines[0]) < time.Second {
		t.Errorf("deadlines %v, want one that is a while ahead", recorded.deadlines)
	}
	w.End()
	if n := len(recorded.deadlines); n != 2 || !recorded.deadlines[1].IsZero() {
		t.Errorf("deadlines %v, want none in the end", recorded.deadlines)
	}
	got, header := recorded.Result(), recorded.Header()
	got.Body.Close()
	if got.StatusCode != http.StatusAccepted || recorded.Body.String() != "hello" || header.Get("Set-Cookie") != "" ||
		header.Get("X-Quorlease-Warning") != "said before" || header.Get("Content-Type") != "text/plain" {
		t.Errorf("%d %v %q", got.StatusCode, header, recorded.Body)
	}
}

// TestWriterAlone: who writes at once has answered 200.
func TestWriterAlone(t *testing.T) {
	t.Parallel()
	recorded := httptest.NewRecorder()
	w := out.NewWriter(recorded, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if _, err := w.Write([]byte("hello")); err != nil || recorded.Code != http.StatusOK || w.Status() != http.StatusOK {
		t.Errorf("%d, %v", recorded.Code, err)
	}
}
