package stage

import "time"

// Host is one machine with its clocks and at most one process.
type Host struct {
	Name  string
	stage *Stage

	// ppm is how much faster than real time its clocks go, in millionths.
	ppm int64
	// offset is where its steady clocks began, skew how wrong its wall clock is.
	offset, skew time.Duration

	// process numbers the processes that ran here: what an ended one had planned
	// does not happen.
	process   uint64
	dead      bool
	suspended bool
	// left is when it ran last.
	left time.Duration
	// since is when the suspension began; stops says that it stops the monotonic
	// clock, stopped for how long that has stood still so far.
	since   time.Duration
	stops   bool
	stopped time.Duration
	backlog []event
}

// Clocks are what is wrong with a machine's clocks.
type Clocks struct {
	// PPM is how much faster than real time they go, in millionths.
	PPM int64
	// Skew is how far ahead the wall clock is.
	Skew time.Duration
}

// NewHost is a machine that runs.
func (s *Stage) NewHost(name string, clocks Clocks) *Host {
	return &Host{
		Name: name, stage: s, ppm: clocks.PPM, skew: clocks.Skew,
		offset: s.Between(0, time.Hour), process: 1,
	}
}

// Boot is the clock that goes on while the machine is suspended.
func (h *Host) Boot() time.Duration { return h.offset + h.drifted(h.stage.now) }

// Mono is the clock that stops while the machine sleeps.
func (h *Host) Mono() time.Duration {
	stopped := h.stopped
	if h.suspended && h.stops {
		stopped += h.stage.now - h.since
	}
	return h.offset + h.drifted(h.stage.now-stopped)
}

// Wall is the time of day, as far as the machine knows.
func (h *Host) Wall() time.Duration { return h.skew + h.drifted(h.stage.now) }

func (h *Host) drifted(d time.Duration) time.Duration {
	return d + d*time.Duration(h.ppm)/1_000_000
}

// Runs says whether a process runs and the machine is awake.
func (h *Host) Runs() bool { return !h.dead && !h.suspended }

// Away says since when it does not run; away is false while it does.
func (h *Host) Away() (since time.Duration, away bool) { return h.left, !h.Runs() }

// leave notes that it may be about to run no more.
func (h *Host) leave() {
	if h.Runs() {
		h.left = h.stage.now
	}
}

// Dead says whether the process was ended.
func (h *Host) Dead() bool { return h.dead }

// Kill ends the process with all that it had planned.
func (h *Host) Kill() {
	h.leave()
	h.process++
	h.dead = true
	h.backlog = nil
}

// Start begins a new process.
func (h *Host) Start() { h.dead = false }

// Suspend halts the machine for d. With stops it sleeps, and its monotonic clock
// with it; otherwise its processes are only frozen.
func (h *Host) Suspend(d time.Duration, stops bool) {
	if h.suspended {
		return
	}
	h.leave()
	h.suspended, h.since, h.stops = true, h.stage.now, stops
	h.stage.At(nil, d, h.resume)
}

func (h *Host) resume() {
	if h.stops {
		h.stopped += h.stage.now - h.since
	}
	h.suspended = false
	backlog := h.backlog
	h.backlog = nil
	for _, e := range backlog {
		if e.process == h.process {
			h.stage.plan(0, e)
		}
	}
}
