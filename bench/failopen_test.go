package bench

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	ports, err := freePorts(2)
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

// lossRun counts what became of the calls of one mode.
type lossRun struct {
	limit                           string
	issued, answered, failed, local atomic.Int64
	mu                              sync.Mutex
	// localAt are when answers were given locally, decidedAt when the authority
	// gave them.
	localAt, decidedAt []time.Time // guarded by mu
}

// loop calls about five hundred times a second where it is answered at once, as
// it is locally.
func (r *lossRun) loop(ctx context.Context, c *client.Client) {
	for pause(ctx, 2*time.Millisecond) == nil {
		r.issued.Add(1)
		d, err := c.Acquire(context.Background(), client.Request{
			Charges: []client.Charge{{Limit: r.limit, Dimension: "requests", Amount: 1}},
		})
		r.answered.Add(1)
		switch {
		case err != nil || !d.Granted:
			r.failed.Add(1)
		case d.Source == client.Local:
			r.local.Add(1)
			r.note(&r.localAt)
		default:
			r.note(&r.decidedAt)
		}
	}
}

func (r *lossRun) note(at *[]time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*at = append(*at, time.Now())
}

// gap is for how long after kill nobody had an answer of the authority.
func (r *lossRun) gap(kill time.Time) time.Duration {
	first := time.Hour
	for _, at := range r.decidedAt {
		// What was under way when the leader died may still be answered.
		if d := at.Sub(kill); d > 300*time.Millisecond {
			first = min(first, d)
		}
	}
	return first
}

// TestLeaderKillsGoUnnoticed: with a limit that is closed when nobody answers and
// a deadline of 5 s, no call fails and none is decided locally while the leader is
// killed again and again. With one that is open and a deadline that is shorter than
// an election, and longer than a busy machine stands still, answers are
// local within 2 s of a kill only, or, where this machine takes longer to elect a
// leader, until half a second after the authority answers again.
func TestLeaderKillsGoUnnoticed(t *testing.T) {
	t.Parallel()
	t.Run("G8_closed_waits_and_open_bridges", func(t *testing.T) {
		nodes := startCluster(t, nil)
		closed, open := &lossRun{limit: "closed"}, &lossRun{limit: "open"}
		for _, limit := range []*quorleasev1.Limit{
			generous("closed", quorleasev1.FallbackMode_CLOSED_ON_LOSS),
			generous("open", quorleasev1.FallbackMode_OPEN_ON_LOSS),
		} {
			if err := ApplyLimit(t.Context(), nodes.GRPC(0), limit); err != nil {
				t.Fatal(err)
			}
		}
		endpoints := []string{nodes.GRPC(0), nodes.GRPC(1), nodes.GRPC(2)}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var running sync.WaitGroup
		for run, deadline := range map[*lossRun]time.Duration{closed: 5 * time.Second, open: 400 * time.Millisecond} {
			c, err := client.New(client.Config{
				Endpoints: endpoints, Client: run.limit, Deadline: deadline,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for range 8 {
				running.Go(func() { run.loop(ctx, c) })
			}
		}
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
		for i, kill := range kills {
			gap, last := closed.gap(kill), time.Duration(0)
			for _, at := range open.localAt {
				if d := at.Sub(kill); d >= 0 && (i == len(kills)-1 || at.Before(kills[i+1])) {
					last = max(last, d)
				}
			}
			t.Logf("kill %d: the authority answers again after %s, the last local answer came after %s", i+1, gap, last)
			if last > max(2*time.Second, gap+500*time.Millisecond) {
				t.Errorf("kill %d: a local answer %s afterwards, and the authority answered after %s", i+1, last, gap)
			}
		}
	})
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
