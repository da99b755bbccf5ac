package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// lineWait is how long a child may take to say where it listens.
const lineWait = 10 * time.Second

// Child is one process beside the nodes that says on its first line of standard
// output where it listens.
type Child struct {
	cmd     *exec.Cmd
	address string
}

// StartChild starts a program and waits for its first line. Close ends it.
func StartChild(log io.Writer, program string, args ...string) (*Child, error) {
	cmd := exec.Command(program, args...) //nolint:noctx // it lives until Close
	cmd.SysProcAttr, cmd.Stderr = ownGroup(), log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	if err := startPinned(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	c := &Child{cmd: cmd}
	// Killing it ends the read.
	timer := time.AfterFunc(lineWait, func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	timer.Stop()
	c.address = strings.TrimSpace(line)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s %s says no address: %w", program, strings.Join(args, " "), err), c.Close())
	}
	return c, nil
}

// Address is where it listens.
func (c *Child) Address() string { return c.address }

// CPU is the processor time that it has used, to 10 ms.
func (c *Child) CPU() (time.Duration, error) { return cpuOf(c.cmd.Process.Pid) }

// Close kills it and waits until it is gone.
func (c *Child) Close() error {
	if c.cmd.ProcessState != nil {
		return nil
	}
	_ = c.cmd.Process.Kill()
	// It was killed: that it ended by a signal is no news.
	_ = c.cmd.Wait()
	return nil
}
