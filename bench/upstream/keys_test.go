package upstream_test

import (
	"net/http/httptest"
	"testing"

	"github.com/quorlease/quorlease/bench/upstream"
)

// TestKeys: where keys are honoured what comes again has no effect, and elsewhere it has.
func TestKeys(t *testing.T) {
	for _, honoured := range []bool{true, false} {
		s := open(t, upstream.Config{API: upstream.OpenAI, HonourKeys: honoured})
		var first string
		for i, key := range []string{"k", "k", "l", "", ""} {
			r := post(t, paths[upstream.OpenAI], body(""))
			if key != "" {
				r.Header.Set("Idempotency-Key", key)
			}
			answer := httptest.NewRecorder()
			s.ServeHTTP(answer, r)
			if i == 0 {
				first = answer.Body.String()
			}
			same := i == 1 && honoured
			if i > 0 && (answer.Body.String() == first) != same || (answer.Header().Get("Idempotent-Replayed") != "") != same {
				t.Errorf("honoured %v, call %d with the key %q: %v %s", honoured, i, key, answer.Header(), answer.Body)
			}
		}
		want := map[bool]int64{true: 4, false: 5}[honoured]
		l := s.Ledger()
		if l.Outcomes[upstream.Served] != want || l.Outcomes[upstream.Replayed] != 5-want || l.Billed.Output != want*20 {
			t.Errorf("honoured %v: %+v, billed %+v; want %d effects", honoured, l.Outcomes, l.Billed, want)
		}
	}
}
