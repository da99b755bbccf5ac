package behind_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/quorlease/quorlease/bench/sdk"
	"github.com/quorlease/quorlease/bench/sdk/sdktest"
	"github.com/quorlease/quorlease/bench/upstream"
	"github.com/quorlease/quorlease/client/gateway"
)

// metInClouds are in the order of the tables in testdata.
var metInClouds = []encounter{
	{call: sdk.Call{Name: "plain"}},
	{call: sdk.Call{Name: "stream", Stream: true}},
	{call: sdk.Call{Name: "refused_once"}, fault: refuse(upstream.InputTokens, time.Second, 1)},
	{
		call:  sdk.Call{Name: "overloaded_in_the_first_event", Stream: true},
		fault: upstream.Fault{Kind: upstream.Spoil, Calls: 1},
	},
	{call: sdk.Call{Name: "rate"}, fault: refuse(upstream.InputTokens, 50*time.Second, 0), change: impatient},
	{call: sdk.Call{Name: "overload"}, fault: refuse(upstream.Overload, 0, 0), change: impatient},
	{call: sdk.Call{Name: "storm", Times: storm}, fault: refuse(upstream.Requests, 0, 0)},
	{
		call:  sdk.Call{Name: "storm_without_circuits", Times: storm},
		fault: refuse(upstream.Requests, 0, 0), change: unbroken, limit: "deaf",
	},
	{call: sdk.Call{Name: "spend_cap", Times: 3}, fault: refuse(upstream.SpendCap, 0, 0)},
	{call: sdk.Call{Name: "own_limit", Times: 2}, change: impatient, limit: "narrow"},
}

// unkeyed is a gateway that has no key of the provider's.
func unkeyed(c *gateway.Config) { c.Deployments[0].Key = "" }

// TestWhatSDKsOfCloudsDoBehindTheGateway: unmodified SDKs of Google's and of AWS's are served
// through it, streams too, and what they are told is what testdata has.
func TestWhatSDKsOfCloudsDoBehindTheGateway(t *testing.T) {
	for name, met := range map[sdk.Name][]encounter{
		sdk.Gemini2: metInClouds, sdk.Bedrock3: metInClouds,
		sdk.BedrockSigned3: {
			{call: sdk.Call{Name: "plain"}},
			{call: sdk.Call{Name: "stream", Stream: true}},
			{call: sdk.Call{Name: "without_a_key"}, change: unkeyed},
		},
	} {
		t.Run(string(name), func(t *testing.T) { inACloud(t, name, met) })
	}
}

func inACloud(t *testing.T, name sdk.Name, met []encounter) {
	t.Helper()
	i := sdktest.InstalledSet(t, "../../.tools", sdk.Clouds)
	authority, word := ask(t), strings.ReplaceAll(string(name), "@", "-")
	places := make(map[string]*place)
	var calls []sdk.Call
	for _, e := range met {
		p := stand(t, e.setting(sdktest.API(name), word, authority))
		call := e.call
		call.URL, call.Client = p.url, word+"-"+call.Name
		places[call.Name] = p
		calls = append(calls, call)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Minute, errors.New("it took 2 minutes"))
	defer cancel()
	results, err := i.Drive(ctx, name, sdk.Pace{Times: 1000, Most: 250 * time.Millisecond}, calls...)
	if err != nil {
		t.Fatal(err)
	}
	of := make(map[string][]sdk.Result)
	for _, result := range results {
		of[result.Name] = append(of[result.Name], result)
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s %s\n\nmet\tcalls\tsent\treached\ttold\tits users got\n", name, results[0].Version)
	for _, call := range calls {
		m := meeting{sdk.Behaviour{}, places[call.Name], "", of[call.Name]}
		t.Run(call.Name, m.checkUse)
		fmt.Fprintln(w, call.Name+"\t"+m.cloudRow())
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	compare(t, filepath.Join("testdata", word+".txt"), table.String())
}

// cloudRow is row without what an SDK waits: timers of its own are among that.
func (m meeting) cloudRow() string {
	var told, got []string
	for _, result := range m.results {
		class := fmt.Sprintf("%s %d", result.Class, result.Status)
		if result.OK {
			class = "the answer"
		}
		got = append(got, class)
	}
	for _, a := range m.answers() {
		text := a.String()
		if name := a.header.Get("X-Amzn-Errortype"); name != "" && a.status != http.StatusOK {
			text += " " + name
		}
		told = append(told, text)
	}
	return fmt.Sprintf("%d\t%d\t%d\t%s\t%s", len(m.results), len(told), m.reached(), runs(told), runs(got))
}
