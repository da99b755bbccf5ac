package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(path string) Config {
	return Config{
		Path: path, Bytes: 64 << 20, Keep: 4, Sample: Whole, Node: "n1",
		Metrics: metrics.New(), Events: events.New(0, nil), Logger: hclog.NewNullLogger(),
	}
}

func ask(i int) *logv1.Acquire {
	return &logv1.Acquire{
		LeaseId: fmt.Appendf(nil, "lease %010d", i), Client: fmt.Sprint("client", i), Class: "batch",
		Charges: []*logv1.Charge{{Limit: "gpt", Key: "a", Dimension: "tokens", Amount: int64(i)}},
	}
}

func granted() *logv1.AcquireResult { return &logv1.AcquireResult{Granted: true} }

// read returns the lines of a file.
func read(t *testing.T, path string) (lines []Decision) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); {
		var d Decision
		if err := json.Unmarshal(in.Bytes(), &d); err != nil {
			t.Fatalf("%s: %v in %q", path, err, in.Text())
		}
		lines = append(lines, d)
	}
	return lines
}

// TestLines: each decision is a line, in order, with what was asked and why not.
func TestLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(config(path))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		l.Decided(ask(i), uint32(i%3), granted())
	}
	l.Decided(ask(1), 1, &logv1.AcquireResult{
		Queue: &logv1.QueueStatus{Waited: int64(3 * time.Millisecond)},
		Denials: []*logv1.Denial{
			{Reason: logv1.Reason_REASON_RATE, Limit: "gpt", Key: "a", Dimension: "tokens", RetryAfter: int64(time.Second)},
			{Reason: logv1.Reason_REASON_CONCURRENCY, Limit: "gate"},
		},
	})
	l.Decided(ask(2), 4, &logv1.AcquireResult{Denials: []*logv1.Denial{{Reason: logv1.Reason_REASON_ATTEMPTS}}})
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	t.Run("S1-17_every_decision", func(t *testing.T) {
		t.Parallel()
		lines := read(t, path)
		if len(lines) != 1002 {
			t.Fatalf("%d lines, want 1002", len(lines))
		}
		for i, d := range lines[:1000] {
			if d.Client != fmt.Sprint("client", i) || d.Attempt != uint32(i%3) || d.Decision != "granted" ||
				d.Charges[0] != (Charge{"gpt", "a", "tokens", int64(i)}) || d.Time.IsZero() || d.Node != "n1" {
				t.Fatalf("line %d is %+v", i, d)
			}
		}
		no, here := lines[1000], lines[1001]
		if no.Decision != "denied" || no.Source != "consensus" || no.WaitedMs != 3 || len(no.Lease) != 32 ||
			no.Denials[0] != (Denial{"rate", "gpt", "a", "tokens", 1000}) || no.Denials[1].Reason != "concurrency" {
			t.Errorf("a denial is %+v", no)
		}
		if here.Source != "node" || here.Attempt != 4 || here.Denials[0].Reason != "attempts" {
			t.Errorf("a retry budget's is %+v", here)
		}
	})
	var none *Log
	none.Decided(ask(1), 0, granted())
	if err := none.Close(); err != nil {
		t.Error(err)
	}
	if l, err := Open(config("")); l != nil || err != nil {
		t.Errorf("without a path: %v, %v", l, err)
	}
	if _, err := Open(config(t.TempDir())); err == nil {
		t.Error("a directory was opened")
	}
}

// TestTextsAreBounded: no client makes a line long, or two lines of one.
func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(config(path))
	if err != nil {
		t.Fatal(err)
	}
	op := ask(0)
	op.Client = "a\n{\"client\":\"b\"}\x1b[2J\xff" + strings.Repeat("ü", 1<<16)
	op.LeaseId = make([]byte, 1<<16)
	op.Charges[0].Key = strings.Repeat("k", 1<<16)
	for range 100 {
		op.Charges = append(op.Charges, op.Charges[0])
	}
	l.Decided(op, 0, granted())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lines := read(t, path)
	stat, err := os.Stat(path)
	if err != nil || len(lines) != 1 || stat.Size() > 16<<10 {
		t.Fatalf("%d lines, %v, %v", len(lines), stat, err)
	}
	if d := lines[0]; len(d.Charges) != listMost || d.More != 101-listMost || len(d.Charges[0].Key) != keyMost ||
		!strings.HasSuffix(d.Client, "ü…") || len(d.Lease) != 2*leaseMost {
		t.Errorf("%+v", d)
	}
}

// disk is a file whose writes wait, or fail, as a test says.
type disk struct {
	bytes.Buffer
	hold chan struct{}
	err  error
}

func (d *disk) Write(p []byte) (int, error) {
	if d.hold != nil {
		<-d.hold
	}
	if d.err != nil {
		n, _ := d.Buffer.Write(p[:len(p)/2])
		return n, d.err
	}
	return d.Buffer.Write(p)
}

