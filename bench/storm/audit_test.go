package storm

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/cluster/audit"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/metrics"
)

// cell is a client in a minute of the storm.
type cell struct {
	client string
	minute int
}

// decided is how often something was decided, and for how many tokens.
type decided struct{ Granted, Denied, TokensDenied int64 }

// ledgers counts by client and minute.
type ledgers map[cell]decided

func (l ledgers) count(c cell, granted bool, tokens int64) {
	d := l[c]
	if granted {
		d.Granted++
	} else {
		d.Denied++
		d.TokensDenied += tokens
	}
	l[c] = d
}

// of is the sum of a client over all minutes; "" is every client but the batch job.
func (l ledgers) of(client string) (sum decided) {
	for c, d := range l {
		if c.client == client || client == "" && c.client != batchClass {
			sum.Granted += d.Granted
			sum.Denied += d.Denied
			sum.TokensDenied += d.TokensDenied
		}
	}
	return sum
}

// reconcile plays the storm of four clients on one quota again, each decision of which
// goes into an audit file. It returns what was decided as it was decided.
func reconcile(t *testing.T, path string, began time.Time) ledgers {
	t.Helper()
	w := newWorld(1)
	log, err := audit.Open(audit.Config{
		Path: path, Bytes: 1 << 20, Keep: 100, Sample: audit.Whole, Node: "n1",
		Now:     func() time.Time { return began.Add(w.Real()) },
		Metrics: metrics.New(), Events: events.New(0, nil), Logger: hclog.NewNullLogger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	model, truth, lines := provider.NewMinute(quotaTokens), ledgers{}, 0
	ask := func(client string) func() {
		return func() {
			op := &logv1.Acquire{LeaseId: fmt.Appendf(nil, "%016x", lines), Client: client, Charges: []*logv1.Charge{
				{Limit: deployment, Dimension: "input_tokens", Amount: request.Input},
				{Limit: deployment, Dimension: "output_tokens", Amount: request.Output},
			}}
			result := &logv1.AcquireResult{Granted: model.Ask(w.Real(), request).OK}
			if !result.GetGranted() {
				result.Denials = []*logv1.Denial{{Reason: logv1.Reason_REASON_RATE, Limit: deployment}}
			}
			truth.count(cell{client, int(w.Real() / time.Minute)}, result.GetGranted(), request.Input)
			log.Decided(op, 0, result)
			if lines++; lines%1000 == 0 {
				// Sixteen minutes pass in no time: let the file keep up.
				synctest.Wait()
			}
		}
	}
	w.even(batchMinute, quotaLength, ask(batchClass))
	for i, perMinute := range teams {
		w.poisson(perMinute, quotaLength, ask(fmt.Sprint("team-", i+1)))
	}
	w.until(quotaLength)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return truth
}

// rebuilt is what the audit files alone say.
func rebuilt(t *testing.T, path string, began time.Time) ledgers {
	t.Helper()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v: want some that were renamed", files, err)
	}
	told := ledgers{}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for in := bufio.NewScanner(file); in.Scan(); {
			var d audit.Decision
			if err := json.Unmarshal(in.Bytes(), &d); err != nil {
				t.Fatalf("%s: %v in %s", name, err, in.Text())
			}
			told.count(cell{d.Client, int(d.Time.Sub(began) / time.Minute)}, d.Decision == "granted", d.Charges[0].Amount)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return told
}

// TestTheAuditTellsTheStorm: who was refused when, and how much of it was metered for
// nothing, is in the audit files, minute by minute.
func TestTheAuditTellsTheStorm(t *testing.T) {
	t.Parallel()
	t.Run("S1-51", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		began := time.Date(2026, 3, 1, 17, 4, 0, 0, time.UTC)
		var truth ledgers
		synctest.Test(t, func(t *testing.T) { truth = reconcile(t, path, began) })
		told := rebuilt(t, path, began)
		if diff := cmp.Diff(truth, told, cmp.AllowUnexported(cell{})); diff != "" {
			t.Errorf("(-what happened +what the files say)\n%s", diff)
		}
		if minutes := int(quotaLength / time.Minute); len(told) != minutes*(1+len(teams)) {
			t.Errorf("%d cells, want %d clients in %d minutes", len(told), 1+len(teams), minutes)
		}
		batch, people := told.of(batchClass), told.of("")
		near(t, "refused of the batch job", float64(batch.Denied), 8412, 8412*0.01)
		near(t, "a part in percent", 100*ratio(int(batch.Denied), int(batch.Denied+batch.Granted)), 38.4, 1)
		near(t, "refused of the teams in percent", 100*ratio(int(people.Denied), int(people.Denied+people.Granted)), 38, 3)
		near(t, "prompt tokens of the refused job", float64(batch.TokensDenied), 4.1e6, 4.1e6*0.01)
	})
}
