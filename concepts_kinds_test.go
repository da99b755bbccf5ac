package quorlease_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/cluster/calendar"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/fsmtest"
	"github.com/quorlease/quorlease/fsm/match"
)

// concept is one page of docs/concepts.
func concept(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("docs", "concepts", name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// limitsOf are the limits of the page's first file.
func limitsOf(t *testing.T, page string) []*logv1.Limit {
	t.Helper()
	_, rest, _ := strings.Cut(page, "```yaml\n")
	file, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page has no file")
	}
	request, err := limitsfile.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	all, err := limitsfile.ResolveAll(request)
	if err != nil {
		t.Fatal(err)
	}
	return all.GetLimits()
}

// hasRows says which rows a page does not have, one after the other.
func hasRows(t *testing.T, page string, rows []string) {
	t.Helper()
	if table := strings.Join(rows, "\n") + "\n"; !strings.Contains(page, table) {
		t.Errorf("the page does not have the rows\n%s", table)
	}
}

func draw(t *testing.T, name, title string, p *plot.Plot) {
	t.Helper()
	var drawn bytes.Buffer
	if err := plot.Picture(&drawn, title, p.Draw()); err != nil {
		t.Fatal(err)
	}
	picture(t, filepath.Join("docs", "concepts", name+".svg"), drawn.Bytes())
}

func ticks(most, step float64) []plot.Tick {
	var list []plot.Tick
	for at := 0.0; at <= most; at += step {
		list = append(list, plot.Tick{At: at, Text: plot.Number(at)})
	}
	return list
}

// slots is the example of docs/concepts/slots.md.
type slots struct {
	*fsmtest.Driver
	rows  []string
	in    [][2]float64
	inUse int64
}

// at notes how many are in use once what happened has happened.
func (s *slots) at(now time.Duration, who, what string, op *logv1.Operation) {
	s.T.Helper()
	s.track(now)
	answer := "done"
	if result := s.At(now, op)[0]; op.GetAcquire() != nil {
		answer = "granted"
		for _, d := range result.GetAcquire().GetDenials() {
			answer = fmt.Sprintf("`%s`, %v at the latest", strings.TrimPrefix(d.GetReason().String(), "REASON_"),
				time.Duration(d.GetRetryAfter()))
		}
	}
	s.track(now)
	s.rows = append(s.rows, fmt.Sprintf("| %v | %s | %s | %s | %d |", now, who, what, answer, s.inUse))
}

func (s *slots) track(now time.Duration) {
	s.T.Helper()
	s.At(now)
	s.inUse = s.CheckKey("tenant-inflight", "a").Buckets[0].Open
	s.in = append(s.in, [2]float64{now.Seconds(), float64(s.inUse)})
}

// TestConceptsSlots: who holds one of three slots when, with the numbers and the
// picture of the page.
func TestConceptsSlots(t *testing.T) {
	t.Parallel()
	page := concept(t, "slots")
	s := &slots{Driver: fsmtest.New(t)}
	s.At(0, fsmtest.Apply(limitsOf(t, page)...))
	session := fsmtest.LeaseID("b's session")
	take := func(id string) *logv1.Operation {
		op := fsmtest.Track(id, fsmtest.Charge("tenant-inflight", "a", "slots", 1))
		if id == "b" {
			op.GetAcquire().Session, op.GetAcquire().Connection = session, 1
		}
		return op
	}
	s.at(0, "A", "asks", take("a"))
	s.at(time.Second, "B", "asks", take("b"))
	s.at(2*time.Second, "C", "asks", take("c"))
	s.at(3*time.Second, "D", "asks", take("d"))
	s.at(4*time.Second, "A", "gives back", fsmtest.Release("a"))
	s.at(4*time.Second, "D", "asks again", take("d"))
	s.at(5*time.Second, "B", "is killed", fsmtest.Operation(&logv1.EndSession{
		Session: session, Connection: 1, Grace: int64(5 * time.Second),
	}))
	s.at(6*time.Second, "E", "asks", take("e"))
	s.at(10*time.Second, "E", "asks again", take("e"))
	s.at(32*time.Second, "C", "says nothing", fsmtest.Operation(&logv1.EndSession{Session: session}))
	hasRows(t, page, s.rows)
	draw(t, "slots", "Slots in use, of three", &plot.Plot{
		YLabel: "in use", XLabel: "seconds", XMax: 40, XTicks: ticks(40, 5),
		Marks: []plot.Tick{{At: 5, Text: "B is gone"}, {At: 32, Text: "C's lease ends"}},
		Series: []plot.Series{{
			Name: "slots", Class: "quorlease", Points: append(s.in, [2]float64{40, float64(s.inUse)}),
		}},
	})
}

// TestConceptsQuotas: three days of Berlin, of which one has 23 hours, with the
// numbers and the picture of the page.
func TestConceptsQuotas(t *testing.T) {
	t.Parallel()
	page := concept(t, "quotas")
	limit := limitsOf(t, page)[0]
	d := fsmtest.New(t)
	begins := time.Date(2026, 3, 27, 23, 0, 0, 0, time.UTC)
	d.Ahead = time.Duration(begins.UnixNano())
	d.At(0, fsmtest.Apply(limit))
	ask := fsmtest.Acquire("", fsmtest.Charge("team-day", "x", "requests", 1))
	ask.GetAcquire().LeaseId = nil
	var rows []string
	var left [][2]float64
	for at, rolled, refused := time.Duration(0), time.Duration(0), true; ; at += 10 * time.Minute {
		if over := d.WindowsOver(begins.Add(at).UnixNano()); len(over) > 0 {
			if len(rows) == 3 {
				break
			}
			rows, rolled, refused = append(rows, roll(t, d, at, over[0])), at, false
		}
		answer := d.Acquire(at, ask)
		if n := len(answer.GetDenials()); n > 0 && !refused {
			refused = true
			wait := time.Duration(answer.GetDenials()[0].GetRetryAfter())
			rows[len(rows)-1] += fmt.Sprintf(" after %v | %v |", at-rolled, wait)
		}
		left = append(left, [2]float64{at.Hours(), float64(answer.GetRemaining()[0].GetTokens())})
	}
	hasRows(t, page, rows)
	draw(t, "quotas", "What three days' quotas have left, by the clock of Berlin", &plot.Plot{
		YLabel: "left of 100", XLabel: "hours", XMax: 72, XTicks: ticks(72, 12),
		Marks:  []plot.Tick{{At: 24, Text: "Sunday"}, {At: 47, Text: "Monday, after 23 hours"}},
		Series: []plot.Series{{Name: "requests", Class: "quorlease", Points: left}},
	})
}

// roll begins the window of now, as the leader does.
func roll(t *testing.T, d *fsmtest.Driver, at time.Duration, over fsm.Window) string {
	t.Helper()
	starts, ends, err := calendar.Window(over.Calendar, int64(d.Ahead+at))
	if err != nil {
		t.Fatal(err)
	}
	d.At(at, fsmtest.Operation(&logv1.RollWindow{Limit: over.Limit, Starts: starts, Ends: ends}))
	show := func(n int64) string { return time.Unix(0, n).UTC().Format("2006-01-02 15:04") }
	return fmt.Sprintf("| %s | %s | %v |", show(starts), show(ends), time.Duration(ends-starts).Hours())
}

// TestConceptsAttributes: what attributes charge, and why a team inside its limit
// is refused, with the numbers and the picture of the page.
func TestConceptsAttributes(t *testing.T) {
	t.Parallel()
	page := concept(t, "attributes")
	limits := limitsOf(t, page)
	x := match.New(1, limits)
	var rows []string
	for _, work := range []string{
		"deployment=gpt-4o team=red", "team=red region=eu-west", "team=red", "deployment=batch-api",
	} {
		attributes := map[string]string{}
		for _, pair := range strings.Fields(work) {
			name, value, _ := strings.Cut(pair, "=")
			attributes[name] = value
		}
		charges, err := x.Charges(&match.Request{Attributes: attributes, Amounts: map[string]int64{"input_tokens": 900}})
		var list []string
		for _, c := range charges {
			bucket := strings.TrimSuffix(c.GetLimit()+"/"+strings.ReplaceAll(c.GetKey(), "|", `\|`), "/")
			list = append(list, fmt.Sprintf("`%s` %s=%d", bucket, c.GetDimension(), c.GetAmount()))
		}
		if err != nil {
			list = []string{"`LIMIT_NOT_FOUND`"}
		}
		rows = append(rows, "| `"+work+"` | "+strings.Join(list, ", ")+" |")
	}
	hasRows(t, page, rows)
	d := fsmtest.New(t)
	d.At(0, fsmtest.Apply(limits...))
	series := map[string]*plot.Series{
		"deployment": {Name: "deployment", Class: "before"}, "red": {Name: "team red", Class: "quorlease"},
		"blue": {Name: "team blue", Class: "echo"},
	}
	refused := map[string]int{}
	for at := time.Duration(0); at <= 30*time.Second; at += 100 * time.Millisecond {
		ask := func(team string) {
			charges, err := x.Charges(&match.Request{Attributes: map[string]string{"deployment": "gpt-4o", "team": team}})
			if err != nil {
				t.Fatal(err)
			}
			if answer := d.Acquire(at, fsmtest.Acquire("a", charges...)); !answer.GetGranted() {
				for _, denial := range answer.GetDenials() {
					refused[team+" by "+denial.GetLimit()]++
				}
			}
		}
		ask("red")
		if at%time.Second == 0 {
			ask("blue")
		}
		note := func(name, limit, key string) {
			level := float64(d.Level(at, limit, key, "requests"))
			series[name].Points = append(series[name].Points, [2]float64{at.Seconds(), level})
		}
		note("deployment", "deployment", "gpt-4o")
		note("red", "team", "red")
		note("blue", "team", "blue")
	}
	for who, n := range refused {
		if row := fmt.Sprintf("| %s | %d |", who, n); !strings.Contains(page, row) {
			t.Errorf("the page does not have the row %s", row)
		}
	}
	draw(t, "attributes", "Levels of a deployment and of two teams", &plot.Plot{
		YLabel: "requests left", XLabel: "seconds", XMax: 30, XTicks: ticks(30, 5),
		Series: []plot.Series{*series["deployment"], *series["red"], *series["blue"]},
	})
}