func (d *disk) Size() (int64, error)      { return int64(d.Len()), nil }
func (d *disk) Truncate(size int64) error { d.Buffer.Truncate(int(size)); return nil }
func (d *disk) Sync() error               { return nil }
func (d *disk) Close() error              { return nil }

func (d *disk) open(string) (file, int64, error) { return d, int64(d.Len()), nil }

// TestNobodyWaits: a disk that hangs delays no decision. What finds no room is
// counted, and said once a minute.
func TestNobodyWaits(t *testing.T) {
	t.Parallel()
	t.Run("S1-17_off_the_decision_path", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			d := &disk{hold: make(chan struct{})}
			c := config("audit")
			l, err := open(c, d.open)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			l.Decided(ask(0), 0, granted())
			<-time.After(gather)
			synctest.Wait()
			began = began.Add(gather)
			const more = 100
			all := make(chan struct{})
			go func() {
				defer close(all)
				for i := range queued + more {
					l.Decided(ask(i), 0, granted())
				}
			}()
			select {
			case <-all:
			case <-time.After(time.Second):
				t.Error("decisions wait for the disk")
			}
			if took := time.Since(began); took != 0 || l.dropped.Load() != more {
				t.Errorf("decisions took %v, %d were dropped, want %d", took, l.dropped.Load(), more)
			}
			<-time.After(quiet - 1)
			l.Decided(ask(0), 0, granted())
			<-time.After(1)
			l.Decided(ask(0), 0, granted())
			said := 0
			told, err := c.Events.Subscribe(new(uint64))
			if err != nil {
				t.Fatal(err)
			}
			for ; ; said++ {
				if e, ok, err := told.TryNext(); !ok || err != nil {
					break
				} else if e.Kind != events.AuditDropped || e.Severity != events.Warning {
					t.Errorf("%+v", e)
				}
			}
			if said != 2 {
				t.Errorf("it was said %d times, want 2 in a minute", said)
			}
			close(d.hold)
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if lines := strings.Count(d.String(), "\n"); lines != 1+queued {
				t.Errorf("%d lines, want %d", lines, 1+queued)
			}
		})
	})
}

// TestRotation: the file stays below its bound, and so do the old ones.
func TestRotation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	c := config(path)
	c.Bytes, c.Keep = 300_000, 2
	for run := range 2 {
		l, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6000 {
			l.Decided(ask(run*6000+i), 0, granted())
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if l.failed.Load()+l.dropped.Load() != 0 {
			t.Errorf("%d failed, %d dropped", l.failed.Load(), l.dropped.Load())
		}
	}
	found, err := filepath.Glob(path + "*")
	if err != nil || len(found) != 3 {
		t.Fatalf("%v, %v; want the file and two old ones", found, err)
	}
	next := int64(-1)
	for _, name := range []string{path + ".2", path + ".1", path} {
		stat, err := os.Stat(name)
		if err != nil || stat.Size() > c.Bytes || stat.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, stat, err)
		}
		for _, d := range read(t, name) {
			if got := d.Charges[0].Amount; next >= 0 && got != next {
				t.Fatalf("%s: line %d follows %d", name, got, next-1)
			} else {
				next = got + 1
			}
		}
	}
	if next != 12_000 {
		t.Errorf("the last line is %d, want 11999", next-1)
	}
}

// counter is the count of this name, -1 where there is none.
func counter(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return -1
}

// TestAFullDisk: lines are lost and counted, none is written in halves, and it is
// logged once.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		registry := prometheus.NewRegistry()
		d := &disk{}
		c := config("audit")
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
		l, err := open(c, d.open)
		if err != nil {
			t.Fatal(err)
		}
		step := func(err error) {
			synctest.Wait()
			d.err = err
			for range 3 {
				l.Decided(ask(1), 0, granted())
				<-time.After(gather)
				synctest.Wait()
			}
		}
		step(nil)
		step(errors.New("no space"))
		step(nil)
		if lines := strings.Count(d.String(), "\n"); lines != 6 || strings.Count(d.String(), "{\"time\"") != 6 {
			t.Errorf("%d lines in %q, want 6", lines, d.String())
		}
		if got := strings.Count(log.String(), "no space"); got != 1 {
			t.Errorf("logged %d times: %s", got, log.String())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Metrics.Register(registry); err != nil {
			t.Fatal(err)
		}
		defer c.Metrics.Unregister()
		for name, want := range map[string]float64{"quorlease_audit_failed_total": 3, "quorlease_audit_dropped_total": 0} {
			if got := counter(t, registry, name); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
	})
}

func BenchmarkDecided(b *testing.B) {
	l, err := Open(config(filepath.Join(b.TempDir(), "audit.jsonl")))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	op, result := ask(1), granted()
	b.ReportAllocs()
	for b.Loop() {
		l.Decided(op, 0, result)
	}
}
