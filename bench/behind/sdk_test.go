package behind_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/bench/sdk"
	"github.com/quorlease/quorlease/bench/sdk/sdktest"
	"github.com/quorlease/quorlease/bench/upstream"
	"github.com/quorlease/quorlease/client/gateway"
)

var update = flag.Bool("update", false, "write what SDKs do behind a gateway into testdata")

// encounter is what a user meets, at a gateway and a provider of his own.
type encounter struct {
	call  sdk.Call
	fault upstream.Fault
	// change is how the gateway differs.
	change func(*gateway.Config)
	// limit is the one that counts, "heard" unless it says otherwise.
	limit string
	// nobody: the program does not say who it is.
	nobody bool
	// except is a provider at which this can't be met.
	except upstream.API
}

// met are in the order of the tables in testdata.
var met = []encounter{
	{call: sdk.Call{Name: "plain"}},
	{call: sdk.Call{Name: "stream", Stream: true}},
	{call: sdk.Call{Name: "refused_once"}, fault: refuse(upstream.InputTokens, time.Second, 1)},
	{
		call:  sdk.Call{Name: "overloaded_in_the_first_event", Stream: true},
		fault: upstream.Fault{Kind: upstream.Spoil, Calls: 1},
	},
	{call: sdk.Call{Name: "rate"}, fault: refuse(upstream.InputTokens, 50*time.Second, 0), change: impatient},
	{call: sdk.Call{Name: "slow_down"}, fault: refuse(upstream.SlowDown, 30*time.Second, 0), change: impatient},
	{call: sdk.Call{Name: "overload"}, fault: refuse(upstream.Overload, 9*time.Second, 0), change: impatient},
	{call: sdk.Call{Name: "storm", Times: storm}, fault: refuse(upstream.Requests, 0, 0)},
	{
		call:  sdk.Call{Name: "storm_without_circuits", Times: storm},
		fault: refuse(upstream.Requests, 0, 0), change: unbroken, limit: "deaf",
	},
	{call: sdk.Call{Name: "spend_cap", Times: 3}, fault: refuse(upstream.SpendCap, 0, 0)},
	{call: sdk.Call{Name: "own_limit", Times: 2}, change: impatient, limit: "narrow"},
	{call: sdk.Call{Name: "too_large", Tokens: 2_000_000}, except: upstream.Anthropic},
	{call: sdk.Call{Name: "nobody"}, nobody: true},
	{call: sdk.Call{Name: "midway", Stream: true}, fault: upstream.Fault{Kind: upstream.Spoil, After: 2}},
	{call: sdk.Call{Name: "broken_midway", Stream: true}, fault: upstream.Fault{Kind: upstream.Break, After: 2}},
	{call: sdk.Call{Name: "broken"}, fault: upstream.Fault{Kind: upstream.Break}},
}

// metElsewhere are at the interfaces that Anthropic has not.
var metElsewhere = slices.Concat(at("responses", []encounter{
	{call: sdk.Call{Name: "plain"}},
	{call: sdk.Call{Name: "stream", Stream: true}},
	{call: sdk.Call{Name: "refused_once"}, fault: refuse(upstream.InputTokens, time.Second, 1)},
	{
		call:  sdk.Call{Name: "overloaded_in_the_first_event", Stream: true},
		fault: upstream.Fault{Kind: upstream.Spoil, Calls: 1},
	},
	{call: sdk.Call{Name: "storm", Times: storm}, fault: refuse(upstream.Requests, 0, 0)},
	{
		call:  sdk.Call{Name: "stream_storm_without_circuits", Times: storm, Stream: true},
		fault: refuse(upstream.Requests, 0, 0), change: unbroken, limit: "deaf",
	},
	{call: sdk.Call{Name: "spend_cap", Times: 3}, fault: refuse(upstream.SpendCap, 0, 0)},
	{call: sdk.Call{Name: "own_limit", Times: 2}, change: impatient, limit: "narrow"},
	{call: sdk.Call{Name: "too_large", Tokens: 2_000_000}},
	{call: sdk.Call{Name: "midway", Stream: true}, fault: upstream.Fault{Kind: upstream.Spoil, After: 2}},
	{call: sdk.Call{Name: "broken_midway", Stream: true}, fault: upstream.Fault{Kind: upstream.Break, After: 2}},
}), at("embeddings", []encounter{
	{call: sdk.Call{Name: "plain"}},
	{call: sdk.Call{Name: "refused_once"}, fault: refuse(upstream.InputTokens, time.Second, 1)},
	{call: sdk.Call{Name: "storm", Times: storm}, fault: refuse(upstream.Requests, 0, 0)},
	{
		call:  sdk.Call{Name: "storm_without_circuits", Times: storm},
		fault: refuse(upstream.Requests, 0, 0), change: unbroken, limit: "deaf",
	},
	{call: sdk.Call{Name: "spend_cap", Times: 3}, fault: refuse(upstream.SpendCap, 0, 0)},
	{call: sdk.Call{Name: "own_limit", Times: 2}, change: impatient, limit: "narrow"},
	{call: sdk.Call{Name: "broken"}, fault: upstream.Fault{Kind: upstream.Break}},
}))

