package coalesce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// ticking returns work that writes n numbered pieces of a size, one each second.
func ticking(n, size int) Work[int] {
	return func(ctx context.Context, w *Writer[int]) error {
		w.Begin(200)
		for i := range n {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if _, err := w.Write(pieceOf(i, size)); err != nil {
				return err
			}
		}
		return nil
	}
}

func pieceOf(i, size int) []byte {
	return append(bytes.Repeat([]byte{'.'}, size-6), fmt.Sprintf("%05d\n", i)...)
}

func whole(n, size int) string {
	var all bytes.Buffer
	for i := range n {
		all.Write(pieceOf(i, size))
	}
	return all.String()
}

// TestLateJoin: one that comes mid-stream gets the beginning at once, and then the rest
// as it comes.
func TestLateJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{})
		began := time.Now()
		first := join(t, g, key(1), ticking(10, 100))
		<-time.After(5*time.Second + time.Millisecond)
		late := join(t, g, key(1), ticking(1, 10))
		for i := range 5 {
			piece, err := late.Next(t.Context())
			if err != nil || !bytes.Equal(piece, pieceOf(i, 100)) {
				t.Fatalf("piece %d: %q, %v", i, piece, err)
			}
		}
		if at := time.Since(began); at != 5*time.Second+time.Millisecond {
			t.Errorf("the beginning came after %v", at)
		}
		_, rest, err := read(t, late)
		if err != nil || rest != whole(10, 100)[500:] || time.Since(began) != 10*time.Second {
			t.Errorf("the rest: %d bytes after %v, %v", len(rest), time.Since(began), err)
		}
		if _, all, err := read(t, first); all != whole(10, 100) || err != nil {
			t.Errorf("the first: %d bytes, %v", len(all), err)
		}
	})
}

// TestSlowFollower: it does not hold up the others, and is cut off once it is too far
// behind them.
func TestSlowFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{CallBytes: 64 << 10})
		const n, size = 100, 4 << 10
		began := time.Now()
		slow := join(t, g, key(1), ticking(n, size))
		quick := join(t, g, key(1), ticking(n, size))
		if _, err := slow.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, all, err := read(t, quick)
		if err != nil || all != whole(n, size) || time.Since(began) != n*time.Second {
			t.Errorf("the quick one: %d bytes after %v, %v", len(all), time.Since(began), err)
		}
		if _, err := slow.Next(t.Context()); !errors.Is(err, ErrLagged) {
			t.Errorf("the slow one: %v", err)
		}
		s := g.Stats()
		if s.Cut != 1 || s.Bytes > 64<<10 {
			t.Errorf("%+v, want one cut off and 64 KiB kept", s)
		}
	})
}

// TestOnlySlowReaders: where all are slow the work waits for the fastest, and nobody who
// keeps up with that one is cut off.
func TestOnlySlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{CallBytes: 64 << 10})
		const n, size = 100, 4 << 10
		a, b := join(t, g, key(1), ticking(n, size)), join(t, g, key(1), ticking(n, size))
		for i := range n {
			<-time.After(3 * time.Second)
			for _, r := range []*Reader[int]{a, b} {
				piece, err := r.Next(t.Context())
				if err != nil || !bytes.Equal(piece, pieceOf(i, size)) {
					t.Fatalf("piece %d: %d bytes, %v", i, len(piece), err)
				}
			}
			if s := g.Stats(); s.Bytes > 64<<10 {
				t.Fatalf("%d bytes are kept", s.Bytes)
			}
		}
		for _, r := range []*Reader[int]{a, b} {
			if _, err := r.Next(t.Context()); !errors.Is(err, io.EOF) {
				t.Errorf("at the end: %v", err)
			}
		}
	})
}

// TestLongAnswer: the beginning of a long answer is not kept, so that nobody joins.
func TestLongAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{CallBytes: 64 << 10})
		const n, size = 40, 4 << 10
		first := join(t, g, key(1), ticking(n, size))
		var reading sync.WaitGroup
		reading.Go(func() {
			if _, all, err := read(t, first); all != whole(n, size) || err != nil {
				t.Errorf("the first: %d bytes, %v", len(all), err)
			}
		})
		<-time.After(20*time.Second + time.Millisecond)
		second := join(t, g, key(1), after(0, "anew"))
		if _, answer, err := read(t, second); answer != "anew" || err != nil || !second.Leads() {
			t.Errorf("the second: %q, %v", answer, err)
		}
		reading.Wait()
		if s := g.Stats(); s.Duplicates != 1 || s.Executed != 2 {
			t.Errorf("%+v, want one duplicate", s)
		}
	})
}

func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{Calls: 2, Followers: 2})
		join(t, g, key(1), after(time.Hour, ""))
		join(t, g, key(2), after(time.Hour, ""))
		if _, ok := g.Join(t.Context(), key(3), after(0, "")); ok {
			t.Error("three calls where two may be")
		}
		join(t, g, key(1), after(time.Hour, ""))
		third := join(t, g, key(1), after(time.Hour, ""))
		if _, ok := g.Join(t.Context(), key(1), after(0, "")); ok {
			t.Error("three followers where two may be")
		}
		if s := g.Stats(); s.Alone != 1 || s.Duplicates != 1 || s.Calls != 2 || s.Readers != 4 {
			t.Errorf("%+v, want one alone, one duplicate, 2 calls, 4 readers", s)
		}
		third.Close()
		join(t, g, key(1), after(time.Hour, ""))
	})
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{CallBytes: 64 << 10, Bytes: 64 << 10})
		piece := strings.Repeat("a", 16<<10)
		var readers []*Reader[int]
		for n := range 4 {
			readers = append(readers, join(t, g, key(n), after(0, piece)))
		}
		synctest.Wait()
		if _, ok := g.Join(t.Context(), key(4), after(0, "")); ok {
			t.Error("more bytes than may be kept")
		}
		for _, r := range readers {
			if _, answer, err := read(t, r); answer != piece || err != nil {
				t.Errorf("%d bytes, %v", len(answer), err)
			}
			r.Close()
		}
		synctest.Wait()
		if s := g.Stats(); s.Bytes != 0 || s.Calls != 0 {
			t.Errorf("%+v", s)
		}
		join(t, g, key(2), after(0, ""))
	})
}

