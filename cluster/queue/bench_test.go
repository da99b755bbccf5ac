package queue

import (
	"fmt"
	"testing"
	"time"
)

// full is a queue in which n wait at one place, of 1000 clients.
func full(b *testing.B, n int) (*Queue, []*Waiter) {
	b.Helper()
	q := open(Terms{})
	all := make([]*Waiter, n)
	for i := range all {
		all[i] = waiter(fmt.Sprint("client", i%1000), int64(1+i%7))
		all[i].Arrived, all[i].Until = time.Duration(i), time.Hour+time.Duration(i*7919%n)
		if _, ok := q.Push(0, all[i], 0); !ok {
			b.Fatal("no room")
		}
	}
	return q, all
}

const many = 100_000

func BenchmarkPushAndCancel(b *testing.B) {
	q, _ := full(b, many)
	one := waiter("client7", 3)
	i := 0
	for b.Loop() {
		i++
		one.Arrived, one.Until = time.Duration(many+i), time.Hour+time.Duration(i%many)
		q.Push(0, one, 0)
		q.Cancel(0, one)
	}
}

func BenchmarkCancelAnyAndPush(b *testing.B) {
	q, all := full(b, many)
	i := 0
	for b.Loop() {
		i++
		one := all[i*7919%many]
		q.Cancel(0, one)
		one.Arrived = time.Duration(many + i)
		q.Push(0, one, 0)
	}
}

func BenchmarkNextGrantedAndPush(b *testing.B) {
	q, _ := full(b, many)
	i := 0
	for b.Loop() {
		i++
		for _, head := range q.Next(0) {
			q.Granted(0, head)
			head.Arrived = time.Duration(many + i)
			q.Push(0, head, 0)
		}
	}
}

func BenchmarkNextDenied(b *testing.B) {
	q, _ := full(b, many)
	for b.Loop() {
		for _, head := range q.Next(0) {
			q.Denied(0, head, 0)
		}
	}
}

func BenchmarkStatus(b *testing.B) {
	q, _ := full(b, many)
	costs := []Cost{{"tokens", 1}}
	for b.Loop() {
		q.Status(0, gpt, "", costs)
	}
}
