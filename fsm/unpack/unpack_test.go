package unpack_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/fsmtest"
	"github.com/quorlease/quorlease/fsm/look"
	"github.com/quorlease/quorlease/fsm/unpack"
)

// check decodes with both decoders, and fails where they differ.
func check(t *testing.T, d *unpack.Decoder, data []byte) *logv1.Entry {
	t.Helper()
	want := &logv1.Entry{}
	wantErr := want.UnmarshalVT(data)
	got, found, err := d.Entry(data)
	switch {
	case (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error():
		t.Fatalf("%x: error %v, the generated decoder says %v", data, err, wantErr)
	case err != nil:
	case !proto.Equal(got, want):
		t.Fatalf("%x: decoded\n%v\nthe generated decoder makes it\n%v", data, got, want)
	case found != look.Through(want):
		t.Fatalf("%x: found %+v, want %+v", data, found, look.Through(want))
	}
	return got
}

func encode(t testing.TB, e *logv1.Entry) []byte {
	t.Helper()
	data, err := e.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// busy is an entry of acquires as they come by the thousand, and of some that don't.
func busy(i int) *logv1.Entry {
	e := &logv1.Entry{Stamp: int64(i) - 5, Wall: int64(i), Term: 3}
	for n := range 70 {
		charge := fsmtest.Charge("limit", fmt.Sprintf("key-%d", (n*i)%90), "requests", int64(n-2))
		op := &logv1.Acquire{Client: "client", Class: strings.Repeat("c", n%3), Charges: []*logv1.Charge{charge}}
		switch n % 9 {
		case 3:
			op.Track, op.LeaseId = true, fsmtest.LeaseID("l")
		case 4:
			op.Charges = append(op.Charges, fsmtest.Charge(strings.Repeat("long", n), "", "tokens", 1))
		case 5:
			charge.Keep, op.Owner, op.Revision, op.Content = 7, "owner", new(uint64), 0xfedcba9876543210
		case 6:
			charge.Escrow = &logv1.EscrowID{Node: "n1", Boot: 4, Sequence: 9}
		case 7:
			charge.Key, op.Client = "not \xff UTF-8", "\xfe"
		case 8:
			op.Charges = nil
		}
		e.Operations = append(e.Operations, fsmtest.Operation(op))
	}
	return e
}

// TestAsTheGeneratedDecoder decodes entries of every kind, whole and damaged.
func TestAsTheGeneratedDecoder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var d unpack.Decoder
	world := fsmtest.Seeded(1)
	for i := range 200 {
		e := world.Entry()
		if i%4 == 0 {
			e = busy(i)
		}
		data := encode(t, e)
		check(t, &d, data)
		for range 50 {
			bad := append([]byte(nil), data...)
			if len(bad) == 0 {
				break
			}
			bad[random.IntN(len(bad))] ^= byte(1 << random.IntN(8))
			check(t, &d, bad[:len(bad)-random.IntN(2)])
		}
	}
}

// TestNothingIsShared: what was decoded stays as it was, whatever becomes of the bytes
// and of the decoder.
func TestNothingIsShared(t *testing.T) {
	t.Parallel()
	var d unpack.Decoder
	var entries []*logv1.Entry
	for i := range 20 {
		data := encode(t, busy(i))
		entries = append(entries, check(t, &d, data))
		clear(data)
	}
	for i, got := range entries {
		if want := busy(i); !proto.Equal(got, want) {
			t.Fatalf("entry %d became\n%v\nit was\n%v", i, got, want)
		}
	}
}

// TestFieldsOfANewerProgram are found wherever they are.
func TestFieldsOfANewerProgram(t *testing.T) {
	t.Parallel()
	field := func(to []byte) []byte {
		return protowire.AppendVarint(protowire.AppendTag(to, 99, protowire.VarintType), 1)
	}
	within := func(tag protowire.Number, inner []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, tag, protowire.BytesType), inner)
	}
	for name, data := range map[string][]byte{
		"entry": field(nil), "operation": within(3, field(within(1, nil))), "acquire": within(3, within(1, field(nil))),
		"charge": within(3, within(1, within(6, field(nil)))),
	} {
		var d unpack.Decoder
		if _, found, err := d.Entry(data); err != nil || !found.Unknown {
			t.Errorf("%s: %+v, %v; want a field that is not known", name, found, err)
		}
		check(t, &d, data)
	}
}

// TestAFewPiecesOfMemory: what is alike costs no memory of its own.
func TestAFewPiecesOfMemory(t *testing.T) {
	e := &logv1.Entry{Stamp: 1}
	for n := range 64 {
		e.Operations = append(e.Operations, fsmtest.Operation(&logv1.Acquire{
			Client: "client", Charges: []*logv1.Charge{fsmtest.Charge("limit", fmt.Sprintf("key-%d", n), "requests", 1)},
		}))
	}
	data := encode(t, e)
	// Each decoder scatters texts in its own way: some of 64 share a place.
	const decoders = 100
	var all [decoders]float64
	for i := range all {
		var d unpack.Decoder
		check(t, &d, data)
		all[i] = testing.AllocsPerRun(10, func() {
			if _, _, err := d.Entry(data); err != nil {
				t.Fatal(err)
			}
		})
	}
	slices.Sort(all[:])
	if got := all[decoders/2]; got > 16 {
		t.Errorf("%v allocations for 64 acquires", got)
	}
	if few, most := all[0], all[decoders*9/10]; most > few {
		t.Errorf("%v allocations for 64 acquires in one decoder of ten, %v in another: texts push each other out", most, few)
	}
}

func FuzzEntry(f *testing.F) {
	world := fsmtest.Seeded(2)
	for i := range 10 {
		f.Add(encode(f, world.Entry()))
		f.Add(encode(f, busy(i)))
	}
	var d unpack.Decoder
	f.Fuzz(func(t *testing.T, data []byte) { check(t, &d, data) })
}

func BenchmarkEntry(b *testing.B) {
	data := encode(b, busy(2))
	var d unpack.Decoder
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := d.Entry(data); err != nil {
			b.Fatal(err)
		}
	}
}
