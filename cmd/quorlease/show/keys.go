package show

import (
	"fmt"
	"io"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// Keys writes the keys of a limit, a line each.
func Keys(w io.Writer, r *quorleasev1.LimitsKeysResponse) {
	rows := make([][]string, 0, len(r.GetKeys()))
	for _, k := range r.GetKeys() {
		rows = append(rows, []string{
			k.GetKey(), Percent(k.GetLeftPpm() / 100), k.GetDimension(), Number(k.GetLevel()), Number(k.GetDebt()),
			Number(k.GetBurst()), Number(k.GetOpenLeases()), state(k.GetControl()),
		})
	}
	Table(w, "KEY LEFT DIMENSION LEVEL DEBT BURST LEASES STATE", rows)
	if r.GetMatching() != r.GetTotal() {
		fmt.Fprintf(w, "%d of %d keys with the prefix, %d in all\n", len(rows), r.GetMatching(), r.GetTotal())
		return
	}
	fmt.Fprintf(w, "%d of %d keys\n", len(rows), r.GetTotal())
}

// state is in a word what feedback has done to a key.
func state(c *quorleasev1.ControlState) string {
	switch {
	case c == nil:
		return ""
	case c.GetBlocked():
		return "blocked"
	case c.GetPaused() != nil:
		return "paused"
	}
	return "slowed"
}
