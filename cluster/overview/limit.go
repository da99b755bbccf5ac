package overview

import (
	"sync"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

const (
	// minute is what a limit is shown over, in seconds.
	minute = 60
	// keyPlaces are the keys of a limit that are told apart.
	keyPlaces = 16
	// spells are those of a minute for which times are kept, spell seconds each.
	spells, spell = 6, 10
)

// limit is what this node's answers said of one limit in the last minute.
type limit struct {
	mu      sync.Mutex
	config  *logv1.Limit
	seconds [minute]second
	// tokens are by the position of the dimension.
	tokens []tokens
	times  [spells]struct {
		at int64
		times
	}
	// asked and denied are keys.
	asked, denied sketch
	// halved is the minute in which they were halved.
	halved int64
}

// second is what was answered in one second.
type second struct {
	at                      int64
	granted, denied, waited int64
}

// tokens are what was granted of a dimension, by second.
type tokens struct {
	name   string
	second [minute]int64
}

func newLimit(config *logv1.Limit) *limit {
	l := &limit{config: config, asked: newSketch(keyPlaces), denied: newSketch(keyPlaces)}
	for i := range l.seconds {
		l.seconds[i].at = -1
	}
	for i := range l.times {
		l.times[i].at = -1
	}
	for _, d := range config.GetDimensions() {
		l.tokens = append(l.tokens, tokens{name: d.GetName()})
	}
	return l
}

// atLocked is the second at, empty if it has just begun.
func (l *limit) atLocked(at int64) *second {
	s := &l.seconds[at%minute]
	if s.at != at {
		*s = second{at: at}
		for i := range l.tokens {
			l.tokens[i].second[at%minute] = 0
		}
	}
	for ; l.halved < at/minute; l.halved++ {
		if l.asked.used+l.denied.used == 0 {
			l.halved = at / minute
			break
		}
		l.asked.halve()
		l.denied.halve()
	}
	return s
}

// grant counts an acquire that was granted, by the first of its charges to the limit.
func (l *limit) grant(at int64, key string, waited bool, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.atLocked(at)
	s.granted++
	if waited {
		s.waited++
	}
	l.asked.add(key, 1)
	t := &l.times[at/spell%spells]
	if t.at != at/spell {
		t.at, t.times = at/spell, times{}
	}
	t.times[slot(took)]++
}

// spend counts tokens that were granted.
func (l *limit) spend(at int64, dimension string, amount int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.atLocked(at)
	for i := range l.tokens {
		if l.tokens[i].name == dimension {
			l.tokens[i].second[at%minute] += amount
			return
		}
	}
}

// deny counts an acquire that the limit denied.
func (l *limit) deny(at int64, key string, waited bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.atLocked(at)
	s.denied++
	if waited {
		s.waited++
	}
	l.asked.add(key, 1)
	l.denied.add(key, 1)
}

// Limit is one limit over the last minute, as this node answered.
type Limit struct {
	// Config is the limit. It must not be changed.
	Config *logv1.Limit
	// Key was asked for most, or denied most if any was denied; Worst was denied
	// most. Empty: none was, or the key is empty.
	Key, Worst string
	// Granted, Denied and Waited are acquires.
	Granted, Denied, Waited int64
	// Tokens are those granted, by the position of the dimension.
	Tokens []int64
}

// view shows the minute that ends at second at, and adds its times to sum where
// nobody was limited.
func (l *limit) view(at int64, sum *times) Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.atLocked(at)
	v := Limit{Config: l.config, Tokens: make([]int64, len(l.tokens))}
	for i, s := range l.seconds {
		if s.at <= at-minute || s.at < 0 || s.at > at {
			continue
		}
		v.Granted += s.granted
		v.Denied += s.denied
		v.Waited += s.waited
		for d := range l.tokens {
			v.Tokens[d] += l.tokens[d].second[i]
		}
	}
	v.Key, _ = l.asked.most()
	if worst, ok := l.denied.most(); ok {
		v.Key, v.Worst = worst, worst
	}
	if v.Denied+v.Waited == 0 {
		for i := range l.times {
			if l.times[i].at > at/spell-spells {
				sum.add(&l.times[i].times)
			}
		}
	}
	return v
}
