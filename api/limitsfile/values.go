package limitsfile

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

// intervalMax is the longest interval of a rate.
const intervalMax = 366 * 24 * time.Hour

const rateForm = "want tokens per interval in s, min, h or d, like 1000/min or 6/10s"

// parseRate reads "1000/min" or "6/10s".
func parseRate(s string) (amount int64, interval time.Duration, problem string) {
	left, right, found := strings.Cut(s, "/")
	if !found {
		return 0, 0, Quote(s) + ": " + rateForm
	}
	if amount, problem = parseSize(left); problem != "" {
		if isDigits(strings.ReplaceAll(left, "_", "")) {
			return 0, 0, problem
		}
		return 0, 0, Quote(s) + ": " + rateForm
	}
	digits := strings.TrimRight(right, "abcdefghijklmnopqrstuvwxyz")
	count := int64(1)
	if digits != "" {
		if count, problem = parseSize(digits); problem != "" {
			return 0, 0, Quote(s) + ": " + rateForm
		}
	}
	for _, unit := range units {
		if unit.name != right[len(digits):] {
			continue
		}
		if count < 1 || count > int64(intervalMax/unit.long) {
			return 0, 0, Quote(s) + ": the interval must be from 1s to 366d"
		}
		return amount, time.Duration(count) * unit.long, ""
	}
	return 0, 0, Quote(s) + ": " + rateForm
}

// formatRate writes a rate in the longest unit that fits its interval, which is
// a whole number of seconds.
func formatRate(amount int64, interval time.Duration) string {
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

// parseSize reads a whole number from 0 to 2^53; single underscores may stand
// between digits.
func parseSize(s string) (int64, string) {
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

// parseShare reads "60%" or "0.25%" as hundredths of a percent, 0 to Whole.
func parseShare(s string) (int64, string) {
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

func formatShare(n int64) string {
	// Out of range, but an error shows it.
	if n < 0 {
		return "-" + formatShare(-max(n, -math.MaxInt64))
	}
	text := fmt.Sprintf("%d.%02d", n/100, n%100)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + "%"
}

const durationForm = "want a duration like 500ms, 10s or 1h30m"

// parseDuration reads a duration as Go writes them, 0 or longer.
func parseDuration(s string) (time.Duration, string) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, Quote(s) + ": " + durationForm
	}
	if d < 0 {
		return 0, Quote(s) + ": must not be negative"
	}
	return d, ""
}

// formatDuration is like Duration.String without the zeros: "5m", not "5m0s".
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// rate is tokens an interval, of which target hundredths of a percent are
// handed out.
type rate struct {
	amount   int64
	interval time.Duration
	target   int64
}

// tokensIn is what the rate hands out in d, rounded down, at most 2^53 + 1, so
// that what is too much is seen to be too much. The rate's interval is positive.
func (r rate) tokensIn(d time.Duration) int64 {
	n := big.NewInt(r.amount)
	n.Mul(n, big.NewInt(r.target))
	n.Mul(n, big.NewInt(int64(d)))
	n.Quo(n, new(big.Int).Mul(big.NewInt(int64(r.interval)), big.NewInt(bucket.Whole)))
	if !n.IsInt64() || n.Int64() > bucket.MaxTokens {
		return bucket.MaxTokens + 1
	}
	return n.Int64()
}

// burstIn is tokensIn, but at least 1 where the rate is more than none: a bucket
// that can never hold a token would be a rate of zero in disguise (A09).
func (r rate) burstIn(d time.Duration) int64 {
	if n := r.tokensIn(d); n > 0 || r.amount == 0 {
		return n
	}
	return 1
}
