package bench

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Program says how to start a process of somebody else's.
type Program struct {
	Path string
	Args []string
	// Env is added to this process's own.
	Env []string
	// Dir is its working directory.
	Dir string
	// Log receives what it prints. Nil: discarded.
	Log io.Writer
}

// Process is a child that ends with this process or before. Its methods may be
// called from several goroutines.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// StartProcess starts a program and does not wait for it to be of use.
func StartProcess(p Program) (*Process, error) {
	cmd := exec.Command(p.Path, p.Args...) //nolint:noctx // it lives until Kill
	cmd.Dir, cmd.SysProcAttr = p.Dir, ownGroup()
	cmd.Env = append(os.Environ(), p.Env...)
	if p.Log != nil {
		// One writer for both, so that nobody writes at the same time.
		log := &lockedWriter{w: p.Log}
		cmd.Stdout, cmd.Stderr = log, log
	}
	if err := startPinned(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Path, err)
	}
	c := &Process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		// How it ended is of no interest: most ends here are violent.
		_ = cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

// CPU is the processor time that it and its children that have ended have used, to 10 ms.
func (c *Process) CPU() (time.Duration, error) { return cpuOf(c.cmd.Process.Pid) }

// Ended is closed when it has ended.
func (c *Process) Ended() <-chan struct{} { return c.ended }

// Kill sends it and its children SIGKILL and waits until it is gone. It may be
// called again.
func (c *Process) Kill() {
	select {
	case <-c.ended:
		return
	default:
	}
	// It may have ended in between: then there is nothing to do.
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	<-c.ended
}

// Printed is what processes have printed. Its zero value is ready, and its methods may be
// called from several goroutines.
type Printed struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write adds to it, and never fails.
func (p *Printed) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(text)
}

// String is all of it so far.
func (p *Printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}
