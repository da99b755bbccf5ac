package block

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSizeFollowsDemand(t *testing.T) {
	s := NewSize(TokensMax)
	if got := s.Next(0); got != 1 {
		t.Errorf("the first block has %d tokens, want 1", got)
	}
	s.Granted(1, -1, 5*time.Second)
	s.Observe(0, 0)
	now := time.Duration(0)
	// A thousand a second: a block is to last four seconds.
	for range 20 {
		now += 100 * time.Millisecond
		s.Observe(now, 100)
		s.Granted(s.Next(0), -1, 5*time.Second)
	}
	if got := s.Next(0); got != 4000 {
		t.Errorf("at 1000 a second %d tokens, want 4000", got)
	}
	// Nothing for four seconds: nothing is held either.
	s.Observe(now+Horizon, 0)
	if got := s.Next(0); got != 1 {
		t.Errorf("after a pause %d tokens, want 1", got)
	}
}

func TestSizeIsBounded(t *testing.T) {
	hot := func() *Size {
		s := NewSize(1 << 20)
		s.Observe(0, 0)
		s.Observe(time.Second, 1000)
		return s
	}
	for _, c := range []struct {
		name  string
		learn func(*Size)
		need  int64
		want  int64
	}{
		{"by_the_last_block", func(s *Size) { s.Granted(100, -1, 5*time.Second) }, 0, 400},
		{"by_the_life_of_a_lease", func(s *Size) { s.Granted(1000, -1, time.Second) }, 0, 1998},
		{"by_what_is_left", func(s *Size) { s.Granted(1000, 80, 5*time.Second) }, 0, 40},
		{"at_least_1", func(s *Size) { s.Granted(1000, 0, 5*time.Second) }, 0, 1},
		{"at_least_the_need", func(s *Size) { s.Granted(1000, 0, 5*time.Second) }, 7, 7},
		{"smaller_after_a_refusal", func(s *Size) { s.Denied(1000) }, 0, 500},
		{"4_after_a_refusal_of_1", func(s *Size) { s.Denied(1) }, 0, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := hot()
			c.learn(s)
			if got := s.Next(c.need); got != c.want {
				t.Errorf("Next(%d) = %d, want %d", c.need, got, c.want)
			}
		})
	}
}

func TestSizeStaysInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.Int64Range(1, TokensMax).Draw(t, "most")
		s := NewSize(most)
		now := time.Duration(0)
		for range 20 {
			now += time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "by"))
			s.Observe(now, rapid.Int64Range(0, TokensMax).Draw(t, "spent"))
			need := rapid.Int64Range(0, most).Draw(t, "need")
			next := s.Next(need)
			if next < max(1, need) || next > most {
				t.Fatalf("Next(%d) = %d, want %d..%d", need, next, max(1, need), most)
			}
			free := rapid.Int64Range(-1, TokensMax).Draw(t, "free")
			if rapid.Bool().Draw(t, "granted") {
				s.Granted(next, free, time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "ttl")))
			} else {
				s.Denied(next)
			}
		}
	})
}
