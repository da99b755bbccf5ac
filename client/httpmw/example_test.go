package httpmw_test

import (
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/httpmw"
)

// A server that asks before it serves, by the tenant that its authentication
// found.
func Example() {
	c, err := client.New(client.Config{
		Endpoints: []string{"127.0.0.1:7101"}, Client: "web",
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	limited, err := httpmw.New(httpmw.Config{
		Decider: c,
		Request: httpmw.ByKey("api", func(r *http.Request) string {
			user, _, _ := r.BasicAuth()
			return user
		}),
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", limited(http.NotFoundHandler()))
	_ = http.Server{Addr: "127.0.0.1:8080", Handler: mux, ReadHeaderTimeout: time.Second}
}
