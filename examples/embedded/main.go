// Command embedded limits what it does by itself, without a cluster: what it was granted and what it
// used is in a directory, and counts again after a restart.
//
//	go run ./examples/embedded --data ./state --limits ./examples/limits/provider.yaml
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/embedded"
)

func main() {
	data := flag.String("data", "state", "directory")
	limits := flag.String("limits", "limits.yaml", "limits file")
	flag.Parse()
	if err := work(context.Background(), embedded.Config{Dir: *data, Limits: *limits}); err != nil {
		fmt.Fprintln(os.Stderr, "embedded:", err)
		os.Exit(1)
	}
}

func work(ctx context.Context, config embedded.Config) error {
	authority, err := embedded.Open(ctx, config)
	if err != nil {
		return err
	}
	defer authority.Close()
	// With a cluster this is client.New, with its endpoints; nothing below differs.
	asks, err := authority.Client(client.Config{Client: "notes"})
	if err != nil {
		return err
	}
	defer asks.Close()
	decision, err := asks.Acquire(ctx, client.Request{
		Track: true, Attributes: map[string]string{"deployment": "main", "client": "notes"},
		Amounts: map[string]int64{"input_tokens": 2500, "output_tokens": 300},
	})
	if err != nil || !decision.Granted {
		return fmt.Errorf("not granted: %v, %w", decision, err)
	}
	settled, err := asks.Settle(ctx, decision.Lease, client.Usage{Dimension: "input_tokens", Used: 2480})
	if err != nil {
		return err
	}
	for _, charge := range settled.Charges {
		fmt.Println(charge.Limit, charge.Dimension, "used", charge.Used, "refunded", charge.Refunded)
	}
	return nil
}
