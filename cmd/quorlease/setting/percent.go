package setting

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// whole is 100 %, in hundredths of a percent.
const whole = 10_000

// Percent defines a flag for a part of something, 0 to 100 %, in hundredths of a
// percent. What is there already is the default.
func Percent(flags *pflag.FlagSet, to *int64, name, usage string) {
	flags.Var((*percent)(to), name, usage)
}

// percent is a flag's value: N%, with up to two decimals.
type percent int64

// Type implements pflag.Value.
func (*percent) Type() string { return "percent" }

// String implements pflag.Value.
func (p *percent) String() string {
	text := strconv.FormatInt(int64(*p/100), 10)
	if rest := *p % 100; rest != 0 {
		text += strings.TrimRight(fmt.Sprintf(".%02d", rest), "0")
	}
	return text + "%"
}

// Set implements pflag.Value.
func (p *percent) Set(s string) error {
	digits, isPercent := strings.CutSuffix(s, "%")
	before, after, _ := strings.Cut(digits, ".")
	n, err := strconv.ParseUint(before+(after + "00")[:2], 10, 16)
	if !isPercent || err != nil || before == "" || len(after) > 2 || strings.HasSuffix(digits, ".") || n > whole {
		return fmt.Errorf("not a part like 10%% or 0.5%%, 0%% to 100%%")
	}
	*p = percent(n)
	return nil
}
