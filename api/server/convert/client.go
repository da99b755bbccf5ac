package convert

import (
	"math"
	"math/bits"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm"
)

const (
	// toldMin is how often a client has to be told to wait before anything is said
	// of whether it does.
	toldMin = 20
	// earlyPart: a client whose every twentieth wait is cut short still honours them.
	// What one process of it was told another may not know.
	earlyPart = 20
)

// ClientAnswer shows one client.
func ClientAnswer(c fsm.ClientStat) *quorleasev1.ClientStatus {
	status := &quorleasev1.ClientStatus{
		Client: c.Client, Requests: c.Count.Total, Retries: c.Count.Retries,
		FractionPpm: fractionPPM(c.Count.Retries, c.Count.Total), RetriesLeft: c.Left,
		RetryBudget: c.Budget.GetName(), OverBudget: c.Over, Throttled: c.Count.Throttled,
		Denied: c.Count.Denied, Early: c.Count.Early, Error: c.Fault.Text,
	}
	if c.Budget != nil {
		status.RetriesAllowed = c.Count.Retries + min(c.Left, math.MaxInt64-c.Count.Retries)
		status.Mode = modeOf(c.Budget.GetMode())
	}
	if c.FreesIn > 0 {
		status.FreesIn = durationpb.New(c.FreesIn)
	}
	if c.Count.Denied >= toldMin {
		status.HonoursWaits = proto.Bool(c.Count.Early*earlyPart <= c.Count.Denied)
	}
	return status
}

// fractionPPM is retries ÷ total in parts per million, rounded down.
func fractionPPM(retries, total int64) int64 {
	if retries <= 0 || retries > total {
		return 0
	}
	hi, lo := bits.Mul64(uint64(retries), 1_000_000)
	ppm, _ := bits.Div64(hi, lo, uint64(total))
	return int64(ppm)
}

// modeOf is a mode as the protocol has it.
func modeOf(m logv1.Mode) quorleasev1.Mode {
	switch m {
	case logv1.Mode_MODE_OFF:
		return quorleasev1.Mode_OFF
	case logv1.Mode_MODE_SHADOW:
		return quorleasev1.Mode_SHADOW
	case logv1.Mode_MODE_WARN:
		return quorleasev1.Mode_WARN
	case logv1.Mode_MODE_ENFORCE:
		return quorleasev1.Mode_ENFORCE
	}
	return quorleasev1.Mode_MODE_UNSPECIFIED
}
