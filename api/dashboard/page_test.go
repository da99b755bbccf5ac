package dashboard_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// redRow says whether the first client's row has the ground of what is wrong.
const redRow = `(() => {
	const cell = document.querySelector("#clients tbody tr.over td");
	return cell !== null && getComputedStyle(cell).backgroundColor === "rgb(253, 231, 229)";
})()`

func TestTheCrossing(t *testing.T) {
	p := open(t, calm())
	if ask[bool](p, redRow) {
		t.Error("20.0 % is red")
	}
	if got, want := p.text("#retry-alerts"), "retry-budget alerts: 0 firing"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	t.Run("S1-39_the_row_is_red_with_the_picture_that_crosses_20_percent", func(t *testing.T) {
		p := p.with(t)
		crossed := storm()
		crossed.Clients[0] = scorer(101, 501)
		from := ask[float64](p, `performance.now()`)
		p.feed.show(t, crossed)
		took := p.until(redRow) - from
		t.Logf("red after %.0f ms", took)
		if took > 1000 {
			t.Errorf("red after %.0f ms, want at most 1000", took)
		}
		if got := p.text("#clients tbody tr.over .badge"); got != "over budget" {
			t.Errorf("without colours it says %q", got)
		}
	})
	t.Run("S1-40_the_counter_is_the_number_of_retry_alerts", func(t *testing.T) {
		p := p.with(t)
		if got, want := p.text("#retry-alerts"), "retry-budget alerts: 2 firing"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got, want := ask[string](p, `document.title`), "(2) Quorlease n1"; got != want {
			t.Errorf("title %q, want %q", got, want)
		}
	})
	t.Run("an_alert_is_listed_and_read_out", func(t *testing.T) {
		p := p.with(t)
		row := p.row("alert-list")
		if row[1] != "ClientOverBudget" || row[2] != "batch-scorer" || row[5] != "alerts.md#clientoverbudget" {
			t.Errorf("%q", row)
		}
		if got := p.text("#announce"); !strings.Contains(got, "New alert: ClientOverBudget batch-scorer 92%.") {
			t.Errorf("read out: %q", got)
		}
		p.feed.show(t, calm())
		p.until(`document.getElementById("announce").textContent.includes("Over: ClientOverBudget batch-scorer 92%.")`)
		p.until(`!document.querySelector("#clients .over")`)
	})
}

