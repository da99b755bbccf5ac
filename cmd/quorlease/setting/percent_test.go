package setting

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestPercent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"100%": 10_000, "0%": 0, "10%": 1000, "0.5%": 50, "12.34%": 1234, "0.01%": 1,
		"": -1, "%": -1, "10": -1, "100.01%": -1, "101%": -1, "-1%": -1, "1.234%": -1, ".5%": -1, "1.%": -1, "1.-5%": -1,
		"1e1%": -1, "10 %": -1, "99999999999%": -1,
	} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		got := int64(-1)
		Percent(flags, &got, "part", "")
		err := flags.Parse([]string{"--part", text})
		if got != want || (err == nil) != (want >= 0) {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
		if want > 0 && flags.Lookup("part").Value.String() != text {
			t.Errorf("%q is written %s", text, flags.Lookup("part").Value)
		}
	}
}
