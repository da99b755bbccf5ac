package storm

// Measure is what a figure measures.
type Measure string

// The measures. Scenarios that are seen beside one another share them.
const (
	Attempts       Measure = "attempts"
	Done           Measure = "done"
	PerDone        Measure = "attempts_per_done"
	RefusedPart    Measure = "refused_percent"
	FullAttempts   Measure = "attempts_full_bucket"
	FullDone       Measure = "done_full_bucket"
	EmptyAttempts  Measure = "attempts_empty_bucket"
	EmptyDone      Measure = "done_empty_bucket"
	SecondPerDone  Measure = "attempts_per_done_second_bucket"
	LivePart       Measure = "live_done_percent"
	SecondLivePart Measure = "live_done_second_bucket_percent"
	LiveP50        Measure = "live_wait_p50_s"
	LiveP99        Measure = "live_wait_p99_s"
	LiveMax        Measure = "live_wait_max_s"
	BacklogTime    Measure = "backlog_minutes"
	BacklogRate    Measure = "backlog_per_minute"
	InputMean      Measure = "input_tokens_per_minute"
	InputPart      Measure = "input_percent"
	OutputPart     Measure = "output_percent"
	InputWorst     Measure = "input_tokens_worst_minute"
	ProviderNo     Measure = "refused_by_provider"
	FirstSecond    Measure = "first_second"
	ETAOff         Measure = "eta_off_percent"
	BacklogChance  Measure = "backlog_off_reckoned_minutes"
	EvenTime       Measure = "backlog_even_minutes"
	EvenP99        Measure = "live_wait_p99_even_s"
	SlowTime       Measure = "backlog_ramp_minutes"
	EightMax       Measure = "live_wait_max_reserve_8_s"
	EightTime      Measure = "backlog_reserve_8_minutes"
	SecondKeptNo   Measure = "refused_second_bucket_reserve_5"
	EstimatedInput Measure = "input_tokens_per_minute_sizes_not_said"
	GatewayHeld    Measure = "leases_of_dead_gateway"
	DoneAgain      Measure = "calls_made_again"
	SpentTwice     Measure = "leases_spent_twice"
	StallMax       Measure = "live_wait_max_election_s"
	DivergedNodes  Measure = "nodes_in_another_state"
	EstimatedNo    Measure = "refused_sizes_not_said"
	ReserveNoneP50 Measure = "live_wait_p50_reserve_0_s"
	ReserveNone    Measure = "live_wait_p99_reserve_0_s"
	ReserveTwo     Measure = "live_wait_p99_reserve_2_s"
	ReserveEight   Measure = "live_wait_p99_reserve_8_s"
	EmptyNo        Measure = "refused_empty_bucket"
	SecondNo       Measure = "refused_second_bucket"
	SizesInput     Measure = "input_tokens_per_minute_sizes_vary"
	SizesNo        Measure = "refused_sizes_vary"
	HerdFixed      Measure = "herd_fixed"
	HerdJitter     Measure = "herd_jitter"
	HerdNow        Measure = "herd"

	BatchMinute      Measure = "batch_per_minute"
	BatchRefused     Measure = "batch_refused"
	BatchRefusedPart Measure = "batch_refused_percent"
	LegitRefused     Measure = "legit_refused_percent"
	Billed           Measure = "billed_refused_tokens"
	BilledAfter      Measure = "billed_refused_tokens_metered_after"
	LegitP50         Measure = "legit_wait_p50_s"
	LegitP99         Measure = "legit_wait_p99_s"
	PoliteRefused    Measure = "legit_refused_polite_percent"
	AlertsShort      Measure = "alerts_90s"
	AlertsAlmost     Measure = "alerts_119s"
	AlertsLong       Measure = "alerts_120s"
	AlertAfter       Measure = "alert_after_s"
	AlertsOthers     Measure = "alerts_of_others"
	RedAfter         Measure = "over_budget_said_after_s"
	RetriesStop      Measure = "retries_stop_s"
	LocalRefusals    Measure = "local_refusals_per_minute"
	SilentTwenty     Measure = "legit_refused_unlabelled_20_workers_percent"
	SilentRefused    Measure = "legit_refused_unlabelled_percent"
	SilentMinute     Measure = "batch_per_minute_unlabelled"

	Unique          Measure = "unique_done"
	Executed        Measure = "executed"
	Duplicates      Measure = "duplicates_executed"
	Coalesced       Measure = "coalesced"
	Drained         Measure = "drained_s"
	InFlight        Measure = "in_flight_gate_4"
	AwarePart       Measure = "fallback_by_cost_percent"
	AwareP95        Measure = "fallback_by_cost_others_p95_s"
	OthersP95       Measure = "others_p95_s"
	OthersP99       Measure = "others_p99_s"
	QueueMost       Measure = "queue_peak"
	FallbackCalls   Measure = "fallback_calls"
	FallbackPart    Measure = "fallback_cost_percent"
	Circuits        Measure = "circuits_opened"
	FastFailed      Measure = "fast_failed"
	SlippedThrough  Measure = "attempts_past_the_circuit"
	CheckedAttempts Measure = "attempts_circuit_checked_twice"
	CheckedDone     Measure = "done_circuit_checked_twice"
	Successes       Measure = "attempts_admitted"

	GuaranteesBroken Measure = "guarantees_broken"
)

