package usage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string) *Book {
	t.Helper()
	b, err := Open(Config{Dir: dir, Node: "n1", Metrics: metrics.New(), Logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// acquire asks for tokens of a limit, for a client.
func acquire(client, limit string, tokens int64) *logv1.Acquire {
	return &logv1.Acquire{Client: client, Charges: []*logv1.Charge{{Limit: limit, Dimension: "tokens", Amount: tokens}}}
}

func granted(yes bool) *logv1.AcquireResult { return &logv1.AcquireResult{Granted: yes} }

func asking(by string, hours, top int) Query { return Query{By: by, Hours: hours, Top: top} }

func pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// lines are the rows that a book answers, one a line.
func lines(b *Book, q Query) (list []string) {
	for _, r := range b.Ask(context.Background(), q, nil, nil).Rows {
		name := r.Name
		if r.Other {
			name = "(other)"
		}
		list = append(list, fmt.Sprintf("%s %s/%s %d+%d- %d+%d-",
			name, r.Limit, r.Dimension, r.Grants, r.Denials, r.Granted, r.Denied))
	}
	return list
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

// TestHours: what is counted is there by each name, for as many hours as somebody asks
// for, and after a restart.
func TestHours(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "usage")
	synctest.Test(t, func(t *testing.T) {
		b := open(t, dir)
		b.Decided(time.Now(), acquire("chat", "gpt", 100), "red", granted(true))
		b.Decided(time.Now(), acquire("chat", "gpt", 50), "blue", granted(false))
		repeated := granted(true)
		repeated.Repeated = true
		b.Decided(time.Now(), acquire("chat", "gpt", 9), "red", repeated)
		pass(time.Hour)
		b.Decided(time.Now(), acquire("batch", "gpt", 7), "red", granted(true))
		b.Decided(time.Now(), &logv1.Acquire{Charges: []*logv1.Charge{
			{Limit: "gpt", Dimension: "tokens", Amount: 1}, {Limit: "month", Dimension: "tokens", Amount: 1},
		}}, "", granted(true))
		check := func(what string, b *Book) {
			t.Helper()
			expect(t, what, lines(b, asking(ByClient, 2, 10)), "chat gpt/tokens 1+1- 100+50-", "batch gpt/tokens 1+0- 7+0-",
				" gpt/tokens 1+0- 1+0-", " month/tokens 1+0- 1+0-")
			expect(t, what, lines(b, asking(ByTeam, 2, 10)), "red gpt/tokens 2+0- 107+0-", " gpt/tokens 1+0- 1+0-",
				" month/tokens 1+0- 1+0-", "blue gpt/tokens 0+1- 0+50-")
			expect(t, what, lines(b, asking(ByLimit, 2, 10)), "gpt gpt/tokens 3+1- 108+50-", "month month/tokens 1+0- 1+0-")
			expect(t, what, lines(b, asking(ByLimit, 1, 10)), "gpt gpt/tokens 2+0- 8+0-", "month month/tokens 1+0- 1+0-")
			expect(t, what, lines(b, asking(ByClient, 2, 1)), "chat gpt/tokens 1+1- 100+50-",
				"(other) gpt/tokens 2+0- 8+0-", "(other) month/tokens 1+0- 1+0-")
		}
		check("while it counts", b)
		if err := errors.Join(b.Close(), b.Close()); err != nil {
			t.Fatal(err)
		}
		b = open(t, dir)
		check("after a restart in the same hour", b)
		b.Decided(time.Now(), acquire("batch", "gpt", 7), "red", granted(true))
		pass(30 * 24 * time.Hour)
		if got := lines(b, asking(ByLimit, HoursMost, 10)); len(got) != 2 || got[0] != "gpt gpt/tokens 4+1- 115+50-" {
			t.Errorf("after thirty days: %v", got)
		}
		pass(33 * 24 * time.Hour)
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("after 63 days: %v, %v", left, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	var none *Book
	none.Decided(time.Now(), acquire("chat", "gpt", 1), "", granted(true))
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}

// TestWhatIsWritten: a minute after it was counted it is on the disk, and a line that was
// damaged is left out.
func TestWhatIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := open(t, dir)
		b.Decided(time.Now(), acquire("chat", "gpt", 100), "", granted(true))
		b.Decided(time.Now(), acquire("batch", "gpt", 1), "", granted(true))
		pass(writeEvery)
		path := b.files.path(b.at)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		stat, err := os.Stat(path)
		if err != nil || stat.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", stat, err)
		}
		damaged := strings.Replace(string(text), `"granted":100`, `"granted":999`, 1)
		if err := os.WriteFile(path, []byte(damaged+"\nnonsense\n00000000 {}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		again := open(t, dir)
		expect(t, "one line is damaged", lines(again, asking(ByClient, 1, 10)), "batch gpt/tokens 1+0- 1+0-")
		if err := errors.Join(b.Close(), again.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestADiskThatFails: nothing is forgotten while it can't be written for a few hours, and
// what is then is counted.
func TestADiskThatFails(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "usage")
	synctest.Test(t, func(t *testing.T) {
		b := open(t, dir)
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		for range closedMost + 2 {
			b.Decided(time.Now(), acquire("chat", "gpt", 1), "", granted(true))
			pass(time.Hour)
		}
		if b.failed.Load() == 0 || b.lost.Load() != 2 {
			t.Errorf("%d failures, %d hours lost, want 2", b.failed.Load(), b.lost.Load())
		}
		if err := b.files.make(); err != nil {
			t.Fatal(err)
		}
		pass(writeEvery)
		if left, err := os.ReadDir(dir); err != nil || len(left) != closedMost || len(b.closed) != 0 {
			t.Errorf("%v, %v: want %d hours; %d wait", left, err, closedMost, len(b.closed))
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := Open(Config{Dir: "/dev/null/usage", Metrics: metrics.New()}); err == nil {
		t.Error("a book was opened in a file")
	}
}

// TestBounds: a hundred thousand names take no more room than there is, and nothing that
// they were granted is left out (G10).
func TestBounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, dir)
	const names = 100_000
	for i := range names {
		client := fmt.Sprint("client-", i, strings.Repeat("ü", 200))
		b.Decided(time.Now(), acquire(client, fmt.Sprint("limit-", i%1000), 1), "t", granted(true))
	}
	b.Decided(time.Now(), acquire("huge", "limit-0", math.MaxInt64), "t", granted(false))
	b.Decided(time.Now(), acquire("huge", "limit-0", math.MaxInt64), "t", granted(false))
	if n := max(len(b.book.names), len(b.book.keys)); n > entriesMost+othersMost+1 {
		t.Errorf("%d entries", n)
	}
	for _, by := range []string{ByClient, ByTeam, ByLimit} {
		for _, top := range []int{1, 50, TopMost} {
			answer := b.Ask(t.Context(), asking(by, 1, top), nil, nil)
			var all Count
			for _, r := range answer.Rows {
				all.add(r.Count)
			}
			want := Count{Grants: names, Granted: names, Denials: 2, Denied: math.MaxInt64}
			if all != want || len(answer.Rows) > top+othersMost+1 {
				t.Errorf("by %s, top %d: %+v in %d rows", by, top, all, len(answer.Rows))
			}
		}
	}
	response, err := b.Own(t.Context(), &peerv1.UsageRequest{By: ByClient, From: b.at})
	if err != nil || len(response.GetRows()) > TopMost+othersMost+1 || response.SizeVT() > 700<<10 {
		t.Errorf("%d rows, %d bytes, %v", len(response.GetRows()), response.SizeVT(), err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if stat, err := os.Stat(b.files.path(b.at)); err != nil || stat.Size() > 2<<20 {
		t.Errorf("%v, %v", stat, err)
	}
}

// peer is another node; nil does not answer.
type peer struct {
	peerv1.PeerClient
	book *Book
}

func (p peer) Usage(ctx context.Context, r *peerv1.UsageRequest, _ ...grpc.CallOption) (*peerv1.UsageResponse, error) {
	if p.book == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return p.book.Own(ctx, r)
}

// TestOneAnswersForAll: and says who did not.
func TestOneAnswersForAll(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		a, other := open(t, dirs[0]), open(t, dirs[1])
		a.Decided(time.Now(), acquire("chat", "gpt", 1), "", granted(true))
		other.Decided(time.Now(), acquire("chat", "gpt", 2), "", granted(true))
		other.Decided(time.Now(), acquire("batch", "gpt", 5), "", granted(true))
		began := time.Now()
		answer := a.Ask(t.Context(), asking(ByClient, 1, 10), []Node{{"n3", "3"}, {"n2", "2"}, {"n4", "4"}},
			func(address string) (peerv1.PeerClient, error) {
				switch address {
				case "2":
					return peer{book: other}, nil
				case "3":
					return peer{}, nil
				}
				return nil, errors.New("no connection")
			})
		rows := []Row{
			{Name: "batch", Limit: "gpt", Dimension: "tokens", Count: Count{Grants: 1, Granted: 5}},
			{Name: "chat", Limit: "gpt", Dimension: "tokens", Count: Count{Grants: 2, Granted: 3}},
		}
		if diff := cmp.Diff(rows, answer.Rows); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if diff := cmp.Diff([][]string{{"n1", "n2"}, {"n3", "n4"}}, [][]string{answer.Nodes, answer.Missing}); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if took, want := time.Since(began), time.Second+20*time.Millisecond; took != want {
			t.Errorf("it took %v, want %v", took, want)
		}
		began = time.Now()
		silent := func(string) (peerv1.PeerClient, error) { return peer{}, nil }
		a.Ask(t.Context(), asking(ByClient, HoursMost, 10), []Node{{"n3", "3"}}, silent)
		if took, want := time.Since(began), time.Second+HoursMost*20*time.Millisecond; took != want {
			t.Errorf("a month took %v, want %v", took, want)
		}
		began = time.Now()
		brief, done := context.WithTimeout(t.Context(), 2*time.Second)
		answer = a.Ask(brief, asking(ByClient, HoursMost, 10), []Node{{"n3", "3"}}, silent)
		done()
		if took := time.Since(began); took != 1500*time.Millisecond || len(answer.Nodes) != 1 || len(answer.Missing) != 1 {
			t.Errorf("in two seconds: it took %v, %+v", took, answer)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if answer := a.Ask(gone, asking(ByClient, 1, 10), nil, nil); len(answer.Missing) != 1 || len(answer.Nodes) != 0 {
			t.Errorf("nobody waits: %+v", answer)
		}
		if _, err := a.Own(gone, &peerv1.UsageRequest{By: ByClient}); err == nil {
			t.Error("a part was taken for the whole")
		}
		if err := errors.Join(a.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	})
}

// BenchmarkDecided is what counting costs a decision.
func BenchmarkDecided(b *testing.B) {
	book, err := Open(Config{Dir: b.TempDir(), Metrics: metrics.New(), Logger: hclog.NewNullLogger()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = book.Close() }()
	op, result := acquire("chat", "gpt", 1), granted(true)
	b.ReportAllocs()
	for b.Loop() {
		book.Decided(time.Now(), op, "red", result)
	}
}

// TestAFullHourIsReadAsItWas: an hour in which more names were at work than there is room
// for gives the same answer each time, and after a restart.
func TestAFullHourIsReadAsItWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, dir)
	for i := range entriesMost + othersMost {
		b.Decided(time.Now(), acquire(fmt.Sprint("client-", i), fmt.Sprint("limit-", i), int64(1+i)), "", granted(true))
	}
	want := len(b.book.names)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		book := b.files.read(b.at)
		if diff := cmp.Diff(b.book.names, book.names); diff != "" || len(book.names) != want {
			t.Fatalf("%d entries, want %d (-want +got)\n%s", len(book.names), want, diff[:min(len(diff), 1000)])
		}
	}
}

// TestWhatACrashLeaves: files that were never finished go with the hours that they are of.
func TestWhatACrashLeaves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := files{dir: dir}
	notes := filepath.Join(dir, "notes"+unfinished)
	for _, name := range []string{f.path(9), f.path(9) + unfinished, f.path(10) + unfinished, notes} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.forget(10); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if want := []string{f.path(10) + unfinished, notes}; err != nil || !slices.Equal(left, want) {
		t.Errorf("%v is left, want %v; %v", left, want, err)
	}
}
