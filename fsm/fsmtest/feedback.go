package fsmtest

import (
	"fmt"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
)

// feedback reads LIMIT[/KEY] KIND [wait=D] [left=DIMENSION:N] … [reason=R] [client=C]:
// one signal.
func (s *script) feedback(words []string) *logv1.Operation {
	s.T.Helper()
	o := parseWords(words, "wait", "reason", "client")
	signal := &logv1.Signal{
		Kind:   logv1.Signal_Kind(logv1.Signal_Kind_value["KIND_"+o.rest[1]]),
		Reason: o.values["reason"],
	}
	signal.Limit, signal.Key, _ = strings.Cut(o.rest[0], "/")
	if text := o.values["wait"]; text != "" {
		signal.Wait = int64(s.duration(text))
	}
	for _, word := range o.rest[2:] {
		dimension, left, _ := strings.Cut(strings.TrimPrefix(word, "left="), ":")
		signal.Observed = append(signal.Observed, &logv1.Observed{Dimension: dimension, Remaining: s.number(left)})
	}
	return Operation(&logv1.Feedback{Client: o.values["client"], Signals: []*logv1.Signal{signal}})
}

// clearing reads LIMIT[/KEY] [reason=R] [author=A].
func (s *script) clearing(words []string) *logv1.Operation {
	o := parseWords(words, "reason", "author")
	op := &logv1.Adjust{
		Reason: o.values["reason"], Author: o.values["author"], Change: &logv1.Adjust_Clear{Clear: true},
	}
	op.Limit, op.Key, _ = strings.Cut(o.rest[0], "/")
	return Operation(op)
}

// recovering returns the words of a limit that say how it comes back.
func recovering() []string { return []string{"ramp", "adaptive"} }

// recovery reads ramp=D and adaptive=DECREASE%:STEP%:INTERVAL:FLOOR%.
func (s *script) recovery(limit *logv1.Limit, o options) {
	s.T.Helper()
	if text := o.values["ramp"]; text != "" {
		limit.Ramp = int64(s.duration(text))
	}
	if text := o.values["adaptive"]; text != "" {
		parts := strings.Split(text, ":")
		limit.Adaptive = &logv1.Adaptive{
			Decrease: s.percent(parts[0]), Step: s.percent(parts[1]),
			Interval: int64(s.duration(parts[2])), Floor: s.percent(parts[3]),
		}
	}
}

func showControlled(signals []*logv1.Controlled) string {
	var words []string
	for _, c := range signals {
		switch {
		case c.GetGone():
			words = append(words, "gone")
		case c.GetBlocked():
			words = append(words, "blocked")
		case c.GetPaused() > 0:
			words = append(words, fmt.Sprintf("paused for %v, then %d ppm", time.Duration(c.GetPaused()), c.GetPace()))
		default:
			words = append(words, fmt.Sprintf("open, %d ppm", c.GetPace()))
		}
	}
	return strings.Join(words, " and ")
}

// showControl is what an inspection says of feedback: nothing where there is none.
func showControl(in *fsm.Inspection) []string {
	c := in.Control
	if c == nil {
		return nil
	}
	line := fmt.Sprintf("control since %v, %d ppm", time.Duration(c.From), c.Pace.At(in.Now))
	if c.Paused(in.Now) {
		line += fmt.Sprintf(", paused until %v", time.Duration(c.Pace.Opens))
	}
	if c.Blocked {
		line += ", blocked"
	}
	return []string{fmt.Sprintf("%s, whole at %v: %q by %q", line, time.Duration(c.Pace.WholeAt()), c.Reason, c.Client)}
}

// heard is what a provider said of up to three keys, or that an operator clears one.
func (w *World) heard() *logv1.Operation {
	limit := w.limit()
	if w.Choose(8) == 0 {
		return Operation(&logv1.Adjust{
			Limit: limit, Key: w.key(limit), Reason: "why", Change: &logv1.Adjust_Clear{Clear: true},
		})
	}
	op := &logv1.Feedback{Owner: w.owner(), Client: w.client()}
	for range 1 + w.Choose(3) {
		limit := w.limit()
		s := &logv1.Signal{
			Limit: limit, Key: w.key(limit), Reason: pick(w, "", "slow_down"),
			Kind: pick(w, logv1.Signal_KIND_THROTTLED, logv1.Signal_KIND_THROTTLED, logv1.Signal_KIND_THROTTLED,
				logv1.Signal_KIND_ACCELERATION, logv1.Signal_KIND_OVERLOADED, logv1.Signal_KIND_OBSERVED),
			Wait: int64(pick(w, 0, 0, time.Millisecond, time.Second, 22*time.Second, 10*time.Minute)),
		}
		if w.Choose(24) == 0 {
			s.Kind = logv1.Signal_KIND_SPEND_CAP
		}
		if s.GetKind() == logv1.Signal_KIND_OBSERVED || w.Choose(4) == 0 {
			s.Observed = []*logv1.Observed{{Dimension: w.dimension(), Remaining: int64(w.Choose(12))}}
		}
		op.Signals = append(op.Signals, s)
	}
	if !w.Tame && w.Choose(32) == 0 {
		op.Signals[0].Wait = -1
	}
	return Operation(op)
}

// recovery is how a random limit comes back.
func (w *World) recovery(limit *logv1.Limit) {
	limit.Ramp = int64(pick(w, 0, time.Millisecond, 10*time.Second, time.Minute, 7*time.Minute+1))
	if w.Choose(3) == 0 {
		limit.Adaptive = &logv1.Adaptive{
			Decrease: int64(pick(w, 1, 3_000, 5_000, 9_999)), Step: int64(pick(w, 1, 777, 1_000, 10_000)),
			Interval: int64(pick(w, time.Millisecond, time.Second, 10*time.Second)),
			Floor:    int64(pick(w, 1, 500, 10_000)),
		}
	}
}
