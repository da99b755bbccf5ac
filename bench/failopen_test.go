package bench

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client"
)

// generous is a limit that never denies, with what happens when nobody answers.
func generous(name string, mode quorleasev1.FallbackMode) *quorleasev1.Limit {
	burst := int64(1) << 30
	return &quorleasev1.Limit{
		Name: name, OnQuorumLoss: mode,
		Dimensions: []*quorleasev1.Dimension{{
			Name: "requests", Burst: &burst,
			Rate: &quorleasev1.Rate{Amount: 1_000_000, Interval: durationpb.New(time.Second)},
		}},
	}
}

// service is the example, built and running.
type service struct {
	out, log bytes.Buffer
	done     chan error
}

func startService(t *testing.T, args ...string) *service {
	t.Helper()
	path := filepath.Join(t.TempDir(), "service")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path,
		"github.com/quorlease/quorlease/examples/service")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, out)
	}
	s := &service{done: make(chan error, 1)}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdout, cmd.Stderr = &s.out, &s.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.done <- cmd.Wait() }()
	return s
}

// figures waits for the end and reads the last line.
func (s *service) figures(t *testing.T) map[string]string {
	t.Helper()
	if err := <-s.done; err != nil {
		t.Fatalf("%v\n%s", err, s.log.String())
	}
	figures := map[string]string{}
	for _, pair := range strings.Fields(s.out.String()) {
		name, value, _ := strings.Cut(pair, "=")
		figures[name] = value
	}
	t.Log(s.out.String() + s.log.String())
	return figures
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTheExampleServesOn: a service at 100 calls a second does not notice that
// two of three nodes die, says once that it decides alone and once that it is
// over, and what it admitted is booked once.
func TestTheExampleServesOn(t *testing.T) {
	t.Parallel()
	t.Run("G8_one_alert_and_everything_booked_once", func(t *testing.T) {
		nodes := startCluster(t, nil)
		demo := generous("demo", quorleasev1.FallbackMode_OPEN_ON_LOSS)
		if err := ApplyLimit(t.Context(), nodes.GRPC(0), demo); err != nil {
			t.Fatal(err)
		}
		endpoints := strings.Join([]string{nodes.GRPC(0), nodes.GRPC(1), nodes.GRPC(2)}, ",")
		s := startService(t, "--endpoints", endpoints, "--rate", "100", "--for", "30s")
		for i, step := range []struct {
			after time.Duration
			do    func(int)
		}{
			{10 * time.Second, func(i int) { signal(t, nodes, i, syscall.SIGKILL) }},
			{8 * time.Second, func(i int) { startAgain(t, nodes, i) }},
		} {
			if err := pause(t.Context(), step.after); err != nil {
				t.Fatal(i, err)
			}
			step.do(0)
			step.do(1)
		}
		figures := s.figures(t)
		if calls := number(t, figures["calls"]); calls < 2_700 || figures["failed"] != "0" || figures["denied"] != "0" {
			t.Errorf("%v, want about 3000 calls and none denied or failed", figures)
		}
		if slowest, err := time.ParseDuration(figures["slowest"]); err != nil || slowest > 200*time.Millisecond {
			t.Errorf("slowest call %s, want at most 200ms", figures["slowest"])
		}
		for _, word := range []string{"ALERT", "RESOLVED"} {
			if n := len(regexp.MustCompile(`msg=`+word+`\b`).FindAllString(s.log.String(), -1)); n != 1 {
				t.Errorf("%d lines %s, want 1", n, word)
			}
		}
		local := number(t, figures["local"])
		if local < 300 {
			t.Errorf("%d calls were decided locally, want several hundred", local)
		}
		bookedOnce(t, nodes, local)
	})
}

// bookedOnce wants what the service reported to be there, and to be booked no
// second time when it is sent again.
func bookedOnce(t *testing.T, nodes *Nodes, local int64) {
	t.Helper()
	conn, err := Dial(nodes.GRPC(2))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	inspect := func() (reports []*quorleasev1.ReportState, tokens int64) {
		response, err := quorleasev1.NewLimitsClient(conn).Inspect(t.Context(),
			&quorleasev1.LimitsInspectRequest{Limit: "demo"})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range response.GetReports() {
			tokens += r.GetTokens()
		}
		return response.GetReports(), tokens
	}
	reports, tokens := inspect()
	if tokens != local {
		t.Errorf("%d tokens are booked, the service counted %d: %v", tokens, local, reports)
	}
	for _, r := range reports {
		again, err := quorleasev1.NewAdmissionClient(conn).Report(t.Context(), &quorleasev1.ReportRequest{
			Client: r.GetClient(), SessionId: r.GetSessionId(),
			Admitted: []*quorleasev1.Admitted{{Limit: "demo", Dimension: r.GetDimension(), Tokens: r.GetTokens()}},
		})
		if err != nil || !again.GetRepeatedRequest() || again.GetBooked()[0].GetTokens() != 0 {
			t.Errorf("the same report again: %v, %v; want that nothing is new", again, err)
		}
	}
	if _, again := inspect(); again != tokens {
		t.Errorf("%d tokens after the same reports, want %d", again, tokens)
	}
}

func signal(t *testing.T, nodes *Nodes, i int, s syscall.Signal) {
	t.Helper()
	if err := nodes.Signal(i, s); err != nil {
		t.Error(err)
	}
}

func startAgain(t *testing.T, nodes *Nodes, i int) {
	t.Helper()
	if err := nodes.Start(i); err != nil {
		t.Error(err)
	}
}

// TestTheExampleAlone: unplugged from any authority the example runs by its
// defaults, and says so once.
func TestTheExampleAlone(t *testing.T) {
	t.Parallel()
	ports, err := FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	s := startService(t, "--endpoints", strings.Join(ports, ","), "--rate", "100", "--for", "4s")
	figures := s.figures(t)
	if figures["failed"] != "0" || figures["denied"] != "0" || figures["local"] != figures["calls"] {
		t.Errorf("%v, want every call granted locally", figures)
	}
	if n := strings.Count(s.log.String(), "msg=ALERT"); n != 1 || !strings.Contains(s.log.String(), "static") {
		t.Errorf("%d alerts, want one that names the static defaults:\n%s", n, s.log.String())
	}
}

// TestLeaderKillsGoUnnoticed: with a limit that is closed when nobody answers and
// a deadline of 5 s, no call fails and none is decided locally while the leader is
// killed again and again. With one that is open and a deadline of 100 ms, which is
// shorter than an election, answers are local within 2 s of a kill only, or while
// the authority keeps the patient client beside it waiting for more than half of that
// (then another node is asked), or this process stands still: on a machine that stands
// still for 100 ms a local answer is right, whatever the hour.
func TestLeaderKillsGoUnnoticed(t *testing.T) {
	t.Parallel()
	t.Run("G8_closed_waits_and_open_bridges", func(t *testing.T) {
		nodes := startCluster(t, nil)
		closed, open := &lossRun{limit: "closed"}, &lossRun{limit: "open"}
		for _, limit := range []*quorleasev1.Limit{
			generous("closed", quorleasev1.FallbackMode_CLOSED_ON_LOSS),
			generous("open", quorleasev1.FallbackMode_OPEN_ON_LOSS),
		} {
			// What nodes hold would bridge an election by itself.
			limit.Exact = true
			if err := ApplyLimit(t.Context(), nodes.GRPC(0), limit); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var running sync.WaitGroup
		for run, deadline := range map[*lossRun]time.Duration{closed: 5 * time.Second, open: openDeadline} {
			c, err := client.New(client.Config{
				Endpoints: []string{nodes.GRPC(0), nodes.GRPC(1), nodes.GRPC(2)}, Client: run.limit, Deadline: deadline,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			known(t, c, run.limit)
			for range 8 {
				running.Go(func() { run.loop(ctx, c) })
			}
		}
		running.Go(func() { closed.standstill(ctx) })
		kills := killLeaders(t, nodes, 3)
		stop()
		running.Wait()
		t.Logf("closed: %d calls; open: %d calls, %d of them local",
			closed.issued.Load(), open.issued.Load(), open.local.Load())
		for _, run := range []*lossRun{closed, open} {
			if run.issued.Load() != run.answered.Load() || run.failed.Load() != 0 {
				t.Errorf("%s: %d calls, %d answered, %d failed or denied",
					run.limit, run.issued.Load(), run.answered.Load(), run.failed.Load())
			}
		}
		if n := closed.local.Load(); n != 0 {
			t.Errorf("closed: %d local answers", n)
		}
		wantBridges(t, kills, closed, open)
	})
}

// known waits until a client was told by the authority what becomes of a limit without it.
func known(t *testing.T, c *client.Client, limit string) {
	t.Helper()
	for {
		d, err := c.Acquire(t.Context(), client.Request{
			Charges: []client.Charge{{Limit: limit, Dimension: "requests", Amount: 1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if d.Source != client.Local {
			return
		}
		if err := pause(t.Context(), 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// openDeadline is shorter than an election.
const openDeadline = 100 * time.Millisecond

// notice is how long a client may take to be back where an authority answers again.
const notice = 2 * time.Second

// wantBridges wants local answers to be there after each kill, and nowhere but
// within 2 s of one or while the authority is slow.
func wantBridges(t *testing.T, kills []time.Time, closed, open *lossRun) {
	t.Helper()
	allowed := closed.slowness(openDeadline/2, notice)
	slow := len(allowed)
	for _, kill := range kills {
		allowed = append(allowed, span{kill, kill.Add(2 * time.Second)})
	}
	after := make([]time.Duration, len(kills))
	var unexplained []time.Duration
	for _, at := range open.localAt {
		k := max(0, sort.Search(len(kills), func(i int) bool { return kills[i].After(at) })-1)
		since := at.Sub(kills[k])
		if since <= 2*time.Second {
			after[k] = max(after[k], since)
		}
		if !slices.ContainsFunc(allowed, func(s span) bool { return s.contains(at) }) {
			unexplained = append(unexplained, at.Sub(kills[0]))
		}
	}
	if n := len(unexplained); n > 0 {
		t.Errorf("%d local answers, from %s to %s after the first kill, and the authority answered in time; kills %s",
			n, slices.Min(unexplained), slices.Max(unexplained), kills)
	}
	t.Logf("the last local answers within 2 s of the kills: %s; of %d calls beside them %d were slow or stood still",
		after, len(closed.decided), slow)
	if slices.Contains(after, 0) {
		t.Errorf("no local answer after a kill: %s; nothing was bridged", after)
	}
}

// killLeaders kills the leader every 10 s and starts it again after 3 s.
func killLeaders(t *testing.T, nodes *Nodes, times int) []time.Time {
	t.Helper()
	var kills []time.Time
	for range times {
		leader, err := nodes.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kills = append(kills, time.Now())
		signal(t, nodes, leader, syscall.SIGKILL)
		if err := pause(t.Context(), 3*time.Second); err != nil {
			t.Fatal(err)
		}
		startAgain(t, nodes, leader)
		if err := pause(t.Context(), 7*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	return kills
}
