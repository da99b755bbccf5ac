package share

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ErrUnavailable: this machine, or this user, has no control group for processor time.
var ErrUnavailable = errors.New("no control group for processor time can be made")

// Whole is a processor, in hundredths of a percent.
const Whole = 10_000

// Mount is where the kernel's groups are.
const Mount = "/sys/fs/cgroup"

// Where groups of the first version that bound processor time lie below the mount; of
// the second version they lie at the mount itself.
var firsts = []string{"cpu", "cpu,cpuacct", "cpuacct,cpu"}

// prefix begins the name of every group that is made here; the process that made it
// follows.
const prefix = "quorlease-share-"

// Groups makes groups. It is for one goroutine.
type Groups struct {
	dir    string
	second bool
	made   []*Group
	count  int
}

// Group is one control group.
type Group struct {
	dir    string
	second bool
}

// Open finds out whether groups can be made below mount, and removes what a run that
// was killed has left there. The error is ErrUnavailable, and says why.
func Open(mount string) (*Groups, error) {
	var why []string
	for _, name := range append(firsts, "") {
		g := &Groups{dir: filepath.Join(mount, name), second: name == ""}
		if _, err := os.Stat(filepath.Join(g.dir, procs)); err != nil {
			if name == "" && len(why) == 0 {
				why = append(why, err.Error())
			}
			continue
		}
		g.sweep()
		if g.second {
			// It may be on already, and may be refused where it is: making a group says.
			_ = write(filepath.Join(g.dir, "cgroup.subtree_control"), "+cpu")
		}
		one, err := g.Add()
		if err == nil {
			err = one.Bound(Whole)
		}
		if closed := g.Close(); err == nil {
			err = closed
		}
		if err == nil {
			return g, nil
		}
		why = append(why, err.Error())
	}
	return nil, fmt.Errorf("%w: %s", ErrUnavailable, strings.Join(why, "; "))
}

// procs is the file that lists a group's processes, and takes new ones.
const procs = "cgroup.procs"

// sweep removes groups whose maker is gone. A group with processes can't be removed.
func (g *Groups) sweep() {
	left, err := filepath.Glob(filepath.Join(g.dir, prefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		maker, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if _, err := os.Stat(filepath.Join("/proc", maker)); errors.Is(err, os.ErrNotExist) {
			// It is another's leftover: that it stays is no harm to this run.
			_ = os.Remove(dir)
		}
	}
}

// Add makes a group that bounds nothing yet.
func (g *Groups) Add() (*Group, error) {
	g.count++
	one := &Group{second: g.second, dir: filepath.Join(g.dir, fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), g.count))}
	if err := os.Mkdir(one.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a control group: %w", err)
	}
	g.made = append(g.made, one)
	return one, nil
}

// Wrap goes in front of a command that is to run in the group, from its first moment.
func (one *Group) Wrap() []string {
	return []string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(one.dir, procs)}
}

// The periods over which processor time is shared out. Short, so that nobody stands
// still for long; a part of one has to be a millisecond at least.
const (
	period     = 20 * time.Millisecond
	longPeriod = 100 * time.Millisecond
	leastQuota = time.Millisecond
)

// quotaOf is how much of which period a share is.
func quotaOf(share int64) (quota, of time.Duration) {
	of = period
	if quota = of * time.Duration(share) / Whole; quota < leastQuota {
		of = longPeriod
		quota = of * time.Duration(share) / Whole
	}
	return max(quota, leastQuota), of
}

// Bound gives the group's processes a share of one processor, in hundredths of a
// percent: from 1 % up, also more than one. 0 is as much as there is.
func (one *Group) Bound(share int64) error {
	quota, of := quotaOf(share)
	amount := strconv.FormatInt(quota.Microseconds(), 10)
	if one.second {
		if share == 0 {
			amount = "max"
		}
		return one.write("cpu.max", fmt.Sprintf("%s %d", amount, of.Microseconds()))
	}
	// Unbounded while the period changes: for a moment the share would be another.
	if err := one.write("cpu.cfs_quota_us", "-1"); err != nil || share == 0 {
		return err
	}
	if err := one.write("cpu.cfs_period_us", strconv.FormatInt(of.Microseconds(), 10)); err != nil {
		return err
	}
	return one.write("cpu.cfs_quota_us", amount)
}

func (one *Group) write(file, text string) error {
	if err := write(filepath.Join(one.dir, file), text); err != nil {
		return fmt.Errorf("bound processor time: %w", err)
	}
	return nil
}

// write writes to a file of the kernel's, which is there already.
func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

const (
	// closeWait is how long the kernel may take to notice that a group's processes
	// have ended.
	closeWait  = 5 * time.Second
	closePause = 20 * time.Millisecond
)

// Close removes all groups. Their processes must have ended.
func (g *Groups) Close() error {
	late := time.NewTimer(closeWait)
	defer late.Stop()
	var errs []error
	for _, one := range g.made {
		errs = append(errs, one.remove(late.C))
	}
	g.made = nil
	return errors.Join(errs...)
}

func (one *Group) remove(late <-chan time.Time) error {
	for {
		err := os.Remove(one.dir)
		if err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		select {
		case <-time.After(closePause):
		case <-late:
			return fmt.Errorf("remove a control group: %w", err)
		}
	}
}
