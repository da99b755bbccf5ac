package provider

import "time"

// Window lets no more than its share of a minute's requests, rounded up, into any
// window of the clock. A nil Window lets everything in.
type Window struct {
	length time.Duration
	most   int64
	// current is the number of the window that is counted, and used how many it has
	// had.
	current time.Duration
	used    int64
}

// NewWindow is a window of so many requests a minute: a second (600 a minute are
// 10 in any second) or ten. It is nil, and refuses nothing, without requests or
// without a length.
func NewWindow(perMinute int64, length time.Duration) *Window {
	if perMinute <= 0 || length <= 0 {
		return nil
	}
	return &Window{length: length, most: ceil(perMinute*int64(length), int64(time.Minute)), current: -1}
}

// Wait is how long it is until the next window, where this one is full.
func (w *Window) Wait(now time.Duration) time.Duration {
	if w == nil {
		return 0
	}
	w.turn(now)
	if w.used < w.most {
		return 0
	}
	return (w.current+1)*w.length - now
}

// Count counts one request that was let in.
func (w *Window) Count(now time.Duration) {
	if w != nil {
		w.turn(now)
		w.used++
	}
}

// Left is how many still fit into this window.
func (w *Window) Left(now time.Duration) int64 {
	w.turn(now)
	return w.most - w.used
}

// Most is how many requests a window holds.
func (w *Window) Most() int64 { return w.most }

func (w *Window) turn(now time.Duration) {
	if current := now / w.length; current != w.current {
		w.current, w.used = current, 0
	}
}
