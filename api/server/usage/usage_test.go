package usage

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cluster/metrics"
	"github.com/quorlease/quorlease/cluster/usage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// alone is a node without others.
type alone struct{ book *usage.Book }

func (a alone) Usage(ctx context.Context, q usage.Query) usage.Answer {
	return a.book.Ask(ctx, q, nil, nil)
}

// TestPeriodsThatAreGone: a period that ended before what is kept is refused, and one of
// which a part is kept is not.
func TestPeriodsThatAreGone(t *testing.T) {
	t.Parallel()
	book, err := usage.Open(usage.Config{Dir: t.TempDir(), Metrics: metrics.New(), Logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	service := New(alone{book})
	day := func(ago int) string { return time.Now().UTC().AddDate(0, 0, -ago).Format(time.DateOnly) }
	for _, period := range [][2]string{
		{day(93), day(63)},
		{"2000-02-01", "2000-03-01"},
		{"1969-12-31", "1970-01-01"},
		{"1960-01-01", "1960-01-02"},
		{"0001-01-01", "0001-01-02"},
	} {
		asked := &quorleasev1.UsageBookQueryRequest{By: "key", From: period[0], To: period[1]}
		answer, err := service.Query(t.Context(), asked)
		want := `to: "` + period[1] + `": usage is kept from 20`
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", period, answer, err, want)
		}
	}
	answer, err := service.Query(t.Context(), &quorleasev1.UsageBookQueryRequest{By: "key", From: day(80), To: day(60)})
	if from, to := answer.GetFrom().AsTime(), answer.GetTo().AsTime(); err != nil || !from.Before(to) {
		t.Errorf("a part is kept: %v to %v, %v", from, to, err)
	}
	if err := book.Close(); err != nil {
		t.Error(err)
	}
}
