package main

import "slices"

// mechanisms are those of the rows.
var mechanisms = slices.Concat(atNodes, atGateways)

// atNodes are those that nodes and clients settle, in the order of the rows.
var atNodes = []mechanism{
	{
		row: "S1-01", file: "fsm/bucket/bucket.go", tests: "bench/storm", pattern: "TestStorms/s1-fair/S1-01",
		text: "want > max(0, b.free-mul(keep, s.unit))+own.level {", without: "want > max(0, b.free-mul(keep, s.unit)) {",
	},
	{
		row: "S1-02", file: "fsm/retry/budget.go", tests: "bench/storm", pattern: "TestStorms/s1-budget/S1-02",
		text: "return Attempts", without: "return Admit",
	},
	{
		row: "S1-04", file: "cluster/queue/terms.go", tests: "bench/storm",
		pattern: "TestAJobThatNobodyAnnounced/S1-04",
		text:    "return max(1, t.Weights[client])", without: "return max(1, 0*t.Weights[client])",
	},
	{
		row: "S1-05", file: "fsm/feedback/decide.go", tests: "fsm", pattern: "TestScripts/S1-05",
		text: "return c, s.GetKind() == logv1.Signal_KIND_THROTTLED", without: "return c, false",
	},
	{
		row: "S1-06", file: "fsm/plan.go", tests: "fsm", pattern: "TestAllLimitsAreLookedAt/S1-06",
		text: "return cmp.Compare(patience(b), patience(a))", without: "return cmp.Compare(patience(a), patience(b))",
	},
	{
		row: "S1-07", file: "bench/storm/quota.go", tests: "bench/storm", pattern: "TestStorms/s1-reconciled/S1-07",
		text: "if !answer.OK {\n\t\treturn answer\n\t}\n\tm.meter.behind", without: "m.meter.behind",
	},
	{
		row: "S1-08", file: "bench/storm/quota.go", tests: "bench/storm", pattern: "TestStorms/s1-reconciled/S1-08",
		text: "m.meter.ahead += prompt\n\tanswer := m.Model.Ask(now, call)", without: "answer := m.Model.Ask(now, call)",
	},
	{
		row: "S1-09", file: "bench/provider/minute.go", tests: "bench/storm", pattern: "TestStorms/s1-reconciled/S1-09",
		text: "n := call.Input + call.Output", without: "n := call.Input",
	},
	{
		row: "S1-10", file: "cluster/metrics/clients.go", tests: "cluster/metrics",
		text: "m.attempts.throttled.Add(float64(count.Throttled))", without: "m.attempts.throttled.Add(0)",
	},
	{
		row: "S1-11", file: "cluster/metrics/clients.go", tests: "cluster/metrics",
		text: "m.attempts.all.Add(float64(count.Total))", without: "m.attempts.all.Add(0)",
	},
	{
		row: "S1-12", file: "api/dashboard/static/chart.js", tests: "api/dashboard", pattern: "TestTheFigures/S1-12",
		text: "this.line('plot-bad', bads, top);", without: "this.line('plot-bad', goods, top);",
	},
	{
		row: "S1-13", file: "cluster/retries/waits.go", tests: "cluster/retries", pattern: "TestWaitsThatAreKept",
		text: "return told && at < until", without: "return told && at > until",
	},
	{
		row: "S1-16", file: "fsm/decide.go", tests: "fsm", pattern: "TestAllLimitsAreLookedAt/S1-16",
		text: "if l.dimension < 0 {", without: "if l.dimension < 0 || l.target > 0 {",
	},
	{
		row: "S1-17", file: "cluster/audit/audit.go", tests: "cluster/audit", pattern: "TestNobodyWaits/S1-17",
		text: "\tdefault:\n\t\tl.drop(d.Time)\n", without: "\tcase <-l.stop:\n",
	},
	{
		row: "S1-18", file: "fsm/retry/budget.go", tests: "fsm/retry",
		text: "if (attempt > 0 || r.Scope == Client) && r.Over(", without: "if attempt > 0 && r.Over(",
	},
	{
		row: "S1-19", file: "fsm/retry/budget.go", tests: "fsm/retry",
		text: "return Attempts", without: "return Admit",
	},
	{
		row: "S1-20", file: "fsm/retry/budget.go", tests: "fsm/retry",
		text: "leftHi == rightHi && leftLo > rightLo", without: "leftHi == rightHi && leftLo >= rightLo",
	},
	{
		row: "S1-21", file: "fsm/window/slices.go", tests: "fsm/window",
		text: "return c.search(now - Slices + 1)", without: "return c.search(now - 2*Slices)",
	},
	{
		row: "S1-22", file: "fsm/retry/budget.go", tests: "fsm/retry",
		text: "if total <= r.MinRequests {", without: "if total < 0 {",
	},
	{
		row: "S1-28", file: "cluster/retries/desk.go", tests: "cluster", pattern: "TestBudgetsAndLimitsAreApart",
		text: "recorded = result.GetGranted() && !result.GetRepeated()", without: "recorded = true",
	},
	{
		row: "S1-29", file: "cluster/retries/counter.go", tests: "cluster", pattern: "TestBudgetsInAStorm/S1-29",
		text: "if ownRetries+heldRetries < part {", without: "if part >= 0 {",
	},
	{
		row: "S1-31", file: "client/report/report.go", tests: "client", pattern: "TestPermitsAreReported/S1-31",
		text: ", Attempts: tried}", without: "}",
	},
	{
		row: "S1-32", file: "cluster/retries/desk.go", tests: "cluster/retries", pattern: "TestDecisionsCost/S1-32",
		text: "ok && known.slice == slice {", without: "ok && known.slice > slice {",
	},
	{
		row: "S1-33", file: "fsm/retry/budget.go", tests: "fsm/retry",
		text: "leftHi == rightHi && leftLo > rightLo", without: "leftHi == rightHi && leftLo >= rightLo",
	},
	{
		row: "S1-34", file: "fsm/retry/budget.go", tests: "fsm/retry",
		text: "if total <= r.MinRequests {", without: "if total < r.MinRequests {",
	},
	{
		row: "S1-35", file: "client/failopen/decide.go", tests: "client", pattern: "TestStoreDown/S1-35",
		text: "if r.Mode == Open || c.Amount < 1 {", without: "if c.Amount < 1 {",
	},
	{
		row: "S1-36", file: "client/authority/alarm.go", tests: "client", pattern: "TestAlertOfTheOpenCircuit/S1-36",
		text:    "change := a.machine.ObserveCall(began, now, s)",
		without: "change := a.machine.ObserveCall(began, now, s)\n\ts = failopen.Slow",
	},
	{
		row: "S1-37", file: "api/server/convert/client.go", tests: "api/server/overview",
		pattern: "TestOffenders/S1-13_S1-37",
		text:    "fractionPPM(c.Count.Retries, c.Count.Total)", without: "fractionPPM(c.Count.Throttled, c.Count.Total)",
	},
	{
		row: "S1-38", file: "api/server/convert/client.go", tests: "api/server/overview", pattern: "TestOffenders/S1-38",
		text: "RetriesLeft: c.Left,", without: "RetriesLeft: c.Count.Total - c.Count.Retries,",
	},
	{
		row: "S1-39", file: "api/server/overview/hub.go", tests: "api/server/overview", pattern: "TestRhythm",
		text: "case <-h.config.Node.Overview().Changed(last.version):", without: "case <-chan struct{}(nil):",
	},
	{
		row: "S1-40", file: "cluster/overview/incidents.go", tests: "cluster/overview",
		text: "retries = i.ofRetries", without: "retries = 0",
	},
	{
		row: "S1-41", file: "cluster/warn/warn.go", tests: "bench/storm", pattern: "TestStorms/s1-alerts/S1-41",
		text: "at-c.since >= after:", without: "at-c.since >= 0:",
	},
	{
		row: "S1-42", file: "cluster/warn/warn.go", tests: "cluster/warn",
		text: "at-c.since >= after:", without: "at-c.since >= 0:",
	},
	{
		row: "S1-47", file: "fsm/deny.go", tests: "fsm", pattern: "TestScripts/S1-47",
		text: "if l.enforced {", without: "if l.enforced || !l.enforced {",
	},
	{
		row: "S1-48", file: "cluster/warn/round.go", tests: "cluster/budget", pattern: "TestStormIsSaidAtOnce",
		text: "s.Error = m.Fault(now, name).Text", without: "s.Error = \"\"",
	},
	{
		row: "S1-49", file: "cluster/retries/desk.go", tests: "cluster", pattern: "TestBudgetsAndLimitsAreApart",
		text: "recorded = result.GetGranted() && !result.GetRepeated()", without: "recorded = true",
	},
	{
		row: "S1-50", file: "cluster/usage/settled.go", tests: "cluster/usage", pattern: "TestLedger/S1-50",
		text: "Count{Returned: max(0, -over), Extra: max(0, over)},", without: "Count{},",
	},
	{
		row: "S1-51", file: "cluster/audit/line.go", tests: "bench/storm", pattern: "TestTheAuditTellsTheStorm/S1-51",
		text: "`,\"client\":`...), d.Client)", without: "`,\"client\":`...), d.Node)",
	},
	{
		row: "S1-52", file: "cluster/retries/counter.go", tests: "cluster/retries",
		text: "if h.known || c.kept != (tally.Count{}) {", without: "if h.client != nil {",
	},
	{
		row: "S2-01", file: "fsm/bucket/bucket.go", tests: "bench/storm", pattern: "TestStorms/s2-ours/S2-01",
		text: "want > max(0, b.free-mul(keep, s.unit))+own.level {", without: "want < 0 {",
	},
	{
		row: "S2-02", file: "cluster/queue/queue.go", tests: "cluster",
		pattern: "TestOneQueueForEachKeyAndClass/S2-02",
		text:    "l := p.lane(w.Class)", without: "l := p.lane(w.Client)",
	},
	{
		row: "S2-03", file: "fsm/match/charges.go", tests: "api/server", pattern: "TestAttributesBecomeCharges/S2-03",
		text: "return r.checked(Key(list...))", without: "return r.checked(Key(list[1:]...))",
	},
	{
		row: "S2-05", file: "fsm/decide.go", tests: "bench/storm", pattern: "TestStorms/s2-ours/S2-05",
		text:    "m.targetOf(lim, name, m.state.FindKey(lim.ID, name))",
		without: "m.targetOf(lim, \"one\", m.state.FindKey(lim.ID, \"one\"))",
	},
	{
		row: "S2-06", file: "bench/storm/herd.go", tests: "bench/storm", pattern: "TestHerd/S2-06",
		text: "const herdBin = 100 * time.Millisecond", without: "const herdBin = time.Second",
	},
	{
		row: "S2-07", file: "bench/storm/fleetours.go", tests: "bench/storm", pattern: "TestStorms/s2-ours/S2-07",
		text: "if j.tenant != importer {", without: "if j.tenant >= importer {",
	},
	{
		row: "S2-08", file: "bench/storm/fleetbefore.go", tests: "bench/storm", pattern: "TestStorms/s2-naive/S2-08",
		text: "fallbackCost = 5", without: "fallbackCost = 1",
	},
	{
		row: "S2-09", file: "bench/storm/fleetours.go", tests: "bench/storm",
		pattern: "TestNoCallWithoutALease/S2-09",
		text:    "case a.Granted:", without: "case a.Granted || a.Denial != nil:",
	},
	{
		row: "S2-18", file: "fsm/decide.go", tests: "bench/storm", pattern: "TestStorms/s2-ours/S2-18",
		text: "used := t.lim.InUse(", without: "used := 0 * t.lim.InUse(",
	},
	{
		row: "S2-23", file: "fsm/state/slots.go", tests: "fsm", pattern: "TestSlotsComeBackFromEverywhere/S2-23",
		text: "one.total -= h.amount", without: "one.total -= 0 * h.amount",
	},
	{
		row: "S2-27", file: "fsm/expiry.go", tests: "fsm", pattern: "TestIdleTenantsGo/S2-27",
		text: "m.state.DropKey(lim, k)", without: "m.state.SealKey(k)",
	},
	{
		row: "S2-29", file: "cluster/queue/look.go", tests: "cluster/queue",
		text: "d.Tokens = addCosts(d.Tokens, l.tokens)", without: "d.Tokens = nil",
	},
	{
		row: "S2-31", file: "cluster/overview/limit.go", tests: "cluster/overview",
		text: "if v.Denied+v.Waited == 0 {", without: "if v.Denied == 0 {",
	},
	{
		row: "S2-32", file: "fsm/decide.go", tests: "bench/storm", pattern: "TestStorms/s2-ours/S2-32",
		text:    "m.targetOf(lim, name, m.state.FindKey(lim.ID, name))",
		without: "m.targetOf(lim, \"one\", m.state.FindKey(lim.ID, \"one\"))",
	},
	{
		row: "S2-34", file: "doctor/clients.go", tests: "doctor", pattern: "TestMistakeList/S2-34",
		text: "*c.FallbackAfter == 1", without: "*c.FallbackAfter == 0",
	},
	{
		row: "S2-35", file: "fsm/feedback/decide.go", tests: "fsm", pattern: "TestScripts/S2-35",
		text: "at-at*a.GetDecrease()/bucket.Whole)", without: "at)",
	},
	{
		row: "S3-01", file: "fsm/feedback/feedback.go", tests: "fsm", pattern: "TestScripts/S3-01",
		text: "held.Lower(d.Shape, max(0, held.Level(d.Shape)-left))", without: "held.Lower(d.Shape, 0*left)",
	},
	{
		row: "S3-02", file: "fsm/bucket/shape.go", tests: "bench/storm", pattern: "TestStorms/s3-after/S3-02",
		text: "perShare.Mul(perShare, big.NewInt(spec.Target))", without: "perShare.Mul(perShare, big.NewInt(Whole))",
	},
	{
		row: "S3-03", file: "bench/storm/plan.go", tests: "bench/storm", pattern: "TestPlan/S3-03",
		text:    "float64(p.Limits.Input) / float64(p.Task.Input)",
		without: "float64(p.Limits.Input) / float64(p.Task.Input+p.Task.Output)",
	},
	{
		row: "S3-04", file: "fsm/deny.go", tests: "api/server", pattern: "TestTheBindingDimensionIsNamed/S3-04",
		text:    "Dimension: l.charge.GetDimension(), RetryAfter: wait,",
		without: "Dimension: \"requests\", RetryAfter: wait,",
	},
	{
		row: "S3-05", file: "api/limitsfile/written/values.go", tests: "api/limitsfile", pattern: "TestExampleIsTrue/S3-05",
		text: "{\"min\", time.Minute}", without: "{\"min\", time.Second}",
	},
	{
		row: "S3-06", file: "plan/reckon.go", tests: "plan", pattern: "TestTheNightlyBackfill/S3-06",
		text: "Sub(a.Parts[a.Binding].Tasks, a.Live)", without: "Sub(a.Parts[0].Tasks, a.Live)",
	},
	{
		row: "S3-07", file: "bench/storm/plan.go", tests: "bench/storm", pattern: "TestPlan/S3-07",
		text:    "float64(p.Limits.Input) / float64(p.Task.Input)",
		without: "float64(p.Limits.Input) / float64(p.Task.Input+p.Task.Output)",
	},
	{
		row: "S3-08", file: "bench/storm/nightly.go", tests: "bench/storm", pattern: "TestStorms/s3-sustained/S3-08",
		text: "delay: fixed(time.Second),", without: "delay: fixed(time.Minute),",
	},
	{
		row: "S3-09", file: "fsm/lease/settle.go", tests: "fsm", pattern: "TestScripts/S3-09",
		text: "c.Excess += extra", without: "c.Excess += 0",
	},
	{
		row: "S3-10", file: "fsm/bucket/bucket.go", tests: "bench/storm", pattern: "TestStorms/s3-after/S3-10",
		text: "want > max(0, b.free-mul(keep, s.unit))+own.level {", without: "want > max(0, b.free-mul(keep, s.unit)) {",
	},
	{
		row: "S3-12", file: "fsm/match/index.go", tests: "api/server", pattern: "TestSlotsOfAClass/S3-12",
		text: "if value == \"\" && name == className {", without: "if value != \"\" && name == className {",
	},
	{
		row: "S3-13", file: "fsm/lineage/carry.go", tests: "fsm", pattern: "TestRaisingALimitIsMonotone/S3-13",
		text: "d.take(old, &next[i].Bucket)", without: "next[i].Bucket = d.Shape.Empty(since)",
	},
	{
		row: "S3-14", file: "plan/reckon.go", tests: "plan", pattern: "TestTheNightlyBackfill/S3-14",
		text: "a.Jitter = seconds(clients, a.Headroom)", without: "a.Jitter = seconds(clients, a.Parts[0].Tasks)",
	},
	{
		row: "S3-15", file: "fsm/bucket/shape.go", tests: "bench/storm", pattern: "TestStorms/s3-after/S3-15",
		text: "perShare.Mul(perShare, big.NewInt(spec.Target))", without: "perShare.Mul(perShare, big.NewInt(Whole))",
	},
	{
		row: "S3-16", file: "fsm/match/charges.go", tests: "api/server", pattern: "TestAttributesBecomeCharges/S3-16",
		text: "return r.checked(value)", without: "return r.checked(value[:1])",
	},
	{
		row: "S3-17", file: "cluster/queue/lane.go", tests: "cluster", pattern: "TestNobodyIsRefusedWhileThereIsRoom/S3-17",
		text: "q.dueAt(l, at)", without: "q.dueAt(l, Never)",
	},
	{
		row: "S3-19", file: "cluster/queue/lane.go", tests: "bench/storm", pattern: "TestStorms/s3-demo/S3-19",
		text: "q.dueAt(l, at)", without: "q.dueAt(l, Never)",
	},
	{
		row: "S3-20", file: "plan/whatif.go", tests: "plan", pattern: "TestWhatIf/S3-20",
		text: "paid.Add(paid, l.holds)", without: "_ = l.holds",
	},
	{
		row: "S3-21", file: "plan/whatif.go", tests: "plan", pattern: "TestWhatIf/S3-21",
		text: "Mul(l.perSecond, ratio(seconds, 1))", without: "Mul(l.perSecond, ratio(1, 1))",
	},
	{
		row: "S3-22", file: "doctor/clients.go", tests: "doctor", pattern: "TestDelays/S3-22",
		text: "*c.Jitter > 0 {", without: "*c.Jitter >= 0 {",
	},
	{
		row: "S3-24", file: "fsm/feedback/decide.go", tests: "fsm", pattern: "TestAHerdOfReports/S3-24",
		text: "now + bucket.Instant(s.GetWait())", without: "now + bucket.Instant(s.GetWait()/2)",
	},
	{
		row: "S3-25", file: "fsm/retry/tokens.go", tests: "fsm/retry",
		text: "t.spent += r.Cost", without: "t.spent += 0",
	},
	{
		row: "S3-26", file: "plan/reckon.go", tests: "plan", pattern: "TestTheNightlyBackfill/S3-26",
		text: "Quo(ratio(clients, 1), w)", without: "Quo(ratio(clients, 2), w)",
	},
	{
		row: "S3-27", file: "fsm/feedback/feedback.go", tests: "fsm", pattern: "TestScripts/S3-27",
		text: "case c.Blocked:", without: "case c.Blocked && c.Paused(now):",
	},
	{
		row: "S3-29", file: "fsm/feedback/decide.go", tests: "fsm", pattern: "TestAHerdOfReports/S3-29",
		text: "p.Start = rampStart", without: "p.Start = pace.Whole",
	},
	{
		row: "S3-31", file: "fsm/lease/settle.go", tests: "bench/storm", pattern: "TestStorms/s3-after/S3-31",
		text: "b.bookExcess(l, c, used[i])", without: "_ = c.Excess",
	},
	{
		row: "S3-33", file: "fsm/bucket/shape.go", tests: "bench/storm", pattern: "TestStorms/s3-after/S3-33",
		text: "perShare.Mul(perShare, big.NewInt(spec.Target))", without: "perShare.Mul(perShare, big.NewInt(Whole))",
	},
	{
		row: "S3-34", file: "fsm/bucket/shape.go", tests: "bench/storm", pattern: "TestStorms/s3-after/S3-34",
		text: "perShare.Mul(perShare, big.NewInt(spec.Target))", without: "perShare.Mul(perShare, big.NewInt(Whole))",
	},
	{
		row: "S3-35", file: "fsm/bucket/shape.go", tests: "bench/storm", pattern: "TestStorms/s3-after/S3-35",
		text: "perShare.Mul(perShare, big.NewInt(spec.Target))", without: "perShare.Mul(perShare, big.NewInt(Whole))",
	},
	{
		row: "S3-36", file: "plan/reckon.go", tests: "plan", pattern: "TestMargin/S3-36",
		text: "a.Margin, a.Measured = *q.ErrorP99, true", without: "a.Measured = true",
	},
	{
		row: "S3-37", file: "cluster/admit.go", tests: "cluster", pattern: "TestNoSinglePoint/S3-37",
		text: "if it.Hops <= hopsMax && n.forwarder", without: "if it.Hops < 0 && n.forwarder",
	},
	{
		row: "S3-39", file: "cluster/queue/turn.go", tests: "bench/storm", pattern: "TestStorms/s3-after/S3-39",
		text: "m.tokens[c.Dimension] += float64(c.Tokens)", without: "m.tokens[c.Dimension] += 2 * float64(c.Tokens)",
	},
	{
		row: "S3-40", file: "fsm/retry/budget.go", tests: "bench/storm",
		pattern: "TestRetriesFitIntoTheHeadroom/S3-40",
		text:    "if total <= r.MinRequests {", without: "if total >= 0 {",
	},
	{
		row: "S3-41", file: "fsm/match/charges.go", tests: "api/server",
		pattern: "TestTheBindingDimensionIsNamed/S3-41",
		text:    "for _, d := range r.limit.GetDimensions() {",
		without: "for _, d := range r.limit.GetDimensions()[:1] {",
	},
	{
		row: "S3-42", file: "client/decision.go", tests: "client", pattern: "TestFeedbackIsForEverybody/S3-42",
		text: "return failopen.Jitter(wait), false", without: "return min(wait, failopen.Jitter(wait)), false",
	},
	{
		row: "S3-44", file: "cluster/queue/queue.go", tests: "cluster/queue", pattern: "TestWaitersAreNotPolled/S3-44",
		text: "at, ok = q.due.first().due, true", without: "at, ok = q.due.first().due/2, true",
	},
	{
		row: "S3-45", file: "bench/provider/buckets.go", tests: "bench/provider",
		text: "if !options.Empty {", without: "if options.Empty {",
	},
	{
		row: "S3-47", file: "fsm/bucket/shape.go", tests: "bench/storm", pattern: "TestStorms/s3-after/S3-47",
		text: "perShare.Mul(perShare, big.NewInt(spec.Target))", without: "perShare.Mul(perShare, big.NewInt(Whole))",
	},
	{
		row: "S3-48", file: "doctor/limits.go", tests: "doctor", pattern: "TestSources/S3-48",
		text: "case age > StaleAfter:", without: "case age > 2*StaleAfter:",
	},
}
