package setting

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

// rangeKey marks a flag with the range of its numbers.
const rangeKey = "quorlease-range"

// Range says which numbers a flag that is defined takes, as "1 to 20". It is
// what the error says of a value that is no number; checking the range of one
// that is stays with whoever knows the setting.
func Range(flags *pflag.FlagSet, name, numbers string) {
	f := flags.Lookup(name)
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[rangeKey] = []string{numbers}
}

// FlagError says what is wrong with a command line in one line, naming the flag,
// the value and what it may be. Errors that are not about a value stay as they
// are.
func FlagError(err error) string {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return exit.OneLine(err.Error())
	}
	f := invalid.GetFlag()
	return fmt.Sprintf("--%s %s", f.Name, problem(f, invalid.GetValue(), invalid.Unwrap()))
}

// problem says why a flag does not take a value: "-1": not a whole number …
// The reason is used where the kind of flag does not say it.
func problem(f *pflag.Flag, value string, reason error) string {
	var numbers string
	switch f.Value.Type() {
	case "uint32":
		numbers = fmt.Sprintf("0 to %d", uint32(math.MaxUint32))
	case "uint64":
		numbers = fmt.Sprintf("0 to %d", uint64(math.MaxUint64))
	case "int", "int64", "intSlice":
		numbers = fmt.Sprintf("%d to %d", int64(math.MinInt64), int64(math.MaxInt64))
	case "bool":
		return fmt.Sprintf("%q: neither true nor false", value)
	case "duration":
		return fmt.Sprintf("%q: not a duration like 500ms, 2s or 1m30s", value)
	default:
		return fmt.Sprintf("%q: %s", value, exit.OneLine(reason.Error()))
	}
	if known := f.Annotations[rangeKey]; len(known) > 0 {
		numbers = known[0]
	}
	if f.Value.Type() == "intSlice" {
		return fmt.Sprintf("%q: not whole numbers from %s with commas between", value, numbers)
	}
	return fmt.Sprintf("%q: not a whole number from %s", value, numbers)
}
