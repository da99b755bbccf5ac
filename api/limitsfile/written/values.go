// Package written reads and writes the values of a limits file: rates, shares,
// durations, whole numbers and texts. Readers return the problem, "" where there
// is none. It is pure.
package written

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// units are the intervals a rate can be written in, the longest first.
var units = []struct {
	name string
	long time.Duration
}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}}

// IntervalMax is the longest interval of a rate.
const IntervalMax = 366 * 24 * time.Hour

const rateForm = "want tokens per interval in s, min, h or d, like 1000/min or 6/10s"

// ParseRate reads "1000/min" or "6/10s".
func ParseRate(s string) (amount int64, interval time.Duration, problem string) {
	left, right, found := strings.Cut(s, "/")
	if !found {
		return 0, 0, Quote(s) + ": " + rateForm
	}
	if amount, problem = ParseSize(left); problem != "" {
		if isDigits(strings.ReplaceAll(left, "_", "")) {
			return 0, 0, problem
		}
		return 0, 0, Quote(s) + ": " + rateForm
	}
	digits := strings.TrimRight(right, "abcdefghijklmnopqrstuvwxyz")
	count := int64(1)
	if digits != "" {
		if count, problem = ParseSize(digits); problem != "" {
			return 0, 0, Quote(s) + ": " + rateForm
		}
	}
	for _, unit := range units {
		if unit.name != right[len(digits):] {
			continue
		}
		if count < 1 || count > int64(IntervalMax/unit.long) {
			return 0, 0, Quote(s) + ": the interval must be from 1s to 366d"
		}
		return amount, time.Duration(count) * unit.long, ""
	}
	return 0, 0, Quote(s) + ": " + rateForm
}

// FormatRate writes a rate in the longest unit that fits its interval, which is
// a whole number of seconds.
func FormatRate(amount int64, interval time.Duration) string {
	for _, unit := range units {
		if interval%unit.long != 0 {
			continue
		}
		if count := interval / unit.long; count != 1 {
			return fmt.Sprintf("%d/%d%s", amount, count, unit.name)
		}
		return fmt.Sprintf("%d/%s", amount, unit.name)
	}
	return fmt.Sprintf("%d/%v", amount, interval)
}

// ParseSize reads a whole number from 0 to 2^53; single underscores may stand
// between digits.
func ParseSize(s string) (int64, string) {
	digits := make([]byte, 0, len(s))
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits = append(digits, c)
		case c == '_' && i > 0 && s[i-1] != '_' && i < len(s)-1:
		default:
			return 0, Quote(s) + ": want a whole number"
		}
	}
	if len(digits) == 0 {
		return 0, Quote(s) + ": want a whole number"
	}
	if len(digits) > 1 && digits[0] == '0' {
		// Some readers of YAML take it for octal.
		return 0, Quote(s) + ": a whole number has no leading zero"
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || n > bucket.MaxTokens {
		return 0, fmt.Sprintf("%s is out of range 0..%d", Quote(s), int64(bucket.MaxTokens))
	}
	return n, ""
}

const shareForm = "want a percentage with at most two decimals, like 60% or 0.25%"

// ParseShare reads "60%" or "0.25%" as hundredths of a percent, 0 to Whole.
func ParseShare(s string) (int64, string) {
	number, found := strings.CutSuffix(s, "%")
	whole, decimals, point := strings.Cut(number, ".")
	bad := Quote(s) + ": " + shareForm
	if !found || len(whole) > 3 || !isDigits(whole) || point && !isDigits(decimals) || len(decimals) > 2 {
		return 0, bad
	}
	n, err := strconv.ParseInt(whole+(decimals + "00")[:2], 10, 64)
	if err != nil {
		return 0, bad
	}
	if n > bucket.Whole {
		return 0, Quote(s) + " is out of range 0%..100%"
	}
	return n, ""
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// FormatShare writes hundredths of a percent: "60%", "0.25%".
func FormatShare(n int64) string {
	// Out of range, but an error shows it.
	if n < 0 {
		return "-" + FormatShare(-max(n, -math.MaxInt64))
	}
	text := fmt.Sprintf("%d.%02d", n/100, n%100)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + "%"
}

const durationForm = "want a duration like 500ms, 10s or 1h30m"

// ParseDuration reads a duration as Go writes them, 0 or longer.
func ParseDuration(s string) (time.Duration, string) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, Quote(s) + ": " + durationForm
	}
	if d < 0 {
		return 0, Quote(s) + ": must not be negative"
	}
	return d, ""
}

// FormatDuration is like Duration.String without the zeros: "5m", not "5m0s".
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Rate is tokens an interval, of which target hundredths of a percent are
// handed out.
type Rate struct {
	Amount int64
	// Interval is positive.
	Interval time.Duration
	Target   int64
}

// TokensIn is what the rate hands out in d, rounded down, at most 2^53 + 1, so
// that what is too much is seen to be too much.
func (r Rate) TokensIn(d time.Duration) int64 {
	n := big.NewInt(r.Amount)
	n.Mul(n, big.NewInt(r.Target))
	n.Mul(n, big.NewInt(int64(d)))
	n.Quo(n, new(big.Int).Mul(big.NewInt(int64(r.Interval)), big.NewInt(bucket.Whole)))
	if !n.IsInt64() || n.Int64() > bucket.MaxTokens {
		return bucket.MaxTokens + 1
	}
	return n.Int64()
}

// BurstIn is TokensIn, but at least 1 where the rate is more than none: a bucket
// that can never hold a token would be a rate of zero in disguise (A09).
func (r Rate) BurstIn(d time.Duration) int64 {
	if n := r.TokensIn(d); n > 0 || r.Amount == 0 {
		return n
	}
	return 1
}

// ParseHour reads a day, as 2026-11-01, or the beginning of an hour, as
// 2026-11-01T13:00:00Z, both in UTC. The problem is empty, or a sentence without a full
// stop.
func ParseHour(s string) (time.Time, string) {
	const form = ": want a day like 2026-11-01, or an hour like 2026-11-01T13:00:00Z"
	if day, err := time.Parse(time.DateOnly, s); err == nil {
		return day, ""
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil || at.UTC().Truncate(time.Hour) != at.UTC() {
		return time.Time{}, Quote(s) + form
	}
	return at.UTC(), ""
}
