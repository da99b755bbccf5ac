package fsm_test

import (
	"math"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// TestRateAndSlack: the rate after target is said with the smallest numbers, and
// the slack is the life of a lease and what is open over the rate, rounded up.
func TestRateAndSlack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		amount, interval int64
		target, open     int64
		lease            time.Duration
		wantAmount       int64
		wantInterval     time.Duration
		wantSlack        time.Duration
		wantTokens       int64
	}{
		{"whole", 10, 1e9, 10_000, 20, 5 * time.Second, 10, time.Second, 7 * time.Second, 71},
		{"three quarters", 1000, 60e9, 7_500, 750, 5 * time.Second, 750, time.Minute, 65 * time.Second, 813},
		{"a fraction", 1, 1e9, 7_500, 0, time.Second, 3, 4 * time.Second, time.Second, 1},
		{"rounded up", 3, 1e9, 10_000, 1, time.Second, 3, time.Second, time.Second + 333_333_334, 5},
		{"zero", 0, 1e9, 10_000, 7, time.Second, 0, time.Second, time.Second, 7},
		{"endless", 1, math.MaxInt64, 10_000, 1 << 53, time.Second, 1, math.MaxInt64, math.MaxInt64, 1<<53 + 1},
		{"large", 1 << 40, 1e9, 9_999, 1 << 53, time.Second, 0, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := fsmtest.New(t)
			limit := fsmtest.Limit("api", &logv1.Dimension{
				Name: "requests", Amount: tt.amount, Interval: tt.interval, Burst: 1, MaxOpen: tt.open,
			})
			limit.Target, limit.Lease = tt.target, int64(tt.lease)
			if refusal := d.At(0, fsmtest.Apply(limit))[0].GetRefusal(); refusal != nil {
				t.Fatal(refusal)
			}
			in, err := d.Inspect(0, "api", "")
			if err != nil {
				t.Fatal(err)
			}
			got := in.Buckets[0]
			if tt.wantInterval == 0 {
				return // Only that it is worked out.
			}
			if got.Amount != tt.wantAmount || got.Interval != tt.wantInterval {
				t.Errorf("rate %d/%v, want %d/%v", got.Amount, got.Interval, tt.wantAmount, tt.wantInterval)
			}
			if got.Slack != tt.wantSlack || got.SlackTokens != tt.wantTokens {
				t.Errorf("slack %v or %d, want %v or %d", got.Slack, got.SlackTokens, tt.wantSlack, tt.wantTokens)
			}
		})
	}
}

// TestReadsNeverGoBack: a reader's estimate below the machine's time counts as
// that; one above it shows what will be. Reading changes nothing.
func TestReadsNeverGoBack(t *testing.T) {
	t.Parallel()
	d := started(t, "1/1s", 10)
	d.At(10*time.Second, one(10))
	hash := d.Hash()
	for _, tt := range []struct {
		now  time.Duration
		want int64
	}{{0, 0}, {10 * time.Second, 0}, {13 * time.Second, 3}, {time.Hour, 10}} {
		if level := d.Level(tt.now, "api", "", "requests"); level != tt.want {
			t.Errorf("at %v: level %d, want %d", tt.now, level, tt.want)
		}
		answer, err := d.Peek(bucket.Instant(tt.now), one(10).GetAcquire())
		if err != nil || answer.GetRemaining()[0].GetTokens() != tt.want {
			t.Errorf("at %v: %v, %v, want %d left", tt.now, answer, err, tt.want)
		}
	}
	if d.Hash() != hash {
		t.Errorf("the hash became %016x, was %016x", d.Hash(), hash)
	}
}
