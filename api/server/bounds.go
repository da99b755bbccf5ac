package server

import (
	"context"
	"fmt"

	"google.golang.org/grpc/tap"

	"github.com/quorlease/quorlease/cluster"
)

// sessionMax, in bytes, and itemsMax bound one message of a session. A client that
// wants more than one message holds sends several.
const (
	sessionMax = 256 << 10
	itemsMax   = 512
)

var errOverloadedStreams = fmt.Errorf("%w: too many calls are open", cluster.ErrOverloaded)

// tap counts a call before anything is allocated for it; a call whose headers
// came and whose message does not come counts too.
func (s *Server) tap(ctx context.Context, _ *tap.Info) (context.Context, error) {
	if !s.begin() {
		return nil, ErrorOf(errOverloadedStreams)
	}
	context.AfterFunc(ctx, s.end)
	return ctx, nil
}

// begin counts one more open call, unless there are too many.
func (s *Server) begin() bool {
	if s.open.Add(1) > int64(s.config.StreamsMax) {
		s.open.Add(-1)
		return false
	}
	return true
}

func (s *Server) end() { s.open.Add(-1) }
