// Package decode makes requests of bytes, and says whose mistake it is where that
// can't be done.
package decode

import (
	"errors"
	"fmt"
	"regexp"
	"sync"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	protocodec "github.com/quorlease/quorlease/api/codec"
	"github.com/quorlease/quorlease/api/codec/items"
	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// ErrBadRequest says that the caller made a mistake that no field has a name for.
var ErrBadRequest = errors.New("bad request")

// Codec is our codec for messages, but bytes that can't be decoded are the
// caller's mistake and not the server's, and the field is named where there is
// one (A22).
//
// gRPC answers INTERNAL by itself as soon as Unmarshal fails, before anybody else
// can say something. So Unmarshal says that all is well, remembers what is wrong,
// and whoever received the message asks Decoded about it.
type Codec struct {
	protocodec.Codec

	mu    sync.Mutex
	wrong map[any]error
}

// New returns a codec for one server.
func New() *Codec {
	return &Codec{Codec: protocodec.New(), wrong: map[any]error{}}
}

// Unmarshal decodes into v, a message.
func (c *Codec) Unmarshal(data mem.BufferSlice, v any) error {
	err := c.decode(data, v)
	message, ok := v.(proto.Message)
	if _, ours := v.(*items.Requests); ours {
		message, ok = &quorleasev1.SessionRequest{}, true
	}
	if err == nil || !ok {
		return err
	}
	// The generated decoder says only that some text is not UTF-8. The slow one
	// knows the names.
	slow := dynamicpb.NewMessage(message.ProtoReflect().Descriptor())
	if named := proto.Unmarshal(data.Materialize(), slow); named != nil {
		err = named
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong[v] = undecodable(err)
	return nil
}

// decode leaves text that is not UTF-8 to package convert where that looks at
// every text of a message, and else to the decoder.
func (c *Codec) decode(data mem.BufferSlice, v any) error {
	switch v.(type) {
	case *items.Requests, *quorleasev1.AcquireRequest, *quorleasev1.SettleRequest,
		*quorleasev1.ReleaseRequest, *quorleasev1.RenewRequest, *quorleasev1.PeekRequest,
		*quorleasev1.ReportRequest:
		return c.Codec.Unmarshal(data, v)
	}
	return c.CodecV2.Unmarshal(data, v)
}

// Decoded is what is wrong with a message that was received, once.
func (c *Codec) Decoded(v any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.wrong[v]
	delete(c.wrong, v)
	return err
}

// invalidField finds the name in the decoder's message.
var invalidField = regexp.MustCompile(`field (?:[A-Za-z0-9_]+\.)*([a-z0-9_]+) contains invalid UTF-8`)

// undecodable is what the caller is told of bytes that are no request.
func undecodable(err error) error {
	if match := invalidField.FindStringSubmatch(err.Error()); match != nil {
		return limitsfile.FieldErrors{{Field: match[1], Problem: "is not valid UTF-8"}}
	}
	return fmt.Errorf("%w: the request can't be decoded", ErrBadRequest)
}
