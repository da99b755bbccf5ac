package real_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/quorlease/quorlease/bench/gateways"
	"github.com/quorlease/quorlease/bench/gateways/real"
	"github.com/quorlease/quorlease/bench/upstream"
)

// losing is a provider whose first answer is lost: it has done the work, and whoever asked dies
// before the answer arrives.
type losing struct {
	http.Handler
	once sync.Once
	// done is closed when the work is done, and died by whoever kills who asked.
	done, died chan struct{}
}

// ServeHTTP answers, the first time nobody.
func (l *losing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.once.Do(func() {
		l.Handler.ServeHTTP(httptest.NewRecorder(), r)
		close(l.done)
		<-l.died
		panic(http.ErrAbortHandler)
	})
	l.Handler.ServeHTTP(w, r)
}

// TestKeysAndADeadGateway: a gateway is killed between the provider's answer and its receipt, and the
// program comes again with the same key at another one. One effect comes of it where the provider honours
// keys, and two where it does not, as the documents say.
func TestKeysAndADeadGateway(t *testing.T) {
	for honoured, want := range map[bool]int64{true: 1, false: 2} {
		t.Run(fmt.Sprintf("S3-11_honoured_%v", honoured), func(t *testing.T) {
			l := &losing{done: make(chan struct{}), died: make(chan struct{})}
			setting := plenty()
			setting.Nodes, setting.Provider.HonourKeys = 1, honoured
			s, err := real.Open(t.Context(), real.Config{
				Binary: binary, Dir: folder(t), Pace: 1,
				Before: func(provider http.Handler) http.Handler { l.Handler = provider; return l },
			}, setting)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			write := gateways.Request{
				Path: "/v1/chat/completions", Body: []byte(`{"model":"m","messages":[{"role":"user","content":"note"}]}`),
				Header: http.Header{
					"X-Client-Id": {"program"}, "Authorization": {"Bearer none"}, "Idempotency-Key": {"task-17"},
				},
			}
			var asking sync.WaitGroup
			asking.Go(func() {
				if got, err := s.Send(t.Context(), 0, write); err == nil {
					t.Errorf("the gateway that was killed has answered %d %s", got.Status, got.Body)
				}
			})
			<-l.done
			if err := s.KillGateway(0); err != nil {
				t.Error(err)
			}
			asking.Wait()
			close(l.died)
			var first gateways.Answer
			for i := range 2 {
				got, err := s.Send(t.Context(), 1, write)
				if err != nil || got.Status != http.StatusOK {
					t.Fatalf("at the other gateway: %v, %d %s", err, got.Status, got.Body)
				}
				if i == 0 {
					first = got
				} else if string(got.Body) != string(first.Body) || got.Header.Get("Idempotent-Replayed") != "true" {
					t.Errorf("again there: %v %s, want %s", got.Header, got.Body, first.Body)
				}
			}
			if n := s.Provider().Ledger().Outcomes[upstream.Served]; n != want {
				t.Errorf("%d effects, want %d", n, want)
			}
		})
	}
}
