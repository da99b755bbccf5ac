package argument

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

func charge(limit, key, dimension string, amount int64) *quorleasev1.Charge {
	return &quorleasev1.Charge{Limit: limit, Key: key, Dimension: dimension, Amount: amount}
}

func TestCharges(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args []string
		want []*quorleasev1.Charge
	}{
		{[]string{"demo"}, []*quorleasev1.Charge{charge("demo", "", "requests", 1)}},
		{[]string{"llm/team-a"}, []*quorleasev1.Charge{charge("llm", "team-a", "requests", 1)}},
		{
			[]string{"llm/a/b=c", "requests=2", "input_tokens=400_000"},
			[]*quorleasev1.Charge{charge("llm", "a/b=c", "requests", 2), charge("llm", "a/b=c", "input_tokens", 400_000)},
		},
		{
			[]string{"one", "two", "x=3", "three/k"},
			[]*quorleasev1.Charge{
				charge("one", "", "requests", 1), charge("two", "", "x", 3), charge("three", "k", "requests", 1),
			},
		},
		{
			[]string{"llm/a", "requests=1", "llm/b", "requests=1"},
			[]*quorleasev1.Charge{charge("llm", "a", "requests", 1), charge("llm", "b", "requests", 1)},
		},
		{[]string{"demo", "requests=9007199254740992"}, []*quorleasev1.Charge{charge("demo", "", "requests", 1<<53)}},
		{[]string{"demo", "requests=+5"}, []*quorleasev1.Charge{charge("demo", "", "requests", 5)}},
		{[]string{"llm/Ünïcode ✓"}, []*quorleasev1.Charge{charge("llm", "Ünïcode ✓", "requests", 1)}},
	} {
		got, err := Charges(row.args)
		if err != nil {
			t.Errorf("Charges(%q): %v", row.args, err)
		}
		if diff := cmp.Diff(row.want, got, protocmp.Transform()); diff != "" {
			t.Errorf("Charges(%q) (-want +got):\n%s", row.args, diff)
		}
	}
}

func TestChargesRefuses(t *testing.T) {
	t.Parallel()
	many := []string{"demo"}
	for i := range maxCharges + 1 {
		many = append(many, fmt.Sprintf("d%d=1", i))
	}
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"requests=1"}, `"requests=1" comes before any limit`},
		{[]string{"Demo"}, `limit: "Demo" is not a name`},
		{[]string{strings.Repeat("a", 64)}, "is not a name"},
		{[]string{""}, "limit: missing"},
		{[]string{"demo/"}, "key: nothing after the slash, want 1 to 512 bytes"},
		{[]string{"demo/" + strings.Repeat("k", 513)}, "has 513 bytes, more than 512"},
		{[]string{"demo/a\nb"}, "has a control character"},
		{[]string{"demo/\xff"}, "is not valid UTF-8"},
		{[]string{"demo", "Requests=1"}, `dimension: "Requests" is not the name of a dimension`},
		{[]string{"demo", "=1"}, "dimension: missing"},
		{[]string{"demo", "requests=0"}, "amount of requests: 0 is outside 1 to 9007199254740992"},
		{[]string{"demo", "requests=-1"}, "amount of requests: -1 is outside"},
		{[]string{"demo", "requests=9007199254740993"}, "amount of requests: 9007199254740993 is outside"},
		{[]string{"demo", "requests=99999999999999999999"}, "amount of requests: 99999999999999999999 is outside"},
		{[]string{"demo", "requests=1.5"}, `amount of requests: "1.5" is not a whole number`},
		{[]string{"demo", "requests=1e3"}, `amount of requests: "1e3" is not a whole number`},
		{[]string{"demo", "requests="}, `amount of requests: "" is not a whole number`},
		{[]string{"demo", "requests=1__0"}, "is not a whole number"},
		{[]string{"demo", "requests=1", "requests=2"}, "demo requests is given twice"},
		{[]string{"llm/a", "demo", "llm/a"}, "llm/a requests is given twice"},
		{many, "17 charges in one acquire: at most 16"},
	} {
		if got, err := Charges(row.args); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("Charges(%q) = %v, %v, want %q", row.args, got, err, row.want)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	got, err := Usage([]string{"input_tokens=0", "llm/team-a", "output_tokens=7"})
	if err != nil {
		t.Fatal(err)
	}
	want := []*quorleasev1.Usage{
		{Dimension: "input_tokens"}, {Limit: "llm", Key: "team-a", Dimension: "output_tokens", Used: 7},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"input_tokens=-1"}, "amount of input_tokens: -1 is outside 0 to"},
		{[]string{"llm/team-a"}, `"llm/team-a" is followed by no DIM=USED`},
		{[]string{"x=1", "x=1"}, "x is given twice"},
	} {
		if got, err := Usage(row.args); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("Usage(%q) = %v, %v, want %q", row.args, got, err, row.want)
		}
	}
}

