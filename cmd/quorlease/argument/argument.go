// Package argument reads the words of a command line: limits with keys, amounts,
// lease ids. A slip of the keyboard is refused before any node is asked.
package argument

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/fsm/bucket"
)

const (
	// maxCharges bounds one acquire.
	maxCharges = 16
	// reasonMost bounds a reason, in bytes.
	reasonMost = 512
	// HoursMost is how many hours of the usage book can be asked for at once.
	HoursMost = 31 * 24
	// defaultDimension is charged once where an acquire names no amount.
	defaultDimension = "requests"
)

var (
	leaseID     = regexp.MustCompile(`^[0-9a-f]{32}$`)
	wholeNumber = regexp.MustCompile(`^[+-]?[0-9]+(_[0-9]+)*$`)
)

// LimitName refuses what is not the name of a limit, or of a retry budget.
func LimitName(name string) error {
	if problem := limitsfile.NameProblem(name); problem != "" {
		return exit.Usagef("limit: %s", problem)
	}
	return nil
}

func checkDimension(name string) error {
	if problem := limitsfile.DimensionProblem(name); problem != "" {
		return exit.Usagef("dimension: %s", problem)
	}
	return nil
}

// checkKey wants a key: an empty one after a slash is a slip.
func checkKey(key string) error {
	problem := limitsfile.KeyProblem(key)
	if key == "" {
		problem = fmt.Sprintf("nothing after the slash, want 1 to %d bytes", limitsfile.KeyMax)
	}
	if problem != "" {
		return exit.Usagef("key: %s", problem)
	}
	return nil
}

// Client refuses what can't name a client. Empty is nobody in particular.
func Client(name string) error {
	if problem := limitsfile.ClientProblem(name); problem != "" {
		return exit.Usagef("--client: %s", problem)
	}
	return nil
}

// Reason refuses what does not say why, or can't be kept on a line of a record.
func Reason(reason string) error {
	switch {
	case reason == "" || len(reason) > reasonMost:
		return exit.Usagef("--reason has %d bytes: 1 to %d", len(reason), reasonMost)
	case strings.TrimSpace(reason) == "":
		return exit.Usagef("--reason is blank: say why")
	}
	if problem := limitsfile.KeyProblem(reason); problem != "" {
		return exit.Usagef("--reason: %s", problem)
	}
	return nil
}

// Prefix refuses what no key begins with.
func Prefix(prefix string) error {
	if problem := limitsfile.KeyProblem(prefix); problem != "" {
		return exit.Usagef("--prefix: %s", problem)
	}
	return nil
}

// Hours is how many hours of a clock have all of the time since so long ago, with the one
// that has begun, or how many are kept.
func Hours(since time.Duration, now time.Time) (uint32, error) {
	if since < time.Hour || since > HoursMost*time.Hour {
		return 0, exit.Usagef("--since %v is outside 1h to %dh", since, HoursMost)
	}
	hour := func(t time.Time) int64 { return t.Unix() / int64(time.Hour/time.Second) }
	return uint32(min(hour(now)-hour(now.Add(-since))+1, HoursMost)), nil
}

// Period checks the two ends of a period, and returns the first. Both may be empty, and
// the first is zero then.
func Period(from, to string, since bool) (time.Time, error) {
	switch {
	case from == "" && to == "":
		return time.Time{}, nil
	case from == "":
		return time.Time{}, exit.Usagef("--to %s: only with --from", to)
	case since:
		return time.Time{}, exit.Usagef("--from %s: not with --since", from)
	}
	first, problem := written.ParseHour(from)
	if problem != "" {
		return time.Time{}, exit.Usagef("--from %s", problem)
	}
	if to == "" {
		return first, nil
	}
	last, problem := written.ParseHour(to)
	if problem != "" {
		return time.Time{}, exit.Usagef("--to %s", problem)
	}
	if hours := last.Sub(first).Hours(); hours <= 0 || hours > HoursMost {
		return time.Time{}, exit.Usagef("--to %s: %g hours after --from, want 1 to %d", to, hours, HoursMost)
	}
	return first, nil
}

