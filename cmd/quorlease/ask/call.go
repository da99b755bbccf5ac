package ask

import (
	"context"

	"google.golang.org/grpc"
)

// Call is one call of a service, with its request, to whatever node is asked.
type Call[A any] func(context.Context, grpc.ClientConnInterface) (A, error)

// CallOf makes a call of a generated client's constructor and one of its
// methods.
func CallOf[C, Q, A any](
	client func(grpc.ClientConnInterface) C,
	method func(C, context.Context, Q, ...grpc.CallOption) (A, error),
	request Q,
) Call[A] {
	return func(ctx context.Context, conn grpc.ClientConnInterface) (A, error) {
		return method(client(conn), ctx, request)
	}
}

// Answer asks and returns what the node that answered said. Its errors are
// those of Do.
func Answer[A any](ctx context.Context, n *Nodes, kind Kind, call Call[A]) (answer A, err error) {
	err = n.Do(ctx, Question{Kind: kind, Call: func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
		answer, err = call(ctx, conn)
		return err
	}})
	return answer, err
}
