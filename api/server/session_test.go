package server_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
)

func TestSessionAnswersEveryKind(t *testing.T) {
	t.Parallel()
	_, _, address := start(t, nil)
	configure(t, dial(t, address), "a", nil)
	stream := open(t, patient(t), address, hello())
	used := []*quorleasev1.Usage{{Dimension: "requests", Used: 1}}
	send(t, stream,
		&quorleasev1.RequestItem{Seq: 1, Operation: &quorleasev1.RequestItem_Acquire{Acquire: &quorleasev1.AcquireRequest{
			LeaseId: leaseID, Track: true, Charges: charge("a", 4),
		}}},
		&quorleasev1.RequestItem{Seq: 2, Operation: &quorleasev1.RequestItem_Renew{Renew: &quorleasev1.RenewRequest{
			LeaseId: leaseID, Ttl: durationpb.New(time.Minute), Sequence: 1, Used: used,
		}}},
		&quorleasev1.RequestItem{Seq: 3, Operation: &quorleasev1.RequestItem_Settle{Settle: &quorleasev1.SettleRequest{
			LeaseId: leaseID, Used: used,
		}}},
		&quorleasev1.RequestItem{Seq: 4, Operation: &quorleasev1.RequestItem_Release{Release: &quorleasev1.ReleaseRequest{
			LeaseId: leaseID,
		}}},
		acquireItem(5, "absent"),
		&quorleasev1.RequestItem{Seq: 6, Operation: &quorleasev1.RequestItem_Peek{Peek: &quorleasev1.PeekRequest{
			Charges: charge("a", 9),
		}}},
		&quorleasev1.RequestItem{Seq: 7, Operation: &quorleasev1.RequestItem_Peek{Peek: &quorleasev1.PeekRequest{
			Charges: charge("absent", 1),
		}}},
		&quorleasev1.RequestItem{Seq: 8},
		&quorleasev1.RequestItem{Seq: 9, Timeout: durationpb.New(-1), Operation: acquireItem(0, "a").GetOperation()},
		&quorleasev1.RequestItem{Seq: 10, Operation: &quorleasev1.RequestItem_Cancel{}},
	)
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	answers, _ := receive(t, stream, 9)
	if answers[1].GetAcquire().GetLease().GetId() != leaseID ||
		answers[2].GetRenew().GetTtl().AsDuration() != time.Minute ||
		answers[3].GetSettle().GetState() != quorleasev1.LeaseState_SETTLED ||
		answers[6].GetPeek().GetDecision() != quorleasev1.Decision_GRANTED {
		t.Errorf("got %v", answers)
	}
	for seq, want := range map[uint64]string{
		4: "LEASE_CONFLICT", 5: "LIMIT_NOT_FOUND", 7: "LIMIT_NOT_FOUND", 8: "BAD_FIELD", 9: "BAD_FIELD",
	} {
		if got := reasonOf(answers[seq]); got != want {
			t.Errorf("item %d: reason %q, want %q", seq, got, want)
		}
	}
	// The client has said all and has all its answers: the session ends well.
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
}

// A client that waits for the headers knows that its hello was accepted, before
// it has asked for anything.
func TestSessionStandsBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	_, _, address := start(t, nil)
	stream := open(t, patient(t), address, hello())
	header, err := stream.Header()
	if err != nil || header == nil {
		t.Fatalf("header %v, %v", header, err)
	}
	send(t, stream, acquireItem(1, "a"))
	receive(t, stream, 1)
}

// An item that names no client is its session's.
func TestSessionNamesTheClient(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	stream := open(t, patient(t), address, hello())
	for seq, client := range []string{"", "other"} {
		item := acquireItem(uint64(seq), "a")
		item.GetAcquire().Client = client
		send(t, stream, item)
		receive(t, stream, 1)
		if got, want := node.Last().GetAcquire().GetClient(), cmp.Or(client, "c"); got != want {
			t.Errorf("client %q: counted for %q, want %q", client, got, want)
		}
	}
}

// What is answered while a message is under way goes into the next one.
func TestSessionCoalescesAnswers(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	configure(t, dial(t, address), "a", nil)
	node.Hold()
	stream := open(t, patient(t), address, hello())
	const n = 2000
	for first := uint64(0); first < n; first += 500 {
		var items []*quorleasev1.RequestItem
		for seq := first; seq < first+500; seq++ {
			items = append(items, acquireItem(seq, "a"))
		}
		send(t, stream, items...)
	}
	eventually(t, func() bool { _, held, _ := node.Counts(); return held == n })
	node.Resume()
	answers, messages := receive(t, stream, n)
	granted := 0
	for _, a := range answers {
		if a.GetAcquire().GetDecision() == quorleasev1.Decision_GRANTED {
			granted++
		}
	}
	if granted != 10 || messages > n/4 {
		t.Errorf("%d granted in %d messages", granted, messages)
	}
}