// CheckLeaseID refuses what is not a lease id.
func CheckLeaseID(id string) error {
	if leaseID.MatchString(id) {
		return nil
	}
	return exit.Usagef("lease id %q is not 32 lower-case hex digits", id)
}

// NewLeaseID draws the id of a lease, 128 random bits.
func NewLeaseID() string {
	var id [16]byte
	// It does not fail: the runtime ends the program where the system has no
	// randomness.
	_, _ = rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

// Target is a limit, and a key where the limit has keys.
type Target struct {
	Limit, Key string
}

// String writes a target the way it is typed.
func (t Target) String() string {
	if t.Key == "" {
		return t.Limit
	}
	return t.Limit + "/" + t.Key
}

// ParseTarget reads LIMIT[/KEY]. The first slash splits, so a key may contain
// more of them.
func ParseTarget(arg string) (Target, error) {
	limit, key, keyed := strings.Cut(arg, "/")
	if err := LimitName(limit); err != nil {
		return Target{}, err
	}
	if keyed {
		if err := checkKey(key); err != nil {
			return Target{}, err
		}
	}
	return Target{Limit: limit, Key: key}, nil
}

// amount is one DIM=N, of the target that stands before it.
type amount struct {
	Target
	dimension string
	value     int64
}

// isPair tells DIM=N from LIMIT[/KEY]: an equals sign after a slash belongs to
// a key.
func isPair(arg string) bool {
	equals, slash := strings.IndexByte(arg, '='), strings.IndexByte(arg, '/')
	return equals >= 0 && (slash < 0 || equals < slash)
}

// parseAmount reads DIM=N with N from low to 2^53.
func parseAmount(arg string, low int64) (dimension string, value int64, err error) {
	dimension, number, _ := strings.Cut(arg, "=")
	if err := checkDimension(dimension); err != nil {
		return "", 0, err
	}
	if !wholeNumber.MatchString(number) {
		return "", 0, exit.Usagef("amount of %s: %q is not a whole number", dimension, number)
	}
	value, err = strconv.ParseInt(strings.ReplaceAll(number, "_", ""), 10, 64)
	if err != nil || value < low || value > bucket.MaxTokens {
		return "", 0, exit.Usagef("amount of %s: %s is outside %d to %d",
			dimension, number, low, int64(bucket.MaxTokens))
	}
	return dimension, value, nil
}

// parseAmounts reads `LIMIT[/KEY] DIM=N …`, repeated. Amounts before the first
// limit have no target. A limit without amounts gets what missing returns.
func parseAmounts(args []string, low int64, missing func(Target) []amount) ([]amount, error) {
	var all []amount
	var current Target
	named, counted := false, 0
	finish := func() {
		if named && counted == 0 {
			all = append(all, missing(current)...)
		}
	}
	for _, arg := range args {
		if !isPair(arg) {
			finish()
			t, err := ParseTarget(arg)
			if err != nil {
				return nil, err
			}
			current, named, counted = t, true, 0
			continue
		}
		dimension, value, err := parseAmount(arg, low)
		if err != nil {
			return nil, err
		}
		all = append(all, amount{Target: current, dimension: dimension, value: value})
		counted++
	}
	finish()
	return all, refuseTwice(all)
}

func refuseTwice(all []amount) error {
	seen := map[string]bool{}
	for _, a := range all {
		name := fmt.Sprintf("%s %s", a.Target, a.dimension)
		if seen[name] {
			return exit.Usagef("%s is given twice", strings.TrimSpace(name))
		}
		seen[name] = true
	}
	return nil
}

// Work reads what an acquire is for into its request: charges, or attributes with
// what the work takes, or both.
func Work(request *quorleasev1.AcquireRequest, attributes, args []string) error {
	if len(attributes) == 0 {
		if len(args) == 0 {
			return exit.Usagef("nothing to acquire: name a LIMIT[/KEY], or say what the work is with --attr NAME=VALUE")
		}
		charges, err := Charges(args)
		request.Charges = charges
		return err
	}
	request.Attributes = map[string]string{}
	for _, pair := range attributes {
		name, value, found := strings.Cut(pair, "=")
		if !found {
			return exit.Usagef("--attr %q is not NAME=VALUE", pair)
		}
		if problem := limitsfile.AttributeProblem(name); problem != "" {
			return exit.Usagef("--attr: %s", problem)
		}
		if problem := limitsfile.ValueProblem(value); problem != "" {
			return exit.Usagef("--attr %s: %s", name, problem)
		}
		if _, twice := request.Attributes[name]; twice {
			return exit.Usagef("--attr %s is given twice", name)
		}
		request.Attributes[name] = value
	}
	first := slices.IndexFunc(args, func(arg string) bool { return !isPair(arg) })
	if first < 0 {
		first = len(args)
	}
	amounts, err := parseAmounts(args[:first], 1, nil)
	if err != nil {
		return err
	}
	for _, a := range amounts {
		if request.Amounts == nil {
			request.Amounts = map[string]int64{}
		}
		request.Amounts[a.dimension] = a.value
	}
	request.Charges, err = Charges(args[first:])
	return err
}

// Charges reads the charges of an acquire.
func Charges(args []string) ([]*quorleasev1.Charge, error) {
	if len(args) > 0 && isPair(args[0]) {
		return nil, exit.Usagef("%q comes before any limit: LIMIT[/KEY] goes first, then its DIM=AMOUNT", args[0])
	}
	all, err := parseAmounts(args, 1, func(t Target) []amount {
		return []amount{{Target: t, dimension: defaultDimension, value: 1}}
	})
	if err != nil {
		return nil, err
	}
	if len(all) > maxCharges {
		return nil, exit.Usagef("%d charges in one acquire: at most %d", len(all), maxCharges)
	}
	charges := make([]*quorleasev1.Charge, 0, len(all))
	for _, a := range all {
		charges = append(charges, &quorleasev1.Charge{
			Limit: a.Limit, Key: a.Key, Dimension: a.dimension, Amount: a.value,
		})
	}
	return charges, nil
}

// Usage reads what was used: `DIM=USED` speaks of every charge of the
// dimension, `LIMIT[/KEY] DIM=USED` of one.
func Usage(args []string) ([]*quorleasev1.Usage, error) {
	var bare string
	all, err := parseAmounts(args, 0, func(t Target) []amount {
		bare = t.String()
		return nil
	})
	if err != nil {
		return nil, err
	}
	if bare != "" {
		return nil, exit.Usagef("%q is followed by no DIM=USED", bare)
	}
	used := make([]*quorleasev1.Usage, 0, len(all))
	for _, a := range all {
		used = append(used, &quorleasev1.Usage{Limit: a.Limit, Key: a.Key, Dimension: a.dimension, Used: a.value})
	}
	return used, nil
}

// clearBlock opens a whole key again.
const clearBlock = "clear-block"

// Change reads DIM=+N, DIM=-N, DIM=reset or clear-block. The sign is required: `=5`
// might mean "to 5" to one and "by 5" to another.
func Change(request *quorleasev1.LimitsAdjustRequest, change string) error {
	if change == clearBlock {
		request.Change = &quorleasev1.LimitsAdjustRequest_ClearBlock{ClearBlock: true}
		return nil
	}
	dimension, what, ok := strings.Cut(change, "=")
	if !ok {
		return exit.Usagef("%q is none of DIM=+N, DIM=-N, DIM=reset, reset, clear-block", change)
	}
	if err := checkDimension(dimension); err != nil {
		return err
	}
	request.Dimension = dimension
	if what == "reset" {
		request.Change = &quorleasev1.LimitsAdjustRequest_Reset_{Reset_: true}
		return nil
	}
	if !wholeNumber.MatchString(what) || what[0] != '+' && what[0] != '-' {
		return exit.Usagef("change of %s: %q is none of +N, -N, reset", dimension, what)
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(what, "_", ""), 10, 64)
	if err != nil || n == 0 || n < -bucket.MaxTokens || n > bucket.MaxTokens {
		return exit.Usagef("change of %s: %s is outside ±1 to ±%d", dimension, what, int64(bucket.MaxTokens))
	}
	request.Change = &quorleasev1.LimitsAdjustRequest_Add{Add: n}
	return nil
}
