package supervise

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childMode makes this test binary a child process of its own tests.
const childMode = "SUPERVISE_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		beChild(mode)
	}
	goleak.VerifyTestMain(m)
}

// beChild never returns.
func beChild(mode string) {
	fmt.Fprintln(os.Stderr, "hello from", mode)
	switch mode {
	case "stubborn":
		ignored := make(chan os.Signal, 1)
		signal.Notify(ignored, syscall.SIGTERM)
		fmt.Fprintln(os.Stderr, "ready")
		for {
			<-ignored
		}
	case "patient":
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		fmt.Fprintln(os.Stderr, "ready")
		<-stop
		fmt.Fprint(os.Stderr, "goodbye")
		os.Exit(0)
	case "parent":
		// Starts a child, says its pid, and is killed without a word.
		g, err := Start(Config{Output: os.Stderr, Grace: time.Second}, []Spec{specOf("orphan", "patient")})
		if err != nil {
			os.Exit(1)
		}
		fmt.Fprintln(os.Stderr, "child", g.PID("orphan"))
		select {}
	default:
		code, err := strconv.Atoi(mode)
		if err != nil {
			code = 99
		}
		os.Exit(code)
	}
}

func specOf(name, mode string) Spec {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Spec{Name: name, Path: program, Args: []string{"child"}, Env: []string{childMode + "=" + mode}}
}

// output collects lines and lets a test wait for one.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan struct{}
}

func newOutput() *output { return &output{wrote: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	select {
	case o.wrote <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) await(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !strings.Contains(o.String(), want) {
		select {
		case <-o.wrote:
		case <-deadline:
			t.Fatalf("no %q in 20 s, only:\n%s", want, o)
		}
	}
}

func start(t *testing.T, config Config, specs ...Spec) *Group {
	t.Helper()
	g, err := Start(config, specs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func next(t *testing.T, g *Group) Event {
	t.Helper()
	select {
	case e := <-g.Events():
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("no event in 20 s")
		return Event{}
	}
}

func TestGroupPassesWholeLinesOn(t *testing.T) {
	t.Parallel()
	out := newOutput()
	g := start(t, Config{Output: out, Grace: 10 * time.Second}, specOf("a", "patient"), specOf("bb", "patient"))
	out.await(t, "a | ready\n")
	out.await(t, "bb | ready\n")
	g.Close()
	if got := out.String(); !strings.Contains(got, "a | goodbye\n") || !strings.Contains(got, "bb | goodbye\n") {
		t.Errorf("the last line without a break is missing:\n%s", got)
	}
	if got := g.Running(); got != 0 {
		t.Errorf("%d children run after Close, want 0", got)
	}
}

func TestGroupTellsHowAChildEnded(t *testing.T) {
	t.Parallel()
	out := newOutput()
	g := start(t, Config{Output: out, Grace: time.Second}, specOf("a", "7"))
	if e := next(t, g); !e.Started || e.PID == 0 {
		t.Errorf("first event %+v, want a start", e)
	}
	e := next(t, g)
	if e.Started || e.Code != 7 || e.Cause != "exit status 7" || e.LastLine != "hello from 7" || e.RestartIn != 0 {
		t.Errorf("second event %+v, want an end with code 7", e)
	}
}

func TestGroupTellsOfASignal(t *testing.T) {
	t.Parallel()
	out := newOutput()
	g := start(t, Config{Output: out, Grace: time.Second}, specOf("a", "patient"))
	out.await(t, "ready")
	next(t, g)
	if err := syscall.Kill(g.PID("a"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := next(t, g); e.Code != -1 || e.Cause != "signal: killed" {
		t.Errorf("event %+v, want killed by a signal", e)
	}
}

func TestGroupKillsAfterTheGrace(t *testing.T) {
	t.Parallel()
	out := newOutput()
	g := start(t, Config{Output: out, Grace: 200 * time.Millisecond}, specOf("a", "stubborn"))
	out.await(t, "ready")
	began := time.Now()
	g.Close()
	if took := time.Since(began); took < 200*time.Millisecond || took > 10*time.Second {
		t.Errorf("Close took %s, want the grace of 200ms and little more", took)
	}
}

func TestGroupRestartsWithLongerPauses(t *testing.T) {
	t.Parallel()
	config := Config{
		Output: newOutput(), Grace: time.Second,
		Restart:    func(code int) bool { return code == 3 },
		FirstPause: 10 * time.Millisecond, LongestPause: 25 * time.Millisecond,
	}
	// A life longer than the longest pause starts the pauses anew; this child's
	// is shorter only by luck, so that only the bounds are sure.
	g := start(t, config, specOf("a", "3"))
	for range 4 {
		next(t, g)
		if e := next(t, g); e.RestartIn < config.FirstPause || e.RestartIn > config.LongestPause {
			t.Fatalf("event %+v, want a restart in 10ms to 25ms", e)
		}
	}
	other := start(t, config, specOf("a", "4"))
	next(t, other)
	if e := next(t, other); e.RestartIn != 0 {
		t.Errorf("event %+v, want no restart", e)
	}
}

func TestStartFailsWhole(t *testing.T) {
	t.Parallel()
	g, err := Start(Config{Output: newOutput(), Grace: time.Second},
		[]Spec{specOf("a", "patient"), {Name: "b", Path: "/no/such/program", Args: []string{"b"}}})
	if err == nil || g != nil || !strings.Contains(err.Error(), "start b: ") {
		t.Errorf("Start = %v, %v, want an error that names b", g, err)
	}
}

// TestNoOrphans kills a supervisor without a word and expects the kernel to
// take its child along.
func TestNoOrphans(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := newOutput()
	parent := exec.CommandContext(t.Context(), program)
	parent.Env = []string{childMode + "=parent"}
	parent.Stderr = out
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	out.await(t, "orphan | ready")
	// The child may be ready before its parent has said who it is.
	out.await(t, "child ")
	_, after, _ := strings.Cut(out.String(), "child ")
	line, _, _ := strings.Cut(after, "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatalf("no pid in %q", out)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); syscall.Kill(pid, 0) == nil && !isZombie(t, pid); <-tick.C {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("child %d lives on without its parent", pid)
		}
	}
}

// isZombie tells a process that is dead and not yet waited for.
func isZombie(t *testing.T, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z")
}
