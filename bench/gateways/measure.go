package gateways

import (
	"fmt"

	"github.com/quorlease/quorlease/bench/storm"
)

// What is measured of whole gateways, beside what bench/storm has.
const (
	unanswered     storm.Measure = "tokens_billed_unanswered"
	unheard        storm.Measure = "requests_unanswered"
	overshoot      storm.Measure = "tokens_over_limit"
	capServed      storm.Measure = "calls_before_spend_cap"
	capAttempts    storm.Measure = "calls_after_spend_cap"
	capAlerts      storm.Measure = "spend_cap_alerts"
	capResumed     storm.Measure = "calls_after_cleared"
	slowSteps      storm.Measure = "slow_down_in_steps"
	slowOnce       storm.Measure = "slow_down_at_once"
	growthLast     storm.Measure = "part_of_last_rate_used"
	servedAlone    storm.Measure = "served_without_quorum"
	liveP98        storm.Measure = "live_wait_p98_s"
	orphaned       storm.Measure = "requests_of_dead_gateway"
	alertAfter     storm.Measure = "quorum_alert_after_s"
	legitLost      storm.Measure = "legit_not_served_percent"
	silentBatch    storm.Measure = "batch_refused_unlabelled"
	silentStop     storm.Measure = "retries_stop_unlabelled_s"
	defaultBatch   storm.Measure = "batch_refused_defaults"
	defaultRefused storm.Measure = "legit_refused_defaults_percent"
)

var names = map[storm.Measure][2]string{
	unanswered:     {"tokens billed that no program was answered with", ""},
	unheard:        {"requests that were not served", ""},
	overshoot:      {"input tokens beyond the limit, over any time", ""},
	capServed:      {"calls at the provider before its spend cap", ""},
	capAttempts:    {"calls after the first refusal, until a person has cleared it", ""},
	capAlerts:      {"alerts of the spend cap, of all gateways", ""},
	capResumed:     {"calls after it was cleared", ""},
	slowSteps:      {"calls answered slow_down, rate raised in steps", ""},
	slowOnce:       {"calls answered slow_down, rate raised at once", ""},
	growthLast:     {"part of the last rate that was used in the end", ""},
	servedAlone:    {"requests served by gateways' shares while no node answers", ""},
	liveP98:        {"live tasks wait, p98", "s"},
	orphaned:       {"requests that a dead gateway had not answered", ""},
	alertAfter:     {"gateways say that no node answers, after the majority is gone", "s"},
	legitLost:      {"other teams' requests not served, whoever refused", "%"},
	silentBatch:    {"batch requests refused by the provider, retries not labelled", ""},
	silentStop:     {"batch retries end, after the first refusal, not labelled", "s"},
	defaultBatch:   {"batch requests refused by the provider, not labelled, gateways by default", ""},
	defaultRefused: {"other teams' requests refused, not labelled, gateways by default", "%"},
}

// within adds a figure that has to be from low to high.
func (h *House) within(o *storm.Outcome, m storm.Measure, value, low, high float64) {
	f := storm.Figure{Measure: m, Name: names[m][0], Unit: names[m][1], Value: value}
	if f.Name == "" {
		f.Name, f.Unit = m.Name()
	}
	if h.Part < 1 {
		f.Name += ", " + partly(h.Part)
	}
	o.Add(f, low, high)
}

func (h *House) show(o *storm.Outcome, m storm.Measure, value float64) {
	h.within(o, m, value, none, most)
}

func (h *House) exactly(o *storm.Outcome, m storm.Measure, value, want int) {
	h.within(o, m, float64(value), float64(want), float64(want))
}

// partly says how much of a storm was played.
func partly(part float64) string { return fmt.Sprintf("a part of %.3g%% played", 100*part) }
