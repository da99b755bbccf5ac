package languages_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/quorlease/quorlease/bench"
)

// adapter drives a client of some language.
type adapter interface {
	// do does one thing, and returns the answer.
	do(request map[string]any) (map[string]any, error)
	close() error
}

// answerWithin is how long an adapter may take for one answer.
const answerWithin = 20 * time.Second

// process is an adapter that is a program.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	log *bench.Printed
}

func startAdapter(env []string, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), log: &bench.Printed{}}
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), env...), p.log
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

func (p *process) do(request map[string]any) (map[string]any, error) {
	line, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	timer := time.AfterFunc(answerWithin, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("tell the adapter: %w\n%s", err, p.log)
	}
	line, err = p.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("hear from the adapter: %w\n%s", err, p.log)
	}
	var answer map[string]any
	if err := json.Unmarshal(line, &answer); err != nil {
		return nil, fmt.Errorf("hear from the adapter: %w: %s", err, line)
	}
	return answer, nil
}

// close lets it end by itself, which it has to do without a word of complaint.
func (p *process) close() error {
	_ = p.in.Close()
	timer := time.AfterFunc(answerWithin, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	err := p.cmd.Wait()
	if said := p.log.String(); said != "" {
		err = errors.Join(err, fmt.Errorf("it complains: %s", said))
	}
	return err
}