func TestTheFigures(t *testing.T) {
	p := open(t, storm())
	t.Run("S1-13_the_offenders_have_what_the_picture_says", func(t *testing.T) {
		p := p.with(t)
		heads := ask[[]string](p, `[...document.querySelectorAll("#clients th button")].map((b) => b.textContent)`)
		want := []string{
			"Client", "Throttled calls, last hour", "Retry fraction", "Retries left", "Has a budget?",
			"Honours Retry-After?", "Commonest error",
		}
		if diff := cmp.Diff(want, heads); diff != "" {
			t.Error(diff)
		}
		want = []string{
			"batch-scorer over budget for 12 s", "8,412", "92.0 %\n4,600 of 5,000", "0 of 100, free in 41 s", "yes: default",
			"no\n31 of 40 early", "rate_limit_exceeded",
		}
		if diff := cmp.Diff(want, p.row("clients")); diff != "" {
			t.Error(diff)
		}
		if got, want := p.text("#offenders-note"), "4 of 37"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
	t.Run("S1-12_both_series_are_drawn_and_429s_are_red", func(t *testing.T) {
		p := p.with(t)
		for id, colour := range map[string]string{"plot-bad": "rgb(179, 38, 30)", "plot-good": "rgb(47, 109, 181)"} {
			drawn := p.attribute("#"+id, "d")
			if points := strings.Count(drawn, "L"); points < 358 {
				t.Errorf("%s has %d points", id, points)
			}
			said := (*quorleasev1.RatePoint).GetThrottled
			if id == "plot-good" {
				said = (*quorleasev1.RatePoint).GetOk
			}
			if !draws(drawn, p.text("#plot-top"), storm().GetHistory(), said) {
				t.Errorf("%s is not what the picture says: %s", id, drawn)
			}
			if got := ask[string](p, fmt.Sprintf(`getComputedStyle(document.getElementById(%q)).stroke`, id)); got != colour {
				t.Errorf("%s is %s, want %s", id, got, colour)
			}
		}
		if got := p.attribute("#plot", "aria-label"); !strings.Contains(got, "429s") {
			t.Errorf("described as %q", got)
		}
	})
	t.Run("S2-31_queue_depth_spent_tokens_and_the_p95_of_what_was_not_limited", func(t *testing.T) {
		p := p.with(t)
		if got, want := p.text("#waiting"), "412, oldest 31 s"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got, want := p.text("#p95"), "1.24 ms"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		row := p.row("limits")
		if want := "412\noldest 31 s, ETA 2 min 0 s\nlive: 12\nbatch: 400"; row[2] != want {
			t.Errorf("%q, want %q", row[2], want)
		}
		if want := "21,400 of 400,000 · 400,000/min · 6,120.5/s granted · 94.7 % used"; !strings.Contains(row[1], want) {
			t.Errorf("%q does not have %q", row[1], want)
		}
		binding := ask[[]string](p, `[...document.querySelectorAll("#limits .badge")].filter((b) => !b.hidden)
			.map((b) => b.parentElement.innerText)`)
		if diff := cmp.Diff([]string{"input_tokens binding", "slots binding"}, binding); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("S1-11_the_red_line_is_down_when_the_source_is_gone", func(t *testing.T) {
		p := p.with(t)
		p.feed.show(t, without(storm()))
		p.until(`document.getElementById("bad-now").textContent === "0"`)
		if got, want := p.text("#share-now"), "0.0 % 429s"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := p.attribute("#plot-bad", "d"); !strings.HasSuffix(got, "L720 159.0") {
			t.Errorf("the line ends %q, want it at the bottom", got[len(got)-20:])
		}
	})
}

func TestTheBudgetBurnsDown(t *testing.T) {
	p := open(t, calm())
	t.Run("S1-38_retries_left_are_shown_and_fall", func(t *testing.T) {
		p := p.with(t)
		for _, retries := range []int64{40, 70, 99} {
			picture := calm()
			picture.Clients[0] = scorer(retries, 400+retries)
			p.feed.show(t, picture)
			const left = `document.querySelector("#clients tbody td:nth-child(4)").innerText`
			p.until(fmt.Sprintf(left+` === "%d of 100"`, 100-retries))
			// A picture within 250 ms of the last one makes no point of its own.
			p.until(fmt.Sprintf(`(() => {
				const points = document.querySelector("#clients .history").getAttribute("points").trim().split(" ");
				return points.length > 2 && Math.abs(Number(points.at(-2).split(",")[1]) - %f) < 0.2;
			})()`, 17-15*float64(100-retries)/100))
		}
		heights := ask[[]float64](p, `document.querySelector("#clients .history").getAttribute("points").split(" ")
			.map((point) => Number(point.split(",")[1]))`)
		if last := heights[len(heights)-1]; last < 16 {
			t.Errorf("the history %v does not end at the bottom", heights)
		}
		if bar := ask[string](p, `document.querySelector("#clients .burn .left").getAttribute("width")`); bar != "1.2" {
			t.Errorf("1 of 100 is a bar of %s of 120", bar)
		}
	})
}

// draws says whether a path goes where the points of an hour are on a scale up to top, a
// minute at the rate of ten seconds. The page leaves out what is not over or too old.
func draws(path, top string, points []*quorleasev1.RatePoint, said func(*quorleasev1.RatePoint) int64) bool {
	most, err := strconv.ParseFloat(strings.ReplaceAll(top, ",", ""), 64)
	places := strings.Split(strings.TrimPrefix(path, "M"), "L")
	// The last place is the edge.
	places = places[:len(places)-1]
	fits := func(shown []*quorleasev1.RatePoint) bool {
		for i, place := range places {
			_, height, _ := strings.Cut(place, " ")
			y, err := strconv.ParseFloat(height, 64)
			if err != nil || math.Abs(y-(159-154*6*float64(said(shown[i]))/most)) > 0.06 {
				return false
			}
		}
		return true
	}
	for skip := range min(3, len(points)-len(places)+1) {
		if err == nil && fits(points[skip:]) {
			return true
		}
	}
	return false
}

// hostile are names that would do something if they were markup. What they would
// do is set window.hit.
var hostile = []string{
	`<img src=x onerror="window.hit=1">`, `"><svg/onload=window.hit=1>`, `<script>window.hit=1</script>`,
	`'-window.hit=1-'`, `javascript:window.hit=1`, `{{constructor.constructor('window.hit=1')()}}`,
	`</td></tr></table><h1>x`,
	"\u202egnp.exe", `__proto__`, `&lt;b&gt;`,
}

func TestNamesAreShownLiterally(t *testing.T) {
	picture := storm()
	picture.Clients = nil
	for i, name := range hostile {
		client := scorer(int64(100+i), 500)
		client.Client, client.Error, client.RetryBudget = name, name, name
		picture.Clients = append(picture.Clients, client)
		limit := providerLimit()
		limit.Name, limit.Key, limit.WorstKey, limit.Kind, limit.Binding = name, name, name, name, name
		limit.Dimensions[0].Name, limit.Queues[0].Class = name, name
		limit.Control = &quorleasev1.ControlState{Paused: durationpb.New(1e9), Reason: name, Client: name}
		picture.Limits = append(picture.Limits, limit)
		picture.Alerts = append(picture.Alerts, &quorleasev1.FiringAlert{
			Kind: name, Client: name, Limit: name, Value: name, Text: name, Severity: quorleasev1.Severity_CRITICAL,
			Since: picture.GetTime(),
		})
		picture.Nodes = append(picture.Nodes, &quorleasev1.NodeStatus{Id: name, Http: name, Version: name})
	}
	p := open(t, calm())
	elements := `document.querySelectorAll("img, script:not([src]), h1 ~ h1, iframe, svg[onload], td script").length`
	if got := ask[int](p, elements); got != 0 {
		t.Fatalf("%d elements of that kind before", got)
	}
	picture.Node, picture.Leader = hostile[0], hostile[1]
	p.feed.show(t, picture)
	p.until(fmt.Sprintf(`document.querySelectorAll("#alert-list tbody tr").length >= %d`, len(hostile)))
	if got := ask[int](p, elements); got != 0 {
		t.Errorf("%d elements came out of names", got)
	}
	for table, cell := range map[string]int{"clients": 0, "limits": 0, "alert-list": 1, "nodes": 0} {
		names := ask[[]string](p, fmt.Sprintf(
			`[...document.querySelectorAll("#%s tbody tr")].map((r) => r.cells[%d].querySelector("bdi").textContent)`,
			table, cell))
		for _, name := range hostile {
			if !slices.Contains(names, name) {
				t.Errorf("%s does not show %q", table, name)
			}
		}
	}
	if ask[bool](p, `"hit" in window`) {
		t.Error("a name was run")
	}
	if got := p.text("#leader"); got != hostile[1] {
		t.Errorf("leader %q", got)
	}
}
