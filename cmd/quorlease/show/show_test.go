package show

import (
	"testing"
	"time"
)

// Nobody reads nanoseconds of what lasts for seconds.
func TestTime(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                            "0s",
		1500 * time.Microsecond:      "1.5ms",
		time.Second - 1:              "999.999999ms",
		4_982_177_002:                "4.982s",
		10*time.Minute + 604_702_073: "10m0.604s",
		5 * time.Second:              "5s",
	} {
		if got := Time(d); got != want {
			t.Errorf("Time(%d) = %q, want %q", d, got, want)
		}
	}
}