// A client that does not wait for answers is not read, and nothing grows.
func TestSessionBackpressure(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, func(c *server.Config) { c.SessionItemsMax = 10 })
	configure(t, dial(t, address), "a", nil)
	node.Hold()
	stream := open(t, patient(t), address, hello())
	for seq := range uint64(100) {
		send(t, stream, acquireItem(seq, "a"))
	}
	eventually(t, func() bool { _, held, _ := node.Counts(); return held == 10 })
	// As soon as there is room the rest comes in.
	node.Resume()
	answers, _ := receive(t, stream, 100)
	if submitted, _, _ := node.Counts(); len(answers) != 100 || submitted != 101 {
		t.Errorf("%d answers, %d operations", len(answers), submitted)
	}
}

func TestSessionMemoryIsBounded(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, func(c *server.Config) { c.SessionBytesMax = 1 << 20 })
	configure(t, dial(t, address), "a", func(l *quorleasev1.Limit) { l.Per = []string{"key"} })
	node.Hold()
	stream := open(t, patient(t), address, hello())
	for seq := range uint64(1000) {
		item := acquireItem(seq, "a")
		item.GetAcquire().GetCharges()[0].Key = strings.Repeat("k", 512)
		send(t, stream, item)
	}
	message, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if got := reasonOf(message.GetItems().GetItems()[0]); got != "OVERLOADED" {
		t.Errorf("got %v", message)
	}
	if _, held, _ := node.Counts(); held > 500 {
		t.Errorf("%d items are held", held)
	}
}

func TestSessionCancel(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	configure(t, dial(t, address), "a", nil)
	node.Hold()
	stream := open(t, patient(t), address, hello())
	send(t, stream, acquireItem(7, "a"), acquireItem(8, "a"))
	send(t, stream, &quorleasev1.RequestItem{Seq: 7, Operation: &quorleasev1.RequestItem_Cancel{}})
	answers, _ := receive(t, stream, 1)
	if got := codes.Code(answers[7].GetError().GetCode()); got != codes.Canceled {
		t.Errorf("got %v", answers)
	}
	// The seq is free again.
	send(t, stream, acquireItem(7, "a"))
	eventually(t, func() bool { _, held, _ := node.Counts(); return held == 2 })
	node.Resume()
	answers, _ = receive(t, stream, 2)
	if answers[7].GetAcquire() == nil || answers[8].GetAcquire() == nil {
		t.Errorf("got %v", answers)
	}
}

func TestSessionSeqInUse(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	configure(t, dial(t, address), "a", nil)
	node.Hold()
	stream := open(t, patient(t), address, hello())
	send(t, stream, acquireItem(1, "a"), acquireItem(1, "a"))
	message, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	item := message.GetItems().GetItems()[0]
	if reasonOf(item) != "BAD_FIELD" || item.GetError().GetMessage() != "items[1].seq: 1 is in use" {
		t.Errorf("got %v", item)
	}
	node.Resume()
	answers, _ := receive(t, stream, 1)
	if answers[1].GetAcquire().GetDecision() != quorleasev1.Decision_GRANTED {
		t.Errorf("the first: %v", answers)
	}
}

// A vanished client leaves nothing behind.
func TestSessionEndCancelsWhatIsOpen(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	node.Hold()
	ctx, cancel := context.WithCancel(patient(t))
	stream := open(t, ctx, address, hello())
	send(t, stream, acquireItem(1, "a"), acquireItem(2, "a"), acquireItem(3, "a"))
	eventually(t, func() bool { _, held, _ := node.Counts(); return held == 3 })
	cancel()
	eventually(t, func() bool {
		_, held, cancelled := node.Counts()
		return held == 0 && cancelled == 3
	})
}

