package show

import (
	"fmt"
	"io"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// Acquire writes the decision in the first line and the charges below it.
func Acquire(w io.Writer, r *quorleasev1.AcquireResponse) {
	if r.GetDecision() == quorleasev1.Decision_GRANTED {
		grantedText(w, r)
		return
	}
	denials := r.GetDenials()
	if len(denials) == 0 {
		fmt.Fprintln(w, "DENIED")
		return
	}
	first := denials[0]
	fmt.Fprintf(w, "DENIED reason=%s retry_after=%s", first.GetReason(), Wait(first))
	if frees := first.GetFreesIn(); frees != nil {
		fmt.Fprintf(w, " frees_in=%s", Duration(frees))
	}
	queued(w, r.GetQueue())
	fmt.Fprintln(w)
	left := remainingBy(r.GetRemaining())
	rows := make([][]string, 0, len(denials))
	for _, d := range denials {
		rows = append(rows, []string{
			d.GetLimit(), d.GetKey(), d.GetDimension(), d.GetReason().String(), Wait(d),
			left[bucketName{d.GetLimit(), d.GetKey(), d.GetDimension()}],
		})
	}
	Table(w, "LIMIT KEY DIMENSION REASON RETRY_AFTER REMAINING", rows)
	warned(w, r.GetWarnings())
}

// queued says where an acquire waited, or would have to.
func queued(w io.Writer, q *quorleasev1.QueueStatus) {
	if q == nil {
		return
	}
	if waited := q.GetWaited(); waited.AsDuration() > 0 {
		fmt.Fprintf(w, " waited=%s", Duration(waited))
	}
	if q.GetPosition() > 0 {
		fmt.Fprintf(w, " position=%d", q.GetPosition())
	}
	if eta := q.GetEta(); eta.AsDuration() > 0 {
		fmt.Fprintf(w, " eta=%s", Duration(eta))
	}
}

// warned shows what limits that do not enforce would have refused.
func warned(w io.Writer, list []*quorleasev1.Denial) {
	if len(list) == 0 {
		return
	}
	rows := make([][]string, 0, len(list))
	for _, d := range list {
		rows = append(rows, []string{d.GetLimit(), d.GetKey(), d.GetDimension(), d.GetReason().String(), Wait(d)})
	}
	fmt.Fprintln(w)
	Table(w, "WOULD_DENY KEY DIMENSION REASON RETRY_AFTER", rows)
}

func grantedText(w io.Writer, r *quorleasev1.AcquireResponse) {
	lease := r.GetLease()
	fmt.Fprintf(w, "GRANTED lease=%s ttl=%s", lease.GetId(), Dash(Duration(lease.GetTtl())))
	if lease.GetTracked() {
		fmt.Fprintf(w, " tracked=yes state=%s", lease.GetState())
	}
	if r.GetRepeatedRequest() {
		fmt.Fprint(w, " repeated=yes")
	}
	queued(w, r.GetQueue())
	fmt.Fprintln(w)
	left := remainingBy(r.GetRemaining())
	rows := make([][]string, 0, len(lease.GetCharges()))
	for _, c := range lease.GetCharges() {
		rows = append(rows, []string{
			c.GetLimit(), c.GetKey(), c.GetDimension(), Number(c.GetAmount()),
			left[bucketName{c.GetLimit(), c.GetKey(), c.GetDimension()}],
		})
	}
	Table(w, "LIMIT KEY DIMENSION AMOUNT REMAINING", rows)
	warned(w, r.GetWarnings())
}

// bucketName names one bucket.
type bucketName struct{ limit, key, dimension string }

func remainingBy(all []*quorleasev1.Remaining) map[bucketName]string {
	by := make(map[bucketName]string, len(all))
	for _, r := range all {
		by[bucketName{r.GetLimit(), r.GetKey(), r.GetDimension()}] = Number(r.GetTokens())
	}
	return by
}
