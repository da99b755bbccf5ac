package main

// mechanisms are those of the rows, in the order of the rows.
var mechanisms = []mechanism{
	{
		row: "S1-19", file: "fsm/retry/budget.go", tests: "fsm/retry",
		text: "return Attempts", without: "return Admit",
	},
}
