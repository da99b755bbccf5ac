package limitsfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/api/limitsfile/written"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// Format writes limits and retry budgets as a limits file, always in the same
// way: Parse of it gives the same request again. It writes what is set and
// leaves out what is absent. The request must be one that ResolveAll accepts;
// prune, dry_run and expected_revision have no place in a file.
func Format(req *quorleasev1.LimitsApplyRequest) []byte {
	w := &writer{}
	if len(req.GetLimits()) == 0 && len(req.GetRetryBudgets()) == 0 {
		return []byte("limits: []\n")
	}
	if len(req.GetLimits()) > 0 {
		w.line("limits:")
		for _, l := range req.GetLimits() {
			w.limit(l)
		}
	}
	if len(req.GetRetryBudgets()) > 0 {
		w.line("retry_budgets:")
		for _, b := range req.GetRetryBudgets() {
			w.budget(b)
		}
	}
	return []byte(w.out.String())
}

type writer struct{ out strings.Builder }

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(&w.out, format+"\n", args...)
}

func (w *writer) limit(l *quorleasev1.Limit) {
	w.line("  - name: %s", written.Word(l.GetName()))
	w.texts("match", l.GetMatch())
	if len(l.GetPer()) > 0 {
		w.line("    per: [%s]", strings.Join(mapped(l.GetPer(), written.Word), ", "))
	}
	w.word("mode", enforcements.Name(l.GetMode()))
	if l.Concurrency != nil {
		w.line("    concurrency: %d", l.GetConcurrency())
	}
	w.quota(l.GetQuota())
	if l.GetUnlimited() {
		w.line("    unlimited: true")
	}
	w.flow("rate", rateParts(l.GetDimensions()))
	// An unlimited limit has a target of all, which the file does not say.
	if !l.GetUnlimited() {
		w.share("target", l.TargetBp)
	}
	w.flow("burst", sizeParts(l.GetDimensions(), sizes[0]))
	w.classes(l)
	w.flow("max_debt", sizeParts(l.GetDimensions(), sizes[1]))
	w.duration("ramp", l.GetRamp())
	w.adaptive(l.GetAdaptive())
	if l.GetExact() {
		w.line("    exact: true")
	}
	w.duration("escrow", l.GetEscrow())
	w.flow("max_open", sizeParts(l.GetDimensions(), sizes[2]))
	w.duration("lease", l.GetLease())
	w.queue(l.GetQueue())
	w.word("on_quorum_loss", ModeName(l.GetOnQuorumLoss()))
	if l.FallbackShareBp != nil {
		w.line("    fallback: {share: %s}", written.FormatShare(l.GetFallbackShareBp()))
	}
	if l.GetShareReserveBp() > 0 {
		w.line("    share_reserve: %s", written.FormatShare(l.GetShareReserveBp()))
	}
	w.number("max_keys", l.MaxKeys)
	if l.GetMaxKeysPerClient() > 0 {
		w.line("    max_keys_per_client: %d", l.GetMaxKeysPerClient())
	}
	w.overrides(l)
	if s := l.GetSource(); s != nil {
		w.always("source", slices.Concat(part("url", s.GetUrl()), part("verified_at", s.GetVerifiedAt())))
	}
}

func (w *writer) classes(l *quorleasev1.Limit) {
	var parts []string
	for _, c := range l.GetClasses() {
		text := "share: " + written.FormatShare(c.GetShareBp())
		if c.BurstBp != nil {
			text += ", burst: " + written.FormatShare(c.GetBurstBp())
		}
		parts = append(parts, written.Word(c.GetName())+": {"+text+"}")
	}
	w.flow("classes", parts)
}

func (w *writer) quota(q *quorleasev1.Quota) {
	if q == nil {
		return
	}
	parts := slices.Concat(part("per", periods.Name(q.GetPeriod())), part("timezone", q.GetTimezone()))
	parts = append(parts, "amounts: "+numbers(q.GetAmounts()))
	if len(q.GetWarnBp()) > 0 {
		parts = append(parts, "warn: ["+strings.Join(mapped(q.GetWarnBp(), written.FormatShare), ", ")+"]")
	}
	w.flow("quota", parts)
}

func (w *writer) adaptive(a *quorleasev1.Adaptive) {
	if a == nil {
		return
	}
	w.always("adaptive", slices.Concat(
		sharePart("decrease", a.DecreaseBp), sharePart("step", a.StepBp),
		durationPart("interval", a.GetInterval()), sharePart("floor", a.FloorBp)))
}

func (w *writer) queue(q *quorleasev1.Queue) {
	if q == nil {
		return
	}
	var parts []string
	if q.Max != nil {
		parts = append(parts, fmt.Sprintf("max: %d", q.GetMax()))
	}
	if q.GetMaxTokens() > 0 {
		parts = append(parts, fmt.Sprintf("max_tokens: %d", q.GetMaxTokens()))
	}
	parts = append(parts, durationPart("max_wait", q.GetMaxWait())...)
	if len(q.GetWeights()) > 0 {
		parts = append(parts, "weights: "+numbers(q.GetWeights()))
	}
	w.always("queue", parts)
}

// overrides writes one line for each.
func (w *writer) overrides(l *quorleasev1.Limit) {
	if len(l.GetOverrides()) > 0 {
		w.line("    overrides:")
	}
	for _, o := range l.GetOverrides() {
		parts := slices.Concat(part("key", o.GetKey()), part("prefix", o.GetPrefix()))
		add := func(name string, values []string) {
			if len(values) > 0 {
				parts = append(parts, name+": {"+strings.Join(values, ", ")+"}")
			}
		}
		switch {
		case l.Concurrency != nil:
			for _, d := range o.GetDimensions() {
				parts = append(parts, fmt.Sprintf("concurrency: %d", d.GetBurst()))
			}
		case l.GetQuota() != nil:
			add("amounts", sizeParts(o.GetDimensions(), sizes[0]))
		default:
			add("rate", rateParts(o.GetDimensions()))
			for _, s := range sizes {
				add(s.name, sizeParts(o.GetDimensions(), s))
			}
		}
		w.line("      - {%s}", strings.Join(parts, ", "))
	}
}

func (w *writer) budget(b *quorleasev1.RetryBudget) {
	w.line("  - name: %s", written.Word(b.GetName()))
	w.line("    match: {client: %s}", written.Word(b.GetClient()))
	if b.MaxRetries != nil {
		w.line("    max_retries: %d", b.GetMaxRetries())
	}
	w.share("max_fraction", b.MaxFractionBp)
	w.duration("window", b.GetWindow())
	w.number("min_requests", b.MinRequests)
	if r := b.GetMinRetries(); r != nil {
		w.line("    min_retries: %s", written.FormatRate(r.GetAmount(), r.GetInterval().AsDuration()))
	}
	w.duration("retry_after", b.GetRetryAfter())
	w.word("scope", scopes.Name(b.GetScope()))
	w.flow("warn", slices.Concat(sharePart("fraction", b.WarnFractionBp), durationPart("for", b.GetWarnFor())))
	w.word("mode", enforcements.Name(b.GetMode()))
}
