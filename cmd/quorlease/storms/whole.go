package storms

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/gateways"
	"github.com/quorlease/quorlease/bench/gateways/bubble"
	"github.com/quorlease/quorlease/bench/storm"
	"github.com/quorlease/quorlease/cluster/disk"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

// atOnceMost is how many storms with whole gateways are played at a time: each keeps a
// processor busy.
const atOnceMost = 4

// whole plays storms with whole gateways, each in a process of its own.
func (o *Options) whole(ctx context.Context, chosen []gateways.Storm) ([]*storm.Outcome, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	outcomes, errs := make([]*storm.Outcome, len(chosen)), make([]error, len(chosen))
	free := make(chan struct{}, min(atOnceMost, runtime.NumCPU()))
	var players sync.WaitGroup
	var progress sync.Mutex
	for i := range chosen {
		players.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			if ctx.Err() != nil {
				errs[i] = ctx.Err()
				return
			}
			progress.Lock()
			fmt.Fprintf(o.Progress, "with whole gateways, %d of %d: %s\n", i+1, len(chosen), chosen[i].Slug)
			progress.Unlock()
			if outcomes[i], errs[i] = o.child(ctx, chosen[i].Slug); errs[i] != nil {
				stop()
			}
		})
	}
	players.Wait()
	return outcomes, errors.Join(errs...)
}

// child plays one storm in a process of its own, which ends with this one, and leaves
// nothing behind.
func (o *Options) child(ctx context.Context, slug string) (outcome *storm.Outcome, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	dir, err := os.MkdirTemp(memory(), "quorlease-storm-")
	if err != nil {
		return nil, fmt.Errorf("make a place for nodes: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var log bytes.Buffer
	process, err := bench.StartProcess(bench.Program{
		Path: program, Log: &log, Env: []string{"TMPDIR=" + dir},
		Args: []string{"bench", "storm", "--scenario", slug, "--seed", strconv.FormatUint(o.Seed, 10), "--bubble", dir},
	})
	if err != nil {
		return nil, err
	}
	defer process.Kill()
	select {
	case <-process.Ended():
	case <-ctx.Done():
		return nil, fmt.Errorf("stopped while %s was played: %w", slug, ctx.Err())
	}
	data, err := os.ReadFile(filepath.Join(dir, bubble.OutcomeFile))
	if err != nil {
		return nil, &exit.Error{Code: exit.Failed, Err: fmt.Errorf("play %s: %s", slug, bytes.TrimSpace(log.Bytes()))}
	}
	outcome = &storm.Outcome{}
	if err := json.Unmarshal(data, outcome); err != nil {
		return nil, fmt.Errorf("read what %s came to: %w", slug, err)
	}
	return outcome, nil
}

// memory is where files are in memory, where there is such a place with a gigabyte to spare:
// a bubble's clock stands still while a disk syncs. Empty: where files are that do not last.
func memory() string {
	const place, room = "/dev/shm", 1 << 30
	if there, err := disk.Statfs(place); err != nil || there.Free < room {
		return ""
	}
	return place
}