func TestSessionMistakesEndIt(t *testing.T) {
	t.Parallel()
	_, _, address := start(t, nil)
	many := make([]*quorleasev1.RequestItem, 513)
	for i := range many {
		many[i] = acquireItem(uint64(i), "a")
	}
	large := acquireItem(1, "a")
	large.GetAcquire().Client = strings.Repeat("c", 300<<10)
	items := func(list ...*quorleasev1.RequestItem) *quorleasev1.SessionRequest {
		return &quorleasev1.SessionRequest{Kind: &quorleasev1.SessionRequest_Items{
			Items: &quorleasev1.RequestItems{Items: list},
		}}
	}
	greet := func(h *quorleasev1.Hello) *quorleasev1.SessionRequest {
		return &quorleasev1.SessionRequest{Kind: &quorleasev1.SessionRequest_Hello{Hello: h}}
	}
	for _, test := range []struct {
		name     string
		messages []*quorleasev1.SessionRequest
		want     string
	}{
		{"no hello", []*quorleasev1.SessionRequest{items(acquireItem(1, "a"))}, "hello: missing"},
		{"nothing", []*quorleasev1.SessionRequest{{}}, "hello: missing"},
		{"no session id", []*quorleasev1.SessionRequest{greet(&quorleasev1.Hello{})}, "hello.session_id: missing"},
		{
			"bad client",
			[]*quorleasev1.SessionRequest{greet(&quorleasev1.Hello{Client: "\x00", SessionId: leaseID})},
			`hello.client: "\x00" has a control character`,
		},
		{"two hellos", []*quorleasev1.SessionRequest{greet(hello()), greet(hello())}, "items: missing"},
		{"too many items", []*quorleasev1.SessionRequest{greet(hello()), items(many...)}, "513 items, more than 512"},
		{"too many bytes", []*quorleasev1.SessionRequest{greet(hello()), items(large)}, "bytes, more than 262144"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			stream := open(t, patient(t), address, nil)
			for _, message := range test.messages {
				if err := stream.Send(message); err != nil && !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
			}
			_, err := stream.Recv()
			if err == nil || !strings.Contains(err.Error(), test.want) || server.ErrorOf(err).Cause.MayHaveHappened {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// Closing answers what is open, refuses what is new, and ends the session with a
// reason.
func TestSessionDrains(t *testing.T) {
	t.Parallel()
	node, s, address := start(t, func(c *server.Config) { c.DrainMax = 10 * time.Second })
	configure(t, dial(t, address), "a", nil)
	node.Hold()
	stream := open(t, patient(t), address, hello())
	idle := open(t, patient(t), address, hello())
	send(t, stream, acquireItem(1, "a"))
	eventually(t, func() bool { _, held, _ := node.Counts(); return held == 1 })
	s.Drain()
	send(t, stream, acquireItem(2, "a"))
	answers, _ := receive(t, stream, 1)
	if got := reasonOf(answers[2]); got != "SHUTTING_DOWN" {
		t.Errorf("a new item: %v", answers)
	}
	node.Resume()
	answers, _ = receive(t, stream, 1)
	if answers[1].GetAcquire().GetDecision() != quorleasev1.Decision_GRANTED {
		t.Errorf("the open item: %v", answers)
	}
	for name, one := range map[string]sessionClient{"busy": stream, "idle": idle} {
		if _, err := one.Recv(); server.ErrorOf(err).Cause.Reason != "SHUTTING_DOWN" {
			t.Errorf("%s session ends with %v", name, err)
		}
	}
	if s.Ready() {
		t.Error("still ready")
	}
}

// A peek waits as long as its own caller does, not as long as another's.
func TestSessionPeeksHaveTheirOwnPatience(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	configure(t, dial(t, address), "a", nil)
	stream := open(t, patient(t), address, hello())
	node.Fail(context.DeadlineExceeded)
	send(t, stream, &quorleasev1.RequestItem{
		Seq: 1, Timeout: durationpb.New(time.Microsecond),
		Operation: &quorleasev1.RequestItem_Peek{Peek: &quorleasev1.PeekRequest{Charges: charge("a", 1)}},
	})
	answers, _ := receive(t, stream, 1)
	if got := codes.Code(answers[1].GetError().GetCode()); got != codes.DeadlineExceeded {
		t.Errorf("got %v", answers)
	}
	node.Fail(nil)
	var items []*quorleasev1.RequestItem
	for seq := range uint64(50) {
		items = append(items, &quorleasev1.RequestItem{
			Seq:       seq,
			Operation: &quorleasev1.RequestItem_Peek{Peek: &quorleasev1.PeekRequest{Charges: charge("a", 1)}},
		})
	}
	send(t, stream, items...)
	if answers, _ = receive(t, stream, 50); len(answers) != 50 {
		t.Error(fmt.Sprint(answers))
	}
}
