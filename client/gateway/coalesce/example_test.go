package coalesce_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/quorlease/quorlease/client/gateway/coalesce"
)

// Two requests that ask the same get one answer, and one of them is charged.
func ExampleGroup() {
	group, err := coalesce.New[int](coalesce.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer group.Close()
	ctx := context.Background()
	both := make(chan struct{})
	ask := func(_ context.Context, w *coalesce.Writer[int]) error {
		<-both
		w.Begin(200)
		_, err := io.WriteString(w, "hello")
		return err
	}
	key := coalesce.Key{Tenant: "billing", Route: "POST /v1/chat", Model: "m"}
	first, _ := group.Join(ctx, key, ask)
	defer first.Close()
	second, _ := group.Join(ctx, key, ask)
	defer second.Close()
	close(both)
	for _, r := range []*coalesce.Reader[int]{first, second} {
		status, err := r.Meta(ctx)
		for err == nil {
			var piece []byte
			if piece, err = r.Next(ctx); err == nil {
				fmt.Printf("%d %s, charged %v\n", status, piece, r.Leads())
			}
		}
		if !errors.Is(err, io.EOF) {
			fmt.Println(err)
		}
	}
	fmt.Println(group.Stats().Executed, "call")
	// Output:
	// 200 hello, charged true
	// 200 hello, charged false
	// 1 call
}
