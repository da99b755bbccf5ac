package httpwrap_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/quorlease/quorlease/client/httpwrap"
)

func Example() {
	calls := 0
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		fmt.Println("attempt", r.Header.Get("x-retry-attempt"))
		if calls == 1 {
			w.Header().Set("retry-after-ms", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer provider.Close()
	wrapped, err := httpwrap.New(httpwrap.Config{
		// Nobody waits for the random part in an example.
		Draw: func(int64) int64 { return 0 },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	program := http.Client{Transport: wrapped}
	defer program.CloseIdleConnections()
	answer, err := program.Get(provider.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	fmt.Println(answer.StatusCode)
	// Output:
	// attempt 0
	// attempt 1
	// 200
}
