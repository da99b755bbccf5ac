package plot

import (
	"math"
	"strconv"
	"strings"
)

// Number has three digits that say something, and thousands apart.
func Number(f float64) string {
	switch size := math.Abs(f); {
	case size >= 100:
		return Grouped(int64(math.Round(f)))
	case size >= 10:
		return trimmed(f, 1)
	case size >= 1:
		return trimmed(f, 2)
	default:
		return trimmed(f, 3)
	}
}

func trimmed(f float64, digits int) string {
	text := strconv.FormatFloat(f, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Grouped has its thousands apart.
func Grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
