package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

// terminal is a command that runs on.
type terminal struct {
	cmd    *exec.Cmd
	output string
}

// background starts a command that runs on, and waits until it has printed or
// logged something.
func (d *document) background(command, until string) result {
	d.t.Helper()
	d.started++
	output := filepath.Join(d.dir, fmt.Sprintf("terminal%d", d.started))
	cmd := exec.CommandContext(d.t.Context(), "sh", "-c", "exec "+command+" >"+output+" 2>"+output+".log")
	cmd.Dir, cmd.Env = d.dir, d.env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.running = append(d.running, &terminal{cmd: cmd, output: output})
	if !eventually(func() bool { return strings.Contains(readIfAny(output)+readIfAny(output+".log"), until) }) {
		d.t.Fatalf("%s: no %q in\n%s\n%s", command, until, readIfAny(output), readIfAny(output+".log"))
	}
	return result{text: readIfAny(output)}
}

// interrupt is Ctrl-C in every terminal where something runs: it must end
// within ten seconds, and well. A node that was removed ends by itself.
func (d *document) interrupt() {
	d.t.Helper()
	began := time.Now()
	for _, r := range d.running {
		if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
			d.t.Errorf("interrupt %s: %v", r.cmd.Args[2], err)
		}
	}
	for _, r := range d.running {
		err := r.cmd.Wait()
		if strings.Contains(readIfAny(r.output+".log"), "this node was removed") && exitCode(err) == exit.Removed {
			continue
		}
		if err != nil {
			d.t.Errorf("%s: %v\n%s", r.cmd.Args[2], err, readIfAny(r.output+".log"))
		}
	}
	if took := time.Since(began); len(d.running) > 0 && took > 10*time.Second {
		d.t.Errorf("Ctrl-C took %s, at most 10s", took)
	}
	d.running = nil
}
