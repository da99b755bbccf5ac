package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/quorlease/quorlease/bench/upstream"
)

// simulatedProvider is `provider API TOKENS_PER_SECOND`: it prints where it listens, and
// answers there until it is told to stop.
func simulatedProvider() {
	if err := provide(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func provide() error {
	if len(os.Args) != 3 {
		return fmt.Errorf("usage: provider API TOKENS_PER_SECOND")
	}
	perSecond, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		return err
	}
	server, err := upstream.New(upstream.Config{
		API: upstream.API(os.Args[1]), Clock: upstream.Speed(1), TokensPerSecond: perSecond,
	})
	if err != nil {
		return err
	}
	listening, err := upstream.Listen(server)
	if err != nil {
		return err
	}
	fmt.Println(listening.URL)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	return listening.Close()
}
