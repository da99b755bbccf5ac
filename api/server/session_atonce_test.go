package server_test

import (
	"fmt"
	"testing"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
)

// keyed is an acquire of a key.
func keyed(seq uint64, limit, key string) *quorleasev1.RequestItem {
	item := acquireItem(seq, limit)
	item.GetAcquire().Charges[0].Key = key
	return item
}

// What needs no entry is answered in memory that the next one takes, beside what waits
// for the node: each gets its own answer.
func TestSessionAnswersAtOnce(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, func(c *server.Config) { c.SessionItemsMax = 100 })
	for _, limit := range []string{"held", "slow"} {
		configure(t, dial(t, address), limit, func(l *quorleasev1.Limit) { l.Per = []string{"key"} })
	}
	node.AtOnce("held")
	node.Hold()
	stream := open(t, patient(t), address, hello())
	const many = 400
	var list []*quorleasev1.RequestItem
	limits := map[uint64]string{}
	for seq := range uint64(many) {
		limits[seq] = "held"
		if seq%16 == 7 {
			limits[seq] = "slow"
		}
		list = append(list, keyed(seq, limits[seq], fmt.Sprint("key-", seq)))
	}
	// What is wrong is said by the way of the others.
	list = append(list, keyed(many, "held", "\x00"), keyed(many+1, "absent", ""))
	send(t, stream, list...)
	check := func(answers map[uint64]*quorleasev1.ResponseItem) {
		t.Helper()
		for seq, answer := range answers {
			lease := answer.GetAcquire().GetLease()
			want := fmt.Sprint("key-", seq)
			if got := lease.GetCharges(); len(got) != 1 || got[0].GetLimit() != limits[seq] || got[0].GetKey() != want {
				t.Errorf("item %d: %v", seq, answer)
			}
		}
	}
	atOnce, _ := receive(t, stream, many-many/16+1)
	if reasonOf(atOnce[many]) != "BAD_FIELD" {
		t.Errorf("what is wrong: %v", atOnce[many])
	}
	delete(atOnce, many)
	check(atOnce)
	// The seq of one without an answer is in use, also for what could be answered at once.
	send(t, stream, keyed(7, "held", "key-7"))
	twice, _ := receive(t, stream, 1)
	if got := reasonOf(twice[7]); got != "BAD_FIELD" {
		t.Errorf("a seq that is in use: %v", twice)
	}
	node.Resume()
	later, _ := receive(t, stream, many/16+1)
	if reasonOf(later[many+1]) != "LIMIT_NOT_FOUND" {
		t.Errorf("what is not there: %v", later[many+1])
	}
	delete(later, many+1)
	check(later)
}
