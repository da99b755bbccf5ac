package grpcmw_test

import (
	"google.golang.org/grpc"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/grpcmw"
)

// A server whose calls all count against one limit.
func Example() {
	c, err := client.New(client.Config{Endpoints: []string{"127.0.0.1:7101"}, Client: "catalogue"})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	limited, err := grpcmw.New(grpcmw.Config{Decider: c, Request: grpcmw.ByKey("calls", nil)})
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(limited.UnaryServer), grpc.StreamInterceptor(limited.StreamServer))
	defer server.Stop()
}
