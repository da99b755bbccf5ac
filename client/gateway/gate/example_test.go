package gate_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/gate"
	"github.com/quorlease/quorlease/client/gateway/who"
)

// A server of gRPC whose callers have keys. Whoever asks for its health needs none.
func Example() {
	c, err := client.New(client.Config{Endpoints: []string{"127.0.0.1:7101"}, Client: "embedder"})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	clients, err := who.New(who.Config{Clients: []who.Client{
		{Name: "notes", Tenant: "notes-team", Keys: []string{who.HashKey("a key that was drawn at random")}},
	}})
	if err != nil {
		panic(err)
	}
	g, err := gate.New(gate.Config{
		Authority: c, Who: clients,
		Price: func(context.Context, *gate.Call) gate.Price {
			return gate.Price{Attributes: map[string]string{"deployment": "embedder"}, MaxWait: 5 * time.Second}
		},
		Free: func(method string) bool { return method == healthv1.Health_Check_FullMethodName },
	})
	if err != nil {
		panic(err)
	}
	defer g.Close()
	server := grpc.NewServer(grpc.UnaryInterceptor(g.UnaryServer), grpc.StreamInterceptor(g.StreamServer))
	defer server.Stop()
}

// The same for net/http. Nobody answers here, and who says nothing of himself is refused all the
// same.
func ExampleGate_HTTP() {
	c, err := client.New(client.Config{Endpoints: []string{"127.0.0.1:1"}, Client: "embedder"})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	clients, err := who.New(who.Config{Loopback: true})
	if err != nil {
		panic(err)
	}
	g, err := gate.New(gate.Config{Authority: c, Who: clients})
	if err != nil {
		panic(err)
	}
	defer g.Close()
	mux := http.NewServeMux()
	mux.Handle("POST /v1/embed", g.HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := gate.FromContext(r.Context())
		call.Used(map[string]int64{"tokens": 120})
		fmt.Fprintf(w, "attempt %d of %s", call.Attempt, call.Who.Client)
	})))
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/v1/embed", http.NoBody))
	fmt.Println(answer.Code)
	// Output: 401
}
