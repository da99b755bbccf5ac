package etcd

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"google.golang.org/grpc"

	"github.com/quorlease/quorlease/bench/compare/peer"
	"github.com/quorlease/quorlease/bench/compare/wire"
	"github.com/quorlease/quorlease/bench/load"
)

// door is one connection. It is every caller's asker.
type door struct {
	conn    *grpc.ClientConn
	way     peer.Way
	bucket  peer.Bucket
	keys    []string
	timeout time.Duration
}

// Asker is the same for all.
func (d *door) Asker(int) (load.Asker, error) { return d, nil }

// Close ends the connection.
func (d *door) Close() error { return d.conn.Close() }

// Ask asks in the door's way.
func (d *door) Ask(ctx context.Context, key int) (load.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	if d.way == Put {
		err := d.put(ctx, d.keys[key])
		return load.Answer{Granted: err == nil}, err
	}
	for {
		granted, written, err := d.take(ctx, d.keys[key])
		if written || err != nil {
			return load.Answer{Granted: granted}, err
		}
	}
}

// The fields that are used, by message.
const (
	rangeKey = 1

	answerKVs  = 2
	kvRevision = 3
	kvValue    = 5

	putKey, putValue = 1, 2

	compareTarget, compareKey, compareRevision = 2, 3, 6
	// targetRevision compares the revision in which a key was changed last. The
	// result that is asked for, equal, is the zero one.
	targetRevision = 2

	txnCompare, txnSuccess = 1, 2
	operationPut           = 2
	answerSucceeded        = 2
)

// state is a bucket as it is kept: its level in billionths of a token, and when
// that was, in nanoseconds of the caller's clock.
type state struct{ level, at int64 }

// stateBytes is its size.
const stateBytes = 16

func (s state) encode() []byte {
	value := binary.BigEndian.AppendUint64(make([]byte, 0, stateBytes), uint64(s.level))
	return binary.BigEndian.AppendUint64(value, uint64(s.at))
}

// errState: the value is no bucket's.
var errState = errors.New("the value is not a bucket")

func decode(value []byte) (state, error) {
	if len(value) != stateBytes {
		return state{}, errState
	}
	return state{int64(binary.BigEndian.Uint64(value)), int64(binary.BigEndian.Uint64(value[8:]))}, nil
}

// token is one in a level's unit.
const token = int64(time.Second)

// taken is the bucket after a token was asked for.
func taken(b *peer.Bucket, s state, now int64) (after state, granted bool) {
	full := b.Burst * token
	if passed := now - s.at; passed > 0 {
		// A full bucket needs no more; below that, the product fits.
		if missing := full - s.level; passed >= missing/b.PerSecond {
			s.level = full
		} else {
			s.level += passed * b.PerSecond
		}
		s.at = now
	}
	if s.level < token {
		return s, false
	}
	s.level -= token
	return s, true
}

// put writes what a bucket would be.
func (d *door) put(ctx context.Context, key string) error {
	value := state{d.bucket.Burst, time.Now().UnixNano()}.encode()
	_, err := wire.Call(ctx, d.conn, "/etcdserverpb.KV/Put", wire.Message(nil).Text(putKey, key).Bytes(putValue, value))
	return err
}

// take reads, decides, and writes; written is false where somebody else was faster.
// A refusal writes nothing.
func (d *door) take(ctx context.Context, key string) (granted, written bool, err error) {
	before, revision, err := d.read(ctx, key)
	if err != nil {
		return false, false, err
	}
	after, granted := taken(&d.bucket, before, time.Now().UnixNano())
	if !granted {
		return false, true, nil
	}
	compare := wire.Message(nil).Number(compareTarget, targetRevision).Text(compareKey, key).
		Number(compareRevision, revision)
	put := wire.Message(nil).Text(putKey, key).Bytes(putValue, after.encode())
	answer, err := wire.Call(ctx, d.conn, "/etcdserverpb.KV/Txn", wire.Message(nil).
		Bytes(txnCompare, compare).Bytes(txnSuccess, wire.Message(nil).Bytes(operationPut, put)))
	if err != nil {
		return false, false, err
	}
	succeeded, err := answer.First(answerSucceeded)
	return succeeded.Value == 1, succeeded.Value == 1, err
}

// read is the bucket as it is, and the revision in which it was written: 0 and a
// full one where it never was.
func (d *door) read(ctx context.Context, key string) (s state, revision int64, err error) {
	answer, err := wire.Call(ctx, d.conn, "/etcdserverpb.KV/Range", wire.Message(nil).Text(rangeKey, key))
	if err != nil {
		return state{}, 0, err
	}
	kv, err := answer.First(answerKVs)
	if err != nil {
		return state{}, 0, err
	}
	if kv.Bytes == nil {
		return state{d.bucket.Burst * token, time.Now().UnixNano()}, 0, nil
	}
	var value []byte
	err = wire.Message(kv.Bytes).Fields(func(f wire.Field) {
		if f.Number == kvRevision {
			revision = f.Value
		}
		if f.Number == kvValue {
			value = f.Bytes
		}
	})
	if err != nil {
		return state{}, 0, err
	}
	s, err = decode(value)
	return s, revision, err
}
