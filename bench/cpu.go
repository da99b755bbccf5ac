package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// userHz is how many clock ticks a second the kernel reports CPU time in. It is
// 100 on every Linux that Go runs on.
const userHz = 100

// CPU is the processor time that node i has used, in user and system mode, to
// 10 ms, with that of its children that have ended. With Wrap it is the wrapper's.
func (n *Nodes) CPU(i int) (time.Duration, error) { return cpuOf(n.Pid(i)) }

func cpuOf(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	// The name, in parentheses, may hold anything; the fields after it don't.
	rest := string(data[strings.LastIndexByte(string(data), ')')+1:])
	fields := strings.Fields(rest)
	// Counted from the field after the name. A server that writes its file anew in a child
	// did that for what it was asked for.
	const utime, stime, childrenUtime, childrenStime = 11, 12, 13, 14
	ticks := 0
	for _, field := range []int{utime, stime, childrenUtime, childrenStime} {
		if field >= len(fields) {
			return 0, fmt.Errorf("read processor time: %d fields, want more than %d", len(fields), field)
		}
		value, err := strconv.Atoi(fields[field])
		if err != nil {
			return 0, fmt.Errorf("read processor time: %w", err)
		}
		ticks += value
	}
	return time.Duration(ticks) * time.Second / userHz, nil
}
