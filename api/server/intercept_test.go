package server

import (
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/decode"
)

// breaking is a stream that breaks behind a message that can't be decoded.
type breaking struct {
	grpc.ServerStream
	codec *decode.Codec
}

func (s *breaking) RecvMsg(v any) error {
	if err := s.codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer{0xff}}, v); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// What is remembered of a message is forgotten with it, however its stream ends (G10).
func TestG10BrokenStreamsLeaveNothing(t *testing.T) {
	t.Parallel()
	codec := decode.New()
	s := &identifiedStream{ServerStream: &breaking{codec: codec}, codec: codec}
	v := &quorleasev1.EventsWatchRequest{}
	if err := s.RecvMsg(v); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want what the stream said", err)
	}
	if err := codec.Decoded(v); err != nil {
		t.Errorf("%v is remembered for ever", err)
	}
}
