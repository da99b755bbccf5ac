package escrow

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/refuse"
)

// maxReturns bounds the returns of one operation.
const maxReturns = 512

func checkID(prefix string, id *logv1.EscrowID) error {
	if err := check.Text("id.node", id.GetNode(), 1, check.MaxText); err != nil {
		return refuse.Wrong(prefix, err)
	}
	if id.GetSequence() == 0 {
		return refuse.Field(prefix+"id.sequence", "0: sequences begin with 1")
	}
	return nil
}

// checkAsk looks at what can be seen without the state.
func checkAsk(op *logv1.AskEscrow) error {
	if err := checkID("", op.GetId()); err != nil {
		return err
	}
	switch {
	case !lineage.IsName(op.GetLimit()):
		return refuse.Field("limit", "%q: is no name of a limit", check.Clip(op.GetLimit()))
	case !lineage.IsWord(op.GetDimension()):
		return refuse.Field("dimension", "%q: is no name of a dimension", check.Clip(op.GetDimension()))
	case op.GetClass() != "" && !lineage.IsWord(op.GetClass()):
		return refuse.Field("class", "%q: is no name of a class", check.Clip(op.GetClass()))
	case op.GetAmount() < 1 || op.GetAmount() > bucket.MaxTokens:
		return refuse.Field("amount", "%d: must be from 1 to %d", op.GetAmount(), int64(bucket.MaxTokens))
	}
	return refuse.Text("key", op.GetKey(), 0, check.MaxKey)
}

func checkReturn(op *logv1.ReturnEscrow) error {
	if n := len(op.GetReturns()); n < 1 || n > maxReturns {
		return refuse.Field("returns", "%d: must be from 1 to %d", n, maxReturns)
	}
	for i, r := range op.GetReturns() {
		if err := checkID(refuse.At("returns", i, ""), r.GetId()); err != nil {
			return err
		}
		if r.GetUnspent() < 0 || r.GetUnspent() > bucket.MaxTokens {
			return refuse.Field(refuse.At("returns", i, "unspent"), "%d: must be from 0 to %d",
				r.GetUnspent(), int64(bucket.MaxTokens))
		}
	}
	return nil
}
