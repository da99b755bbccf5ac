package echo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"

	"github.com/quorlease/quorlease/api/codec"
)

const (
	serviceName = "quorlease.bench.Echo"
	unaryMethod = "/" + serviceName + "/Unary"
	manyMethod  = "/" + serviceName + "/Many"
)

// service is what the description asks of a server.
type service interface {
	unary(batch *Batch) *Batch
}

// server answers each item of a batch with an item of its own.
type server struct{}

func (server) unary(batch *Batch) *Batch {
	answer := &Batch{Items: make([]Item, len(batch.Items))}
	for i := range batch.Items {
		answer.Items[i] = Item{Seq: batch.Items[i].Seq, Payload: batch.Items[i].Payload}
	}
	return answer
}

var many = grpc.StreamDesc{
	StreamName: "Many", ServerStreams: true, ClientStreams: true,
	Handler: func(_ any, stream grpc.ServerStream) error {
		for {
			batch := &Batch{}
			if err := stream.RecvMsg(batch); err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
			if err := stream.SendMsg(server{}.unary(batch)); err != nil {
				return err
			}
		}
	},
}

var description = grpc.ServiceDesc{
	ServiceName: serviceName, HandlerType: (*service)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Unary",
		Handler: func(s any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			batch := &Batch{}
			if err := decode(batch); err != nil {
				return nil, err
			}
			return s.(service).unary(batch), nil
		},
	}},
	Streams: []grpc.StreamDesc{many},
}

// Serve answers on the listener until ctx ends, and closes it.
func Serve(ctx context.Context, listener net.Listener) error {
	s := grpc.NewServer(grpc.ForceServerCodecV2(encoding.CodecV2(codec.New())))
	s.RegisterService(&description, server{})
	stop := context.AfterFunc(ctx, s.Stop)
	defer stop()
	if err := s.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve echo: %w", err)
	}
	return nil
}