func TestChange(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"requests=+5":                 "add 5",
		"requests=-1_000":             "add -1000",
		"requests=reset":              "reset",
		"requests=5":                  `change of requests: "5" is none of +N, -N, reset`,
		"requests=":                   `change of requests: "" is none of`,
		"requests=+0":                 "change of requests: +0 is outside ±1 to ±9007199254740992",
		"requests=+9007199254740993":  "is outside",
		"requests=-99999999999999999": "is outside",
		"requests":                    `"requests" is none of DIM=+N`,
		"Requests=+1":                 "is not the name of a dimension",
	} {
		request := &quorleasev1.LimitsAdjustRequest{}
		got := fmt.Sprint(Change(request, arg))
		if got == "<nil>" {
			got = fmt.Sprint("add ", request.GetAdd())
		}
		if request.GetReset_() {
			got = "reset"
		}
		if !strings.Contains(got, want) {
			t.Errorf("Change(%q): got %q, want %q", arg, got, want)
		}
	}
}

func TestLeaseID(t *testing.T) {
	t.Parallel()
	id, other := NewLeaseID(), NewLeaseID()
	if err := CheckLeaseID(id); err != nil || id == other {
		t.Errorf("drew %q and %q: %v", id, other, err)
	}
	capitals := strings.Repeat("AB", 16)
	for _, bad := range []string{"", id[1:], id + "0", capitals, id[:31] + "g"} {
		if err := CheckLeaseID(bad); err == nil {
			t.Errorf("CheckLeaseID(%q) = nil, want an error", bad)
		}
	}
}

// TestReason: what can't be kept, and what says nothing, is refused before anybody is asked.
func TestReason(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"paid": "<nil>", strings.Repeat("ü", 256): "<nil>",
		"": "--reason has 0 bytes: 1 to 512", strings.Repeat("x", 513): "--reason has 513 bytes: 1 to 512",
		" \u2003 ": "--reason is blank", "a\nb": `"a\nb" has a control character`, "\xff": `"\xff" is not valid UTF-8`,
		"\u009b31m": "has a control character",
	} {
		if got := fmt.Sprint(Reason(reason)); !strings.Contains(got, want) {
			t.Errorf("Reason(%.20q): got %q, want %q", reason, got, want)
		}
	}
	for prefix, want := range map[string]string{
		"": "<nil>", "trial-": "<nil>", "\xe2\x82": "--prefix: \"\\xe2\\x82\" is not valid UTF-8",
		strings.Repeat("x", 513): "has 513 bytes",
	} {
		if got := fmt.Sprint(Prefix(prefix)); !strings.Contains(got, want) {
			t.Errorf("Prefix(%.20q): got %q, want %q", prefix, got, want)
		}
	}
}

// TestHours: as many hours are asked for as it takes to have all of the time that was
// meant, or as many as are kept.
func TestHours(t *testing.T) {
	t.Parallel()
	at := func(hour, minute int) time.Time { return time.Date(2026, 3, 1, hour, minute, 0, 0, time.UTC) }
	for _, row := range []struct {
		now   time.Time
		since time.Duration
		want  uint32
	}{
		{at(12, 10), time.Hour, 2},
		{at(12, 10), 90 * time.Minute, 3},
		{at(12, 40), 90 * time.Minute, 2},
		{at(12, 0), time.Hour, 2},
		{at(12, 10), 24 * time.Hour, 25},
		{at(12, 10), HoursMost * time.Hour, HoursMost},
	} {
		got, err := Hours(row.since, row.now)
		if err != nil || got != row.want {
			t.Errorf("%v at %v: %d hours, %v; want %d", row.since, row.now, got, err, row.want)
		}
	}
	for _, since := range []time.Duration{-time.Hour, 0, time.Hour - 1, HoursMost*time.Hour + 1, 1<<63 - 1, -1 << 63} {
		if got, err := Hours(since, at(12, 0)); err == nil {
			t.Errorf("%v: %d hours, want an error", since, got)
		}
	}
}
