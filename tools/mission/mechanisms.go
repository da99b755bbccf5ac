package main

// mechanisms are those of the rows, in the order of the rows.
var mechanisms = []mechanism{
	{
		row: "S1-05", file: "fsm/feedback/decide.go", tests: "fsm", pattern: "TestScripts/S1-05",
		text: "return c, s.GetKind() == logv1.Signal_KIND_THROTTLED", without: "return c, false",
	},
	{
		row: "S1-19", file: "fsm/retry/budget.go", tests: "fsm/retry",
		text: "return Attempts", without: "return Admit",
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
		row: "S3-09", file: "fsm/lease/settle.go", tests: "fsm", pattern: "TestScripts/S3-09",
		text: "c.Excess += extra", without: "c.Excess += 0",
	},
	{
		row: "S3-13", file: "fsm/lineage/carry.go", tests: "fsm", pattern: "TestRaisingALimitIsMonotone/S3-13",
		text: "d.take(old, &next[i].Bucket)", without: "next[i].Bucket = d.Shape.Empty(since)",
	},
	{
		row: "S3-24", file: "fsm/feedback/decide.go", tests: "fsm", pattern: "TestAHerdOfReports/S3-24",
		text: "now + bucket.Instant(s.GetWait())", without: "now + bucket.Instant(s.GetWait()/2)",
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
		row: "S3-42", file: "client/decision.go", tests: "client", pattern: "TestFeedbackIsForEverybody/S3-42",
		text: "return failopen.Jitter(wait), false", without: "return min(wait, failopen.Jitter(wait)), false",
	},
}
