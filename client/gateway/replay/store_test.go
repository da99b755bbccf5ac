package replay

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/client/gateway/canon"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sum is the n-th hash, of which any part differs.
func sum(n int) (s canon.Sum) {
	binary.BigEndian.PutUint64(s[:], uint64(n)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(s[8:], uint64(n))
	return s
}

func store(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

var plain = http.Header{"Content-Type": {"application/json"}, "X-Ratelimit-Remaining-Requests": {"7"}, "Date": {"now"}}

// work does the work of a key, if nobody has done it, and says what became of it.
func work(s *Store, key, payload int, status int, body string) Standing {
	turn, _, standing := s.Begin(sum(key), sum(payload))
	if standing == First {
		turn.Begin(status, plain)
		turn.Write([]byte(body))
		turn.End(true)
	}
	return standing
}

// TestStandings: what becomes of a key at each point of its life.
func TestStandings(t *testing.T) {
	t.Run("S3-11_one_effect_and_its_answer", func(t *testing.T) {
		s := store(t, Config{})
		turn, _, standing := s.Begin(sum(1), sum(1))
		if standing != First {
			t.Fatalf("%d, want the first", standing)
		}
		for payload, want := range map[int]Standing{1: InFlight, 2: Reused} {
			if _, _, got := s.Begin(sum(1), sum(payload)); got != want {
				t.Errorf("payload %d in flight: %d, want %d", payload, got, want)
			}
		}
		turn.Begin(http.StatusCreated, plain)
		turn.Write([]byte("a "))
		turn.Write([]byte("note"))
		turn.End(true)
		turn.End(false)
		for range 2 {
			_, answer, got := s.Begin(sum(1), sum(1))
			if got != Kept || answer.Status != http.StatusCreated || string(answer.Body) != "a note" {
				t.Errorf("%d: %+v", got, answer)
			}
			if want := (http.Header{"Content-Type": {"application/json"}}); !maps.EqualFunc(answer.Header, want, slices.Equal) {
				t.Errorf("%v, want %v", answer.Header, want)
			}
		}
		if _, _, got := s.Begin(sum(1), sum(2)); got != Reused {
			t.Errorf("another payload: %d, want reused", got)
		}
		if got := work(s, 2, 1, 200, "x"); got != First {
			t.Errorf("another key: %d, want the first", got)
		}
	})
	for name, end := range map[string]func(*Turn){
		"cut":                func(t *Turn) { t.Begin(200, plain); t.Write([]byte("half")); t.End(false) },
		"never_begun":        func(t *Turn) { t.End(true) },
		"spoilt":             func(t *Turn) { t.Begin(200, plain); t.Write([]byte("x")); t.Spoil(); t.End(true) },
		"too_many_requests":  func(t *Turn) { t.Begin(429, plain); t.End(true) },
		"overloaded":         func(t *Turn) { t.Begin(503, plain); t.Write([]byte("x")); t.End(true) },
		"wrong_key":          func(t *Turn) { t.Begin(401, plain); t.End(true) },
		"too_large":          func(t *Turn) { t.Begin(200, plain); t.Write(make([]byte, 1<<20)); t.End(true) },
		"too_large_headers":  func(t *Turn) { t.Begin(200, http.Header{"Link": {strings.Repeat("x", 1<<15)}}); t.End(true) },
		"in_flight_upstream": func(t *Turn) { t.Begin(409, plain); t.End(true) },
	} {
		t.Run("not_kept_"+name, func(t *testing.T) {
			s := store(t, Config{})
			turn, _, _ := s.Begin(sum(1), sum(1))
			end(turn)
			if got := work(s, 1, 2, 200, "again"); got != First {
				t.Errorf("%d, want the first", got)
			}
			if _, a, got := s.Begin(sum(1), sum(2)); got != Kept || string(a.Body) != "again" {
				t.Errorf("%d %q", got, a.Body)
			}
			if s := s.Stats(); s.Flying != 0 || s.Answers != 1 || s.Bytes != chunkSize+indexCost {
				t.Errorf("something is left: %+v", s)
			}
		})
	}
}

// TestTime: an answer goes when it is too old, whether anybody asks or not.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t, Config{Keep: time.Hour})
		large := strings.Repeat("x", inlineMax+1)
		for i := range 200 {
			if got := work(s, i, i, 200, large); got != First {
				t.Fatalf("%d: %d", i, got)
			}
			<-time.After(time.Minute)
			synctest.Wait()
			if n := s.Stats().Answers; n != min(i+1, 59) {
				t.Fatalf("%d answers after %d minutes, of an hour's", n, i+1)
			}
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if s := s.Stats(); s.Answers != 0 || s.Bytes >= shards*chunkSize || s.Evicted != 0 {
			t.Errorf("%+v are left", s)
		}
		work(s, 1, 1, 200, "x")
		if err := s.Bound(Config{Keep: time.Second}); err != nil {
			t.Error(err)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if n := s.Stats().Answers; n != 0 {
			t.Errorf("%d answers are kept for longer than is said now", n)
		}
		work(s, 2, 2, 200, "x")
		if err := s.Bound(Config{Keep: -1}); err != nil || !s.Off() || s.Stats().Answers != 0 {
			t.Errorf("%v: %+v are kept although nothing is to be", err, s.Stats())
		}
	})
}

// TestBytes: whatever comes, there is never more than is allowed, and the newest are there.
func TestBytes(t *testing.T) {
	t.Run("a_hundred_thousand_keys_in_64_MB", func(t *testing.T) {
		s := store(t, Config{})
		body := strings.Repeat("x", 512)
		for i := range 100_000 {
			work(s, i, i, 200, body)
		}
		if s := s.Stats(); s.Answers != 100_000 || s.Bytes > 64<<20 || s.Evicted != 0 {
			t.Errorf("%+v, want all of them in 64 MiB", s)
		}
	})
	t.Run("more_keys_than_fit", func(t *testing.T) {
		const most, keys = 4 << 20, 100_000
		s := store(t, Config{Bytes: most})
		body := strings.Repeat("x", 100)
		for i := range keys {
			work(s, i, i, 200, body)
			if i%1000 == 0 && s.Stats().Bytes > most {
				t.Fatalf("%+v after %d keys", s.Stats(), i)
			}
		}
		n := s.Stats()
		if n.Bytes > most || n.Bytes < most*9/10 || n.Answers < 10_000 || n.Answers+int(n.Evicted) != keys {
			t.Errorf("%+v of %d", n, most)
		}
		for i := keys - 5_000; i < keys; i++ {
			if _, _, got := s.Begin(sum(i), sum(i)); got != Kept {
				t.Fatalf("%d, one of the newest, has gone", i)
			}
		}
	})
	t.Run("large_ones_and_recordings", func(t *testing.T) {
		const most = 4 << 20
		s := store(t, Config{Bytes: most})
		var turns []*Turn
		piece := make([]byte, 100<<10)
		for i := range 100 {
			turn, _, _ := s.Begin(sum(i), sum(i))
			turn.Begin(200, plain)
			for range 1 + i%9 {
				turn.Write(piece)
			}
			if i%3 == 0 {
				turn.End(true)
			} else {
				turns = append(turns, turn)
			}
			if n := s.Stats(); n.Bytes > most {
				t.Fatalf("%+v after %d", n, i)
			}
		}
		for _, turn := range turns {
			turn.End(false)
		}
		if err := s.Bound(Config{Bytes: most, Keep: -1}); err != nil {
			t.Fatal(err)
		}
		if n := s.Stats(); n.Flying != 0 || n.Answers != 0 || n.Bytes > shards*chunkSize || n.Large == 0 {
			t.Errorf("%+v is left of nothing", n)
		}
	})
	t.Run("less_is_allowed_meanwhile", func(t *testing.T) {
		s := store(t, Config{})
		for i := range 20_000 {
			work(s, i, i, 200, strings.Repeat("x", 1000))
		}
		if err := s.Bound(Config{Bytes: 4 << 20}); err != nil || s.Stats().Bytes > 4<<20 || s.Stats().Answers == 0 {
			t.Errorf("%v: %+v of 4 MiB", err, s.Stats())
		}
	})
}

// TestTogether: of many that come at once one does the work, however often the bounds change.
func TestTogether(t *testing.T) {
	s := store(t, Config{Bytes: 4 << 20})
	var first [64]atomic.Int64
	var joined sync.WaitGroup
	for range 8 {
		joined.Go(func() {
			for i := range len(first) * 4 {
				key := i % len(first)
				turn, answer, standing := s.Begin(sum(key), sum(0))
				switch standing {
				case First:
					first[key].Add(1)
					turn.Begin(200, plain)
					turn.Write([]byte(fmt.Sprint(key)))
					turn.End(true)
				case Kept:
					if string(answer.Body) != fmt.Sprint(key) {
						t.Errorf("key %d has the answer %q", key, answer.Body)
					}
				case InFlight, Reused:
				}
				if i%32 == 0 {
					if err := s.Bound(Config{Bytes: 4<<20 + int64(i)}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	joined.Wait()
	for key := range first {
		if n := first[key].Load(); n != 1 {
			t.Errorf("the work of key %d was done %d times", key, n)
		}
	}
}

func TestClosed(t *testing.T) {
	s := store(t, Config{})
	work(s, 1, 1, 200, "x")
	turn, _, _ := s.Begin(sum(2), sum(2))
	s.Close()
	s.Close()
	turn.Begin(200, plain)
	turn.End(true)
	if n := s.Stats(); n.Answers != 0 || n.Flying != 0 {
		t.Errorf("%+v is kept by what is closed", n)
	}
}

func TestConfig(t *testing.T) {
	for _, row := range []struct {
		config Config
		want   string
	}{
		{Config{}, ""},
		{Config{Keep: -time.Hour}, ""},
		{Config{AnswerMax: 100 << 20}, ""},
		{Config{Bytes: 4 << 20}, ""},
		{Config{Keep: time.Millisecond}, "keep: 1ms, 1s to 720h0m0s"},
		{Config{Bytes: 1 << 20}, "bytes: 1048576, 4194304 to 1099511627776"},
		{Config{Bytes: 4 << 20, AnswerMax: 2 << 20}, "answer max: 2097152, 1024 to 1048576"},
	} {
		got := ""
		s, err := New(row.config)
		if err != nil {
			got = strings.TrimPrefix(err.Error(), "replay configuration: ")
		} else {
			s.Close()
		}
		if got != row.want {
			t.Errorf("%+v: %q, want %q", row.config, got, row.want)
		}
	}
}

// BenchmarkReplay is an answer that is given again among a hundred thousand, and what all of them
// take of the heap.
func BenchmarkReplay(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := store(b, Config{})
	body := strings.Repeat("x", 512)
	for i := range 100_000 {
		work(s, i, i, 200, body)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, _, got := s.Begin(sum(i), sum(i)); got != Kept {
			b.Fatal(got)
		}
		i = (i + 1) % 100_000
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "heap-MB")
	b.ReportMetric(float64(s.Stats().Bytes)/1e6, "counted-MB")
}
