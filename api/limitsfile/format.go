package limitsfile

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

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
	w.line("  - name: %s", word(l.GetName()))
	if len(l.GetPer()) > 0 {
		w.line("    per: [%s]", strings.Join(l.GetPer(), ", "))
	}
	if l.GetUnlimited() {
		w.line("    unlimited: true")
	}
	w.flow("rate", l, func(d *quorleasev1.Dimension) (string, bool) {
		return formatRate(d.GetRate().GetAmount(), d.GetRate().GetInterval().AsDuration()), true
	})
	// An unlimited limit has a target of all, which the file does not say.
	if l.TargetBp != nil && !l.GetUnlimited() {
		w.line("    target: %s", formatShare(l.GetTargetBp()))
	}
	w.flow("burst", l, func(d *quorleasev1.Dimension) (string, bool) {
		return fmt.Sprint(d.GetBurst()), d.Burst != nil
	})
	w.classes(l)
	w.flow("max_debt", l, func(d *quorleasev1.Dimension) (string, bool) {
		return fmt.Sprint(d.GetMaxDebt()), d.MaxDebt != nil
	})
	w.flow("max_open", l, func(d *quorleasev1.Dimension) (string, bool) {
		return fmt.Sprint(d.GetMaxOpen()), d.MaxOpen != nil
	})
	if l.GetExact() {
		w.line("    exact: true")
	}
	if l.GetLease() != nil {
		w.line("    lease: %s", formatDuration(l.GetLease().AsDuration()))
	}
	if l.MaxKeys != nil {
		w.line("    max_keys: %d", l.GetMaxKeys())
	}
	if name := ModeName(l.GetOnQuorumLoss()); name != "" {
		w.line("    on_quorum_loss: %s", name)
	}
	if l.FallbackShareBp != nil {
		w.line("    fallback: {share: %s}", formatShare(l.GetFallbackShareBp()))
	}
}

// flow writes one value of each dimension that has one.
func (w *writer) flow(name string, l *quorleasev1.Limit, value func(*quorleasev1.Dimension) (string, bool)) {
	var parts []string
	for _, d := range l.GetDimensions() {
		if text, ok := value(d); ok {
			parts = append(parts, word(d.GetName())+": "+text)
		}
	}
	if len(parts) > 0 {
		w.line("    %s: {%s}", name, strings.Join(parts, ", "))
	}
}

func (w *writer) classes(l *quorleasev1.Limit) {
	var parts []string
	for _, c := range l.GetClasses() {
		text := "share: " + formatShare(c.GetShareBp())
		if c.BurstBp != nil {
			text += ", burst: " + formatShare(c.GetBurstBp())
		}
		parts = append(parts, word(c.GetName())+": {"+text+"}")
	}
	if len(parts) > 0 {
		w.line("    classes: {%s}", strings.Join(parts, ", "))
	}
}

func (w *writer) budget(b *quorleasev1.RetryBudget) {
	w.line("  - name: %s", word(b.GetName()))
	w.line("    match: {client: %s}", word(b.GetClient()))
	if b.MaxRetries != nil {
		w.line("    max_retries: %d", b.GetMaxRetries())
	}
	if b.MaxFractionBp != nil {
		w.line("    max_fraction: %s", formatShare(b.GetMaxFractionBp()))
	}
	if b.GetWindow() != nil {
		w.line("    window: %s", formatDuration(b.GetWindow().AsDuration()))
	}
	if b.MinRequests != nil {
		w.line("    min_requests: %d", b.GetMinRequests())
	}
	if b.GetRetryAfter() != nil {
		w.line("    retry_after: %s", formatDuration(b.GetRetryAfter().AsDuration()))
	}
}

// plainWord matches texts that no reader of YAML takes for anything else.
var plainWord = regexp.MustCompile(`^[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*$`)

// reserved are words that some version of YAML takes for something else.
var reserved = map[string]bool{
	"true": true, "false": true, "null": true, "yes": true, "no": true, "on": true, "off": true, "y": true, "n": true,
}

// word writes a text, in quotes where it needs them. JSON's quoting is also
// YAML's.
func word(s string) string {
	if plainWord.MatchString(s) && !reserved[s] {
		return s
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	// A string always encodes.
	_ = encoder.Encode(s)
	return strings.TrimSpace(out.String())
}
