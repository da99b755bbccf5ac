package forward

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/quorlease/quorlease/cluster/door"
)

// When a gateway with a hundred thousand waiters goes, the leader hears of each of
// them, in messages that it accepts (G10).
func TestG10ManyGoInSmallMessages(t *testing.T) {
	t.Parallel()
	const many = 100_000
	l := &link{config: &Config{Door: door.New(1, 1)}}
	for seq := range uint64(many) {
		l.mu.gone = append(l.mu.gone, seq+1)
	}
	next := uint64(1)
	for request := l.drain(); len(request.GetItems()) > 0; request = l.drain() {
		if n, size := len(request.GetItems()), proto.Size(request); n > itemsMax || size > bytesMax {
			t.Fatalf("%d items, %d bytes in one message", n, size)
		}
		for _, it := range request.GetItems() {
			if !it.GetCancel() || it.GetSeq() != next {
				t.Fatalf("got %v, want that %d has gone", it, next)
			}
			next++
		}
	}
	if next != many+1 {
		t.Errorf("the leader heard of %d, want %d", next-1, many)
	}
}