// at is what is met at another interface than that of chats.
func at(what string, met []encounter) []encounter {
	for i := range met {
		met[i].call.Name, met[i].call.What = what+"_"+met[i].call.Name, what
		met[i].except = upstream.Anthropic
	}
	return met
}

// storm is how often a user calls who does so whatever he is told.
const storm = 20

func refuse(cause upstream.Cause, wait time.Duration, calls int) upstream.Fault {
	return upstream.Fault{Kind: upstream.Refuse, Cause: cause, Wait: wait, Calls: calls}
}

// TestWhatSDKsDoBehindTheGateway: unmodified SDKs are served through it, and stop where they
// are told to.
func TestWhatSDKsDoBehindTheGateway(t *testing.T) {
	t.Parallel()
	for _, b := range sdk.Behaviours() {
		t.Run(string(b.SDK), func(t *testing.T) {
			t.Parallel()
			behindTheGateway(t, b)
		})
	}
}

func behindTheGateway(t *testing.T, b sdk.Behaviour) {
	t.Helper()
	i := sdktest.Installed(t, "../../.tools")
	authority, api := ask(t), sdktest.API(b.SDK)
	word := strings.ReplaceAll(string(b.SDK), "@", "-")
	places := make(map[string]*place)
	var calls []sdk.Call
	for _, e := range slices.Concat(met, metElsewhere) {
		if e.except == api {
			continue
		}
		p := stand(t, e.setting(api, word, authority))
		call := e.call
		call.URL, call.Client = p.url, word+"-"+call.Name
		if e.nobody {
			call.Client = ""
		}
		places[call.Name] = p
		calls = append(calls, call)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("it took a minute"))
	defer cancel()
	results, err := i.Drive(ctx, b.SDK, sdk.Pace{Times: 1000, Most: 20 * time.Millisecond}, calls...)
	if err != nil {
		t.Fatal(err)
	}
	of := make(map[string][]sdk.Result)
	for _, result := range results {
		of[result.Name] = append(of[result.Name], result)
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s %s\n\n", b.SDK, b.Version)
	fmt.Fprintln(w, "met\tcalls\tsent\treached\ttold\twaited\tits users got")
	for _, call := range calls {
		m := meeting{b, places[call.Name], call.What, of[call.Name]}
		t.Run(call.Name, m.check)
		fmt.Fprintln(w, call.Name+"\t"+m.row())
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	compare(t, filepath.Join("testdata", word+".txt"), table.String())
}

// setting is where it is met, with one SDK.
func (e encounter) setting(api upstream.API, word string, authority gateway.Authority) setting {
	limit := e.limit
	if limit == "" {
		limit = "heard"
	}
	s := setting{
		deployment: limit + "-" + word + "-" + strings.ReplaceAll(e.call.Name, "_", "-"),
		provider:   upstream.Config{API: api}, authority: authority, change: e.change,
	}
	if e.fault.Kind != "" {
		s.faults = append(s.faults, e.fault)
	}
	return s
}

// compare compares a table with the one in the tree.
func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// meeting is what an SDK did at one place.
type meeting struct {
	sdk.Behaviour
	*place
	// what is the interface that it called.
	what    string
	results []sdk.Result
}

// check holds what the SDK did against what its table says of the answers that it got.
func (m meeting) check(t *testing.T) {
	answers := m.answers()
	for _, result := range m.results {
		sent := len(result.Waits) + 1
		if len(answers) < sent {
			t.Fatalf("%d answers are left of a call that was sent %d times: %+v", len(answers), sent, result)
		}
		for n, a := range answers[:sent] {
			if a.status == http.StatusOK {
				continue
			}
			want := m.Expect(a.refusal())
			goesOn := n+1 < want.Attempts
			if goesOn != (n+1 < sent) {
				t.Errorf("%d is told %d %v, and is sent %d times: want %d", n, a.status, a.header, sent, want.Attempts)
			}
			if goesOn && n < len(result.Waits) && !isWithin(result.Waits[n], want.Waits[n]) {
				t.Errorf("it waits %v ms after %d %v, want %v", result.Waits[n], a.status, a.header, want.Waits[n])
			}
		}
		last := answers[sent-1]
		if class := m.class(result, last); result.Class != class {
			t.Errorf("its user got %s, want %s: %+v", result.Class, class, result)
		}
		answers = answers[sent:]
	}
	if len(answers) > 0 {
		t.Errorf("%d answers are nobody's", len(answers))
	}
	m.checkUse(t)
}

// checkUse: who was served got the usage, and where the provider has said it, so has the
// gateway.
func (m meeting) checkUse(t *testing.T) {
	t.Helper()
	var served []upstream.Call
	for _, call := range m.upstream.Ledger().Calls {
		if call.Outcome == upstream.Served {
			served = append(served, call)
		}
	}
	heard := m.Stats().Estimates
	if !until(t.Context(), func() bool { heard = m.Stats().Estimates; return heard.Requests() == int64(len(served)) }) {
		t.Errorf("the usage of %d calls is known, want %d", heard.Requests(), len(served))
	}
	for _, result := range m.results {
		if !result.OK {
			continue
		}
		if len(served) == 0 {
			t.Fatalf("nobody was served, and its user got %+v", result)
		}
		if bill := served[0].Billed; result.Text == "" || result.Input != bill.Input || result.Output != bill.Output {
			t.Errorf("%+v, and %+v is billed", result, bill)
		}
		served = served[1:]
	}
	if len(served) > 0 {
		t.Errorf("%d calls were served whose users got an error: %+v", len(served), m.results)
	}
}

// class is that of the error which a user should get.
func (m meeting) class(result sdk.Result, last answer) string {
	switch {
	case result.OK:
		return ""
	case last.status == http.StatusOK && result.Message == "terminated":
		// What Node's own client says of a connection that ends too early.
		return "TypeError"
	case last.status == http.StatusOK && m.what == "responses" && m.Silent:
		return ""
	case last.status == http.StatusOK:
		return m.Class(0)
	case last.isSpendCap():
		return m.SpendCap
	default:
		return m.Class(last.status)
	}
}

// hints are the headers that SDKs look at.
var hints = []string{"Retry-After", "retry-after-ms", "x-should-retry"}

// refusal is an answer as the table of SDKs knows it.
func (a answer) refusal() sdk.Refusal {
	r := sdk.Refusal{Status: a.status, Header: map[string]string{}}
	for _, name := range hints {
		if value := a.header.Get(name); value != "" {
			r.Header[name] = value
		}
	}
	return r
}

// isSpendCap: it is a 429 that has neither a hint nor a budget.
func (a answer) isSpendCap() bool {
	return a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") == ""
}

func isWithin(ms float64, want [2]time.Duration) bool {
	wait := time.Duration(ms * float64(time.Millisecond))
	return wait >= want[0] && wait <= want[1]
}

// String is an answer as the tables have it: its status, whether it has a hint, whether it
// says that nobody should retry, and that a budget is spent.
func (a answer) String() string {
	text := fmt.Sprint(a.status)
	for _, word := range []struct{ header, is string }{
		{"Retry-After", " hint"}, {"X-Should-Retry", " stop"}, {"X-Retry-Budget-Exceeded", " budget"},
	} {
		if a.header.Get(word.header) != "" {
			text += word.is
		}
	}
	return text
}

// row is what the table says.
func (m meeting) row() string {
	var told, waited, got []string
	answers := m.answers()
	sent := 0
	for _, result := range m.results {
		for _, ms := range result.Waits {
			waited = append(waited, howLong(ms, answers, sent))
			sent++
		}
		sent++
		class := result.Class
		switch {
		case class == "" && result.OK:
			class = "the answer"
		case class == "":
			class = "a part, and no error"
		}
		got = append(got, class)
	}
	for _, a := range answers {
		told = append(told, a.String())
	}
	return fmt.Sprintf("%d\t%d\t%d\t%s\t%s\t%s", len(m.results), sent, m.reached(), runs(told), runs(waited), runs(got))
}

// howLong says whether a wait is the hint that came before it, or the SDK's own.
func howLong(ms float64, answers []answer, sent int) string {
	if sent < len(answers) {
		if r := answers[sent].refusal(); fmt.Sprint(ms) == r.Header["retry-after-ms"] {
			return "hint"
		}
	}
	return "own"
}

// runs is a list with how often each thing comes in a row.
func runs(list []string) string {
	var out []string
	for i := 0; i < len(list); {
		n := i
		for n < len(list) && list[n] == list[i] {
			n++
		}
		out = append(out, fmt.Sprintf("%d× %s", n-i, list[i]))
		i = n
	}
	if out == nil {
		return "-"
	}
	return strings.Join(out, ", ")
}
