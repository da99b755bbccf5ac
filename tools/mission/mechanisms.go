package main

// mechanisms are those of the rows, in the order of the rows.
var mechanisms = []mechanism{
	{
		row: "S1-19", file: "fsm/retry/budget.go", tests: "fsm/retry",
		text: "return Attempts", without: "return Admit",
	},
	{
		row: "S3-13", file: "fsm/lineage/carry.go", tests: "fsm", pattern: "TestRaisingALimitIsMonotone/S3-13",
		text: "d.take(old, &next[i].Bucket)", without: "next[i].Bucket = d.Shape.Empty(since)",
	},
}
