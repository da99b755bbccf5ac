package supervise

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Spec is one child process.
type Spec struct {
	// Name stands before each line that the child logs.
	Name string
	// Path of the program, and its arguments, the zeroth included.
	Path string
	Args []string
	// Env is the whole environment.
	Env []string
}

// Config of a Group.
type Config struct {
	// Output gets the children's lines, one at a time.
	Output io.Writer
	// Similar is how long a line is held back, and counted, that differs from an
	// earlier one of the same child in numbers only. Zero: not at all.
	Similar time.Duration
	// MuteStop drops what the children log once Close has begun: those that are
	// stopped together complain of one another.
	MuteStop bool
	// Restart decides whether a child that ended with this exit code (-1: by a
	// signal) is started again. Nil: never.
	Restart func(code int) bool
	// FirstPause lies before the first restart. It doubles with each restart
	// up to LongestPause, and is the first again once a child has lived for
	// LongestPause. Both positive where Restart is set.
	FirstPause, LongestPause time.Duration
	// Grace is how long the children have between SIGTERM and SIGKILL when the
	// group is closed. Positive.
	Grace time.Duration
}

// Event is something that became of a child.
type Event struct {
	Name string
	PID  int
	// Started says that the child runs; otherwise it has ended.
	Started bool
	// Code is the exit code, -1 after a signal.
	Code int
	// Cause says in words how it ended, "signal: killed".
	Cause string
	// LastLine is the last line that the child logged, if any.
	LastLine string
	// RestartIn is the pause before it is started again. Zero: it is not.
	RestartIn time.Duration
}

// Group is a set of children. It is safe for concurrent use.
type Group struct {
	config Config
	lines  *sink
	events chan Event
	closed chan struct{}
	once   sync.Once
	wait   sync.WaitGroup

	mu sync.Mutex
	// running holds the processes that were started and not yet waited for.
	running map[string]*os.Process
}

// Start starts every child. Where one can't be started, those that were are
// stopped again. Close the group in any other case.
func Start(config Config, specs []Spec) (*Group, error) {
	g := &Group{
		config: config,
		lines:  &sink{out: config.Output, similar: config.Similar, kinds: map[string]*kind{}},
		// Room for what happens before the caller begins to listen. A slow
		// listener delays only the goroutine of the child in question.
		events:  make(chan Event, 4*len(specs)),
		closed:  make(chan struct{}),
		running: map[string]*os.Process{},
	}
	for _, spec := range specs {
		c := &child{group: g, spec: spec, lines: &lineWriter{sink: g.lines, prefix: spec.Name + " | "}}
		started := make(chan error, 1)
		g.wait.Go(func() { c.run(started) })
		if err := <-started; err != nil {
			g.Close()
			return nil, fmt.Errorf("start %s: %w", spec.Name, err)
		}
	}
	return g, nil
}

// Events says what becomes of the children, in the order of each child. It is
// never closed; nothing comes after Close.
func (g *Group) Events() <-chan Event { return g.events }

// PID is the process id of a child that runs, else 0.
func (g *Group) PID(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.running[name]; p != nil {
		return p.Pid
	}
	return 0
}

// Running counts the children that run.
func (g *Group) Running() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.running)
}

// Close asks every child to stop, kills what still runs after the grace, and
// returns when all have ended. It is idempotent.
func (g *Group) Close() {
	g.once.Do(func() {
		if g.config.MuteStop {
			g.lines.mute()
		}
		close(g.closed)
	})
	ended := make(chan struct{})
	go func() {
		g.wait.Wait()
		close(ended)
	}()
	g.signal(syscall.SIGTERM)
	select {
	case <-ended:
		return
	case <-time.After(g.config.Grace):
	}
	g.signal(syscall.SIGKILL)
	<-ended
}

func (g *Group) signal(s os.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.running {
		// A child that has just ended needs no signal.
		_ = p.Signal(s)
	}
}

func (g *Group) tell(e Event) {
	select {
	case g.events <- e:
	case <-g.closed:
	}
}

// child is one child and its goroutine.
type child struct {
	group *Group
	spec  Spec
	lines *lineWriter
}

// run starts the child, waits for its end, and starts it again as long as the
// configuration says so. started gets the outcome of the first start.
func (c *child) run(started chan<- error) {
	// The kernel ties the life of a child to the thread that started it, not
	// to the process. The thread therefore stays with this goroutine, which
	// outlives the child.
	runtime.LockOSThread()
	first, pause := true, c.group.config.FirstPause
	for {
		born := time.Now()
		cmd, err := c.start()
		if first {
			started <- err
		}
		if err != nil && first {
			return
		}
		first = false
		event := Event{Name: c.spec.Name, Code: -1}
		if err != nil {
			event.Cause = err.Error()
		} else {
			event = c.outlive(cmd)
		}
		if time.Since(born) >= c.group.config.LongestPause {
			pause = c.group.config.FirstPause
		}
		again := c.group.config.Restart != nil && c.group.config.Restart(event.Code)
		if again {
			event.RestartIn = pause
		}
		c.group.tell(event)
		if !again || !c.rest(pause) {
			return
		}
		pause = min(2*pause, c.group.config.LongestPause)
	}
}

// rest waits for the pause and says whether the group is still open.
func (c *child) rest(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.group.closed:
		return false
	}
}

// start starts the process and enters it into the group, unless the group is
// closed already.
func (c *child) start() (*exec.Cmd, error) {
	// The children are stopped by Close, by name and in their own time; no
	// context ends them.
	cmd := exec.CommandContext(context.Background(), c.spec.Path)
	cmd.Args = c.spec.Args
	cmd.Env = c.spec.Env
	cmd.Stdout, cmd.Stderr = c.lines, c.lines
	cmd.SysProcAttr = ownGroup()
	// A grandchild that holds the pipe must not hold up the end.
	cmd.WaitDelay = time.Second
	c.group.mu.Lock()
	defer c.group.mu.Unlock()
	select {
	case <-c.group.closed:
		return nil, fmt.Errorf("the group is closed")
	default:
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c.group.running[c.spec.Name] = cmd.Process
	return cmd, nil
}

// outlive waits for the end of the process and tells of both ends of its life.
func (c *child) outlive(cmd *exec.Cmd) Event {
	c.group.tell(Event{Name: c.spec.Name, PID: cmd.Process.Pid, Started: true})
	err := cmd.Wait()
	c.group.mu.Lock()
	delete(c.group.running, c.spec.Name)
	c.group.mu.Unlock()
	cause := "exit status 0"
	if err != nil {
		cause = err.Error()
	}
	return Event{
		Name: c.spec.Name, PID: cmd.Process.Pid,
		Code: cmd.ProcessState.ExitCode(), Cause: cause, LastLine: c.lines.last(),
	}
}