// Name is how a measure of this package is called for people, and its unit.
func (m Measure) Name() (name, unit string) { return names[m].name, names[m].unit }

// names are how figures are called for people.
var names = map[Measure]struct{ name, unit string }{
	GuaranteesBroken: {"times that G1 or G2 broke", ""},

	Attempts:       {"attempts", ""},
	Done:           {"tasks done", ""},
	PerDone:        {"attempts for a task done", ""},
	RefusedPart:    {"attempts refused by the provider", "%"},
	FullAttempts:   {"attempts, provider with a full bucket", ""},
	FullDone:       {"tasks done, provider with a full bucket", ""},
	EmptyAttempts:  {"attempts, provider with an empty bucket", ""},
	EmptyDone:      {"tasks done, provider with an empty bucket", ""},
	SecondPerDone:  {"attempts for a task done, bucket of a second", ""},
	LivePart:       {"live tasks done", "%"},
	SecondLivePart: {"live tasks done, bucket of a second", "%"},
	LiveP50:        {"live tasks wait, p50", "s"},
	LiveP99:        {"live tasks wait, p99", "s"},
	LiveMax:        {"live tasks wait, longest", "s"},
	BacklogTime:    {"backlog done after", "min"},
	BacklogRate:    {"backlog tasks a minute", ""},
	InputMean:      {"input tokens a minute", ""},
	InputPart:      {"of the provider's input limit", "%"},
	OutputPart:     {"of the provider's output limit", "%"},
	InputWorst:     {"input tokens in the worst minute", ""},
	ProviderNo:     {"calls refused by the provider", ""},
	FirstSecond:    {"calls at the provider in the first second", ""},
	ETAOff:         {"first estimate of a wait is off by, median", "%"},
	BacklogChance:  {"later than reckoned from the live tasks that chance brought", "min"},
	EvenTime:       {"backlog done after, live tasks at equal distances, nothing kept", "min"},
	EvenP99:        {"live tasks wait, p99, at equal distances, nothing kept", "s"},
	SlowTime:       {"backlog done after, its rate rising for 10 minutes", "min"},
	EightMax:       {"live tasks wait, longest, 8 of 10 kept", "s"},
	EightTime:      {"backlog done after, 8 of 10 kept", "min"},
	SecondKeptNo:   {"the same with 5 of 10 kept for live tasks", ""},
	EstimatedInput: {"the same where nobody says what they were", ""},
	GatewayHeld:    {"leases that the dead gateway held", ""},
	DoneAgain:      {"calls that had to be made again", ""},
	SpentTwice:     {"leases spent twice", ""},
	StallMax:       {"live tasks wait, longest, while nobody leads", "s"},
	DivergedNodes:  {"nodes in another state than the leader", ""},
	EstimatedNo:    {"refused by the provider then", ""},
	ReserveNoneP50: {"live tasks wait, p50, nothing kept for them", "s"},
	ReserveNone:    {"live tasks wait, p99, nothing kept for them", "s"},
	ReserveTwo:     {"live tasks wait, p99, 2 of 10 kept", "s"},
	ReserveEight:   {"live tasks wait, p99, 8 of 10 kept", "s"},
	EmptyNo:        {"refused by a provider with an empty bucket", ""},
	SecondNo:       {"refused by a provider with a bucket of a second", ""},
	SizesInput:     {"input tokens a minute, sizes vary by a fifth", ""},
	SizesNo:        {"refused by the provider, sizes vary by a fifth", ""},
	HerdFixed:      {"herd, fixed second", ""},
	HerdJitter:     {"herd, random up to 2 s", ""},
	HerdNow:        {"herd of retries", ""},

	BatchMinute:      {"batch requests a minute at the provider", ""},
	BatchRefused:     {"batch requests refused by the provider", ""},
	BatchRefusedPart: {"batch requests refused by the provider", "%"},
	LegitRefused:     {"other teams' requests refused by the provider", "%"},
	Billed:           {"prompt tokens metered for refused requests", ""},
	BilledAfter:      {"the same with the meter behind the decision", ""},
	LegitP50:         {"other teams' requests wait, p50", "s"},
	LegitP99:         {"other teams' requests wait, p99", "s"},
	PoliteRefused:    {"other teams' requests refused, polite job without the limit", "%"},
	AlertsShort:      {"alerts, above a tenth for 90 s", ""},
	AlertsAlmost:     {"alerts, above a tenth for 119 s", ""},
	AlertsLong:       {"alerts, above a tenth for 120 s", ""},
	AlertAfter:       {"the alert comes after", "s"},
	AlertsOthers:     {"alerts about anybody else", ""},
	RedAfter:         {"above a fifth, said after", "s"},
	RetriesStop:      {"batch retries end, after the first refusal", "s"},
	LocalRefusals:    {"refused by the gateways themselves a minute", ""},
	SilentTwenty:     {"the same with 20 workers", "%"},
	SilentRefused:    {"other teams' requests refused, retries not labelled", "%"},
	SilentMinute:     {"batch requests a minute, retries not labelled", ""},

	Unique:          {"different jobs done", ""},
	Executed:        {"jobs executed", ""},
	Duplicates:      {"of them for the second time", ""},
	Coalesced:       {"jobs that were another's, and waited for it", ""},
	Drained:         {"import done after", "s"},
	InFlight:        {"most calls in flight behind a gate of 4", ""},
	AwarePart:       {"with a fallback by cost: its part of the cost", "%"},
	AwareP95:        {"with a fallback by cost: other tenants served within, p95", "s"},
	OthersP95:       {"other tenants served within, p95", "s"},
	OthersP99:       {"other tenants served within, p99", "s"},
	QueueMost:       {"longest queue", ""},
	FallbackCalls:   {"with a fallback: calls of it", ""},
	FallbackPart:    {"with a fallback: its part of the cost", "%"},
	Circuits:        {"circuits opened", ""},
	FastFailed:      {"failed at an open circuit", ""},
	SlippedThrough:  {"attempts past an open circuit", ""},
	CheckedAttempts: {"attempts, circuit looked at after the wait too", ""},
	CheckedDone:     {"jobs executed then", ""},
	Successes:       {"attempts admitted by the provider", ""},

	"admitted_10": {"a bucket of 10 admits at once", ""},
	"held_10":     {"and holds", ""},
	"held_2s":     {"held after 2 s", ""},
	"held_3s":     {"held after 3 s", ""},
	"held_4s":     {"held after 4 s", ""},
	"held_5s":     {"held after 5 s", ""},
	"held_6s":     {"held after 6 s", ""},
	"held_7s":     {"held after 7 s", ""},
	"held_8s":     {"held after 8 s", ""},
	"held_9s":     {"held after 9 s", ""},
	"admitted_15": {"a bucket of 15 admits at once", ""},
	"held_15":     {"and holds", ""},
	"admitted_20": {"a bucket of 20 admits at once", ""},
	"held_20":     {"and holds", ""},
	"admitted_25": {"a bucket of 25 admits at once", ""},
	"held_25":     {"and holds", ""},

	"attempts_per_done_fixed": {"attempts for a task done, fixed second", ""},
	"attempts_per_done_2s":    {"attempts for a task done, random up to 2 s", ""},
	"attempts_per_done_8s":    {"attempts for a task done, random up to 8 s", ""},
	"attempts_per_done_60s":   {"attempts for a task done, random up to 60 s", ""},
	"attempts_per_done_136s":  {"attempts for a task done, random up to 136 s", ""},
}
