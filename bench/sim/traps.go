package sim

// Trap is a known way to get the protocol wrong, seeded into what surrounds the
// real parts: see docs/traps.md for what each number means. The empty trap is
// none. A trap exists in a simulation only.
type Trap string

// The traps that can be seeded. Where a trap has two forms, the second is named
// for what it gets wrong.
const (
	None Trap = ""
	// WallClock (T1): leaders count on by their wall clocks.
	WallClock Trap = "T1"
	// AppliedStamp (T2): a new leader goes on from the last stamp. NoTicks: and
	// nobody makes one while nothing happens.
	AppliedStamp Trap = "T2"
	NoTicks      Trap = "T2-ticks"
	// BeforeBarrier (T3): a leader stamps before its barrier has passed.
	BeforeBarrier Trap = "T3"
	// OldStamp (T4): a node believes an entry's stamp, however old.
	OldStamp Trap = "T4"
	// NodeSleeps and HolderSleeps (T5): lives are measured by the clock that stops
	// when the machine sleeps.
	NodeSleeps   Trap = "T5"
	HolderSleeps Trap = "T5-holder"
	// OwnWall (T6): a leader's own wall clock rolls windows.
	OwnWall Trap = "T6"
	// LeaseInMemory (T22): the leader keeps tracked leases, the log doesn't.
	LeaseInMemory Trap = "T22"
	// NoTombstone (T23): a release of an unknown id leaves nothing behind.
	NoTombstone Trap = "T23"
	// OwnView (T28): a node answers releases and renewals by what it has applied.
	OwnView Trap = "T28"
	// WholeHeadroom (T30): each node admits all that the rule leaves, and not a part.
	WholeHeadroom Trap = "T30"
	// ForgottenWhenSent (T31): a node forgets a count when it has sent it.
	ForgottenWhenSent Trap = "T31"
	// FrozenWindow (T32): a node's window slides with what it has applied.
	FrozenWindow Trap = "T32"
	// FullShare (T34): a cut-off client's bucket starts full.
	FullShare Trap = "T34"
	// NoReportID (T35): nothing tells two sendings of a report from two reports.
	NoReportID Trap = "T35"
	// LargerEstimate (T37): a follower keeps the larger of its estimate and the
	// stamp. T38 is the same where nothing restarts and clocks drift.
	LargerEstimate      Trap = "T37"
	LargerEstimateDrift Trap = "T38"
	// PulledBack (T39): a leader's own applies pull its estimate back.
	PulledBack Trap = "T39"
	// SnapshotWithoutTime (T39): a node begins at 0 after a snapshot.
	SnapshotWithoutTime Trap = "T39-snapshot"
	// Laundering (T40): nothing bounds what unsettled leases can give back.
	Laundering Trap = "T40"
)

// Mistakes without a number. They show that every check of the judge can fail.
const (
	// DoubleRefund: what a settle gives back comes back twice.
	DoubleRefund Trap = "double-refund"
	// DoubleSpend: a holder spends what it holds twice.
	DoubleSpend Trap = "double-spend"
	// HalfGrant: of several charges only the first is debited.
	HalfGrant Trap = "half-grant"
	// CostlyDenial: a denial takes a token.
	CostlyDenial Trap = "costly-denial"
	// EarlyHint: a denial asks for a millisecond too little.
	EarlyHint Trap = "early-hint"
	// Diverging: a node applies an entry a nanosecond later than the others.
	Diverging Trap = "diverging"
	// HeldTooLong: whoever lost its connection holds its slots until their lease ends,
	// though its session has ended.
	HeldTooLong Trap = "held-too-long"
	// EndedByID: a node ends a session, and not one connection of it.
	EndedByID Trap = "ended-by-id"
	// LostReport: a client takes a report for booked that nobody has answered.
	LostReport Trap = "lost-report"
)

// Traps are all of them, those with numbers first, each with the rule that it
// breaks.
func Traps() []Seeded {
	return []Seeded{
		{WallClock, "clock"},
		{AppliedStamp, "clock"},
		{NoTicks, "clock"},
		{BeforeBarrier, "clock"},
		{OldStamp, "clock"},
		{NodeSleeps, "clock"},
		{HolderSleeps, "G2"},
		{OwnWall, "wall"},
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
	}
}

// stormy says whether a trap is about retry budgets.
func (t Trap) stormy() bool { return t == WholeHeadroom || t == ForgottenWhenSent || t == FrozenWindow }

// gated says whether a trap is about slots.
func (t Trap) gated() bool { return t == HeldTooLong || t == EndedByID }

// Seeded is a trap and the rule that it breaks.
type Seeded struct {
	Trap Trap
	Rule string
}