// TestPressure: while all answers together are too long, each keeps little of its own.
func TestPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{CallBytes: 256 << 10, Bytes: 256 << 10})
		const n, size = 40, 8 << 10
		var readers []*Reader[int]
		for k := range 4 {
			readers = append(readers, join(t, g, key(k), ticking(n, size)))
		}
		<-time.After(time.Hour)
		if s := g.Stats(); s.Bytes < 200<<10 || s.Bytes > 300<<10 {
			t.Errorf("%d bytes are kept, want about 256 KiB", s.Bytes)
		}
		var reading sync.WaitGroup
		for _, r := range readers {
			reading.Go(func() {
				if _, all, err := read(t, r); all != whole(n, size) || err != nil {
					t.Errorf("%d bytes, %v", len(all), err)
				}
			})
		}
		reading.Wait()
	})
}

// TestBuffer: what is written is kept, whatever happens to the writer's buffer.
func TestBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{})
		r := join(t, g, key(1), func(_ context.Context, w *Writer[int]) error {
			buffer := make([]byte, 40<<10)
			for _, b := range []byte("ab") {
				for i := range buffer {
					buffer[i] = b
				}
				if n, err := w.Write(buffer); n != len(buffer) || err != nil {
					return fmt.Errorf("wrote %d: %w", n, err)
				}
			}
			clear(buffer)
			return nil
		})
		want := strings.Repeat("a", 40<<10) + strings.Repeat("b", 40<<10)
		synctest.Wait()
		if _, all, err := read(t, r); all != want || err != nil {
			t.Errorf("%d bytes, %v", len(all), err)
		}
	})
}

// TestCrowd: many clients that come, read, go and fail as they like. Whoever reads to the
// end has read all of one answer.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{
			Calls: 40, Followers: 20, CallBytes: 64 << 10, Bytes: 256 << 10,
			Transient: func(err error) bool { return errors.Is(err, errBusy) },
		})
		var clients sync.WaitGroup
		for n := range 200 {
			clients.Go(func() { visit(t, g, rand.New(rand.NewPCG(1, uint64(n)))) })
		}
		clients.Wait()
		synctest.Wait()
		s := g.Stats()
		if s.Calls != 0 || s.Readers != 0 || s.Bytes != 0 || s.Coalesced == 0 || s.Promoted == 0 || s.Cut == 0 {
			t.Errorf("%+v, want nothing left and everything seen", s)
		}
	})
}

func visit(t *testing.T, g *Group[int], r *rand.Rand) {
	for range 10 {
		<-time.After(time.Duration(r.IntN(3000)) * time.Millisecond)
		k := r.IntN(10)
		n, size := 5+k, 100+k*2000
		fails := r.IntN(4)
		reader, ok := g.Join(t.Context(), key(k), func(ctx context.Context, w *Writer[int]) error {
			switch fails {
			case 0:
				<-time.After(100 * time.Millisecond)
				return errBusy
			case 1:
				panic("no")
			}
			return ticking(n, size)(ctx, w)
		})
		if !ok {
			continue
		}
		var all bytes.Buffer
		for i := 0; ; i++ {
			piece, err := reader.Next(t.Context())
			if errors.Is(err, io.EOF) && all.String() != whole(n, size) {
				t.Errorf("%d bytes of %d", all.Len(), n*size)
			}
			if err != nil || r.IntN(30) == 0 {
				break
			}
			all.Write(piece)
			<-time.After(time.Duration(r.IntN(2500)) * time.Millisecond)
		}
		reader.Close()
	}
}

// TestFollowersLetGo: what a follower would have done is not held while it reads.
func TestFollowersLetGo(t *testing.T) {
	for name, begin := range map[string]func(w *Writer[int]) error{
		"head": func(w *Writer[int]) error {
			w.Begin(200)
			return nil
		},
		"piece": func(w *Writer[int]) error {
			_, err := io.WriteString(w, "hello")
			return err
		},
		"failure": func(*Writer[int]) error { return errBusy },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := group(t, Config{})
				join(t, g, key(1), func(ctx context.Context, w *Writer[int]) error {
					if err := begin(w); err != nil {
						return err
					}
					<-ctx.Done()
					return context.Cause(ctx)
				})
				follower := join(t, g, key(1), func(context.Context, *Writer[int]) error { return nil })
				if follower.work == nil {
					t.Fatal("it may have to lead, and has no work")
				}
				if _, err := follower.Meta(t.Context()); err != nil && !errors.Is(err, errBusy) {
					t.Fatal(err)
				}
				if follower.work != nil || follower.Leads() {
					t.Error("it holds work that it will not do")
				}
			})
		})
	}
}
