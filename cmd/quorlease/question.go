package main

import (
	"context"

	"github.com/quorlease/quorlease/cmd/quorlease/ask"
)

// answerOf asks the nodes of the flags one question and makes its error
// readable.
func answerOf[A any](ctx context.Context, a *app, kind ask.Kind, call ask.Call[A]) (answer A, err error) {
	nodes, err := ask.Connect(a.endpoints, a.timeout)
	if err != nil {
		return answer, err
	}
	defer nodes.Close()
	nodes.Wait(a.wait)
	answer, err = ask.Answer(ctx, nodes, kind, call)
	return answer, ask.Explain(err)
}
