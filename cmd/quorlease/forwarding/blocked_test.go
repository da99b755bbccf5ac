package forwarding

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/gateway/told"
)

// TestWhoCalls: of a spend cap that the nodes know they call somebody, and no gateway does.
func TestWhoCalls(t *testing.T) {
	t.Parallel()
	t.Run("S3-27_not_twice", func(t *testing.T) {
		t.Parallel()
		var got []string
		a := newAlerts("gateway", slog.New(slog.DiscardHandler), []alert.Sink{alert.Func(func(a alert.Alert) {
			got = append(got, a.Status()+" "+a.Labels["deployment"])
		})})
		known, own := told.SpendCap{Deployment: "known", Blocked: true}, told.SpendCap{Deployment: "own", Reason: "x"}
		a.capped(known)
		a.capped(own)
		a.cleared(known)
		a.cleared(told.SpendCap{Deployment: "own", Reason: "y"})
		a.cleared(own)
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if want := []string{"firing own", "resolved own"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}
