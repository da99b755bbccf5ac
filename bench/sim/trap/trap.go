// Package trap lists known ways to get the protocol wrong.
package trap

// Kind is a known way to get the protocol wrong, seeded into what surrounds the
// real parts: see docs/traps.md for what each number means. The empty trap is
// none. A trap exists in a simulation only.
type Kind string

// The traps that can be seeded. Where a trap has two forms, the second is named
// for what it gets wrong.
const (
	None Kind = ""
	// WallClock (T1): leaders count on by their wall clocks.
	WallClock Kind = "T1"
	// AppliedStamp (T2): a new leader goes on from the last stamp. NoTicks: and
	// nobody makes one while nothing happens.
	AppliedStamp Kind = "T2"
	NoTicks      Kind = "T2-ticks"
	// BeforeBarrier (T3): a leader stamps before its barrier has passed.
	BeforeBarrier Kind = "T3"
	// OldStamp (T4): a node believes an entry's stamp, however old.
	OldStamp Kind = "T4"
	// NodeSleeps and HolderSleeps (T5): lives are measured by the clock that stops
	// when the machine sleeps.
	NodeSleeps   Kind = "T5"
	HolderSleeps Kind = "T5-holder"
	// OwnWall (T6): a leader's own wall clock rolls windows.
	OwnWall Kind = "T6"
	// Prolonged (T12): a holder spends a lease as long as it may settle it.
	Prolonged Kind = "T12"
	// LeaseInMemory (T22): the leader keeps tracked leases, the log doesn't.
	LeaseInMemory Kind = "T22"
	// NoTombstone (T23): a release of an unknown id leaves nothing behind.
	NoTombstone Kind = "T23"
	// OwnView (T28): a node answers releases and renewals by what it has applied.
	OwnView Kind = "T28"
	// WholeHeadroom (T30): each node admits all that the rule leaves, and not a part.
	WholeHeadroom Kind = "T30"
	// ForgottenWhenSent (T31): a node forgets a count when it has sent it.
	ForgottenWhenSent Kind = "T31"
	// FrozenWindow (T32): a node's window slides with what it has applied.
	FrozenWindow Kind = "T32"
	// FullShare (T34): a cut-off client's bucket starts full.
	FullShare Kind = "T34"
	// NoReportID (T35): nothing tells two sendings of a report from two reports.
	NoReportID Kind = "T35"
	// LargerEstimate (T37): a follower keeps the larger of its estimate and the
	// stamp. T38 is the same where nothing restarts and clocks drift.
	LargerEstimate      Kind = "T37"
	LargerEstimateDrift Kind = "T38"
	// PulledBack (T39): a leader's own applies pull its estimate back.
	PulledBack Kind = "T39"
	// SnapshotWithoutTime (T39): a node begins at 0 after a snapshot.
	SnapshotWithoutTime Kind = "T39-snapshot"
	// Laundering (T40): nothing bounds what unsettled leases can give back.
	Laundering Kind = "T40"
)

// Mistakes without a number. They show that every check of the judge can fail.
const (
	// DoubleRefund: what a settle gives back comes back twice.
	DoubleRefund Kind = "double-refund"
	// DoubleSpend: a holder spends what it holds twice.
	DoubleSpend Kind = "double-spend"
	// HalfGrant: of several charges only the first is debited.
	HalfGrant Kind = "half-grant"
	// CostlyDenial: a denial takes a token.
	CostlyDenial Kind = "costly-denial"
	// EarlyHint: a denial asks for a millisecond too little.
	EarlyHint Kind = "early-hint"
	// Diverging: a node applies an entry a nanosecond later than the others.
	Diverging Kind = "diverging"
	// HeldTooLong: whoever lost its connection holds its slots until their lease ends,
	// though its session has ended.
	HeldTooLong Kind = "held-too-long"
	// EndedByID: a node ends a session, and not one connection of it.
	EndedByID Kind = "ended-by-id"
	// SameAgain: a node that lost its disk comes back under the same id.
	SameAgain Kind = "same-again"
	// LostReport: a client takes a report for booked that nobody has answered.
	LostReport Kind = "lost-report"
)

// All are all of them, those with numbers first, each with the rule that it
// breaks.
func All() []Seeded {
	return []Seeded{
		{WallClock, "clock"},
		{AppliedStamp, "clock"},
		{NoTicks, "clock"},
		{BeforeBarrier, "clock"},
		{OldStamp, "clock"},
		{NodeSleeps, "clock"},
		{HolderSleeps, "G2"},
		{OwnWall, "wall"},
		{Prolonged, "G2"},
		{LeaseInMemory, "G4"},
		{NoTombstone, "G4"},
		{OwnView, "G4"},
		{WholeHeadroom, "G12"},
		{ForgottenWhenSent, "G12"},
		{FrozenWindow, "G12"},
		{FullShare, "A20"},
		{NoReportID, "reports"},
		{LargerEstimate, "clock"},
		{LargerEstimateDrift, "clock"},
		{PulledBack, "clock"},
		{SnapshotWithoutTime, "clock"},
		{Laundering, "G2"},
		{DoubleRefund, "G1"},
		{DoubleSpend, "G2"},
		{HalfGrant, "G3"},
		{CostlyDenial, "G7"},
		{EarlyHint, "G7"},
		{Diverging, "G9"},
		{HeldTooLong, "slots"},
		{EndedByID, "slots"},
		{LostReport, "reports"},
		{SameAgain, "log"},
	}
}

// Stormy says whether a trap is about retry budgets.
func (t Kind) Stormy() bool { return t == WholeHeadroom || t == ForgottenWhenSent || t == FrozenWindow }

// Gated says whether a trap is about slots.
func (t Kind) Gated() bool { return t == HeldTooLong || t == EndedByID }

// Seeded is a trap and the rule that it breaks.
type Seeded struct {
	Trap Kind
	Rule string
}

// Stepwise says whether a trap is about single operations.
func (t Kind) Stepwise() bool {
	return t == NoTombstone || t == CostlyDenial || t == EarlyHint || t == HalfGrant || t == DoubleRefund
}
