// Command limiter does work as fast as a limit allows that it shares with every
// other program that asks the same authority.
//
//	go run ./examples/limiter
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/quorlease/quorlease/client"
)

func main() {
	if err := work(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "limiter:", err)
		os.Exit(1)
	}
}

func work(ctx context.Context) error {
	authority, err := client.New(client.Config{Endpoints: []string{"127.0.0.1:7101"}, Client: "billing"})
	if err != nil {
		return err
	}
	defer authority.Close()
	limiter, err := authority.Limiter(client.LimiterConfig{Limit: "demo", Dimension: "requests"})
	if err != nil {
		return err
	}
	for i := range 3 {
		if err := limiter.Wait(ctx); err != nil {
			return err
		}
		fmt.Println("call", i)
	}
	return nil
}
