// Package calm makes a chatty library's log fit for the person on call.
package calm

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	// pause is how long the same message is held back after it was logged: a
	// peer that is away fails several times a second.
	pause = 10 * time.Second
	// messagesMax bounds the messages that are remembered. A library has a fixed
	// number of them; the bound is for one that puts values into its text.
	messagesMax = 256
)

// Logger passes on warnings and errors, each message at most once in ten
// seconds, but none that belongs to every start, and nothing below. At level Debug it passes on everything: somebody
// is looking for something. It is safe for concurrent use.
type Logger struct {
	hclog.Logger
	memory *memory
}

// New wraps a logger.
func New(inner hclog.Logger) hclog.Logger {
	if inner.IsDebug() {
		return inner
	}
	return &Logger{Logger: inner, memory: &memory{last: make(map[string]time.Time)}}
}

// memory is when each message was logged, shared by the loggers made from one.
type memory struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// allows reports whether a message has not been logged for a while.
func (m *memory) allows(now time.Time, message string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, ok := m.last[message]; ok && now.Sub(last) < pause {
		return false
	}
	if len(m.last) >= messagesMax {
		clear(m.last)
	}
	m.last[message] = now
	return true
}

// Log implements hclog.Logger.
func (l *Logger) Log(level hclog.Level, message string, args ...any) {
	if level >= hclog.Warn && !ordinary(message, args) && l.memory.allows(time.Now(), message) {
		l.Logger.Log(level, message, args...)
	}
}

// ordinary are raft's warnings of what every start has: a node that is in no
// cluster yet, a first election, a follower that catches up. Of one that doesn't
// the node itself reports, as it does of a store that can't be read.
func ordinary(message string, args []any) bool {
	switch message {
	case "no known peers, aborting election", "failed to get previous log", "appendEntries rejected, sending older logs":
		return true
	case "heartbeat timeout reached, starting election":
		// Where there was a leader it is news.
		at := slices.Index(args, any("last-leader-id"))
		return at >= 0 && at+1 < len(args) && fmt.Sprint(args[at+1]) == ""
	}
	return false
}

// Trace implements hclog.Logger.
func (l *Logger) Trace(string, ...any) {}

// Debug implements hclog.Logger.
func (l *Logger) Debug(string, ...any) {}

// Info implements hclog.Logger.
func (l *Logger) Info(string, ...any) {}

// Warn implements hclog.Logger.
func (l *Logger) Warn(message string, args ...any) { l.Log(hclog.Warn, message, args...) }

// Error implements hclog.Logger.
func (l *Logger) Error(message string, args ...any) { l.Log(hclog.Error, message, args...) }

// With implements hclog.Logger.
func (l *Logger) With(args ...any) hclog.Logger {
	return &Logger{Logger: l.Logger.With(args...), memory: l.memory}
}

// Named implements hclog.Logger.
func (l *Logger) Named(name string) hclog.Logger {
	return &Logger{Logger: l.Logger.Named(name), memory: l.memory}
}

// ResetNamed implements hclog.Logger.
func (l *Logger) ResetNamed(name string) hclog.Logger {
	return &Logger{Logger: l.Logger.ResetNamed(name), memory: l.memory}
}
