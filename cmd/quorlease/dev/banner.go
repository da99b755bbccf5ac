package dev

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

// banner prints where the nodes are and what to type next. It is the answer of
// `dev`: all that it writes to standard output.
func (d *development) banner(ctx context.Context, leader string) error {
	limits, err := d.listLimits(ctx)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	where := d.layout.dir
	if d.layout.temporary {
		where += ", removed at the end"
	}
	fmt.Fprintf(&out, "%d nodes, leader %s, data in %s\n\n", d.layout.size(), leader, where)
	rows := make([][]string, 0, d.layout.size())
	for _, m := range d.layout.members {
		role := "follower"
		if m.ID == leader {
			role = "leader"
		}
		rows = append(rows, []string{m.ID, show.Number(d.group.PID(m.ID)), role, m.GRPC, m.Peer, m.HTTP})
	}
	show.Table(&out, "NODE PID ROLE GRPC PEER HTTP", rows)
	fmt.Fprintf(&out, "\nIn a second terminal:\n\n")
	d.nextSteps(&out, limits.GetLimits(), leader)
	fmt.Fprintf(&out, "\nCtrl-C stops all of them.\n")
	if _, err := d.options.Stdout.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write what to type next: %w", err)
	}
	return nil
}

// step is one command to type, and what it is for.
type step struct{ command, note string }

// nextSteps writes commands that can be typed as they stand.
func (d *development) nextSteps(out *bytes.Buffer, limits []*quorleasev1.Limit, leader string) {
	program := d.program()
	var steps []step
	if c := suggestion(limits); c != nil {
		name := c.GetLimit()
		if c.GetKey() != "" {
			name += "/" + c.GetKey()
		}
		acquire := fmt.Sprintf("%s acquire %s %s=%d", program, name, c.GetDimension(), c.GetAmount())
		steps = append(steps,
			step{acquire, "GRANTED: all there is"},
			step{acquire, "DENIED, with the reason and retry_after"},
			step{d.curl(c), "the same over HTTP"},
		)
	}
	steps = append(steps,
		step{fmt.Sprintf("kill -9 %d", d.group.PID(leader)), "the leader: another one leads in about a second"},
		step{program + " cluster status", "any node that is left answers"},
	)
	for _, s := range steps {
		fmt.Fprintf(out, "  # %s\n  %s\n", s.note, s.command)
	}
}

// curl is one charge as a request to the first node.
func (d *development) curl(c *quorleasev1.Charge) string {
	fields := fmt.Sprintf(`"limit":%q,`, c.GetLimit())
	if c.GetKey() != "" {
		fields += fmt.Sprintf(`"key":%q,`, c.GetKey())
	}
	return fmt.Sprintf("curl -s http://%s/v1/admission:acquire -H 'content-type: application/json' "+
		`-d '{"charges":[{%s"dimension":%q,"amount":%d}]}'`,
		d.layout.members[0].HTTP, fields, c.GetDimension(), c.GetAmount())
}

// program is how this program is called from the directory it was called from.
func (d *development) program() string {
	call := os.Args[0]
	if executable, err := os.Executable(); err == nil && underGoRun(executable) {
		call = "go run ./cmd/quorlease"
	} else if filepath.Base(call) == call {
		call = "quorlease"
	}
	if slices.Equal(d.layout.endpoints(), d.options.Endpoints) {
		return call
	}
	return call + " --endpoints " + strings.Join(d.layout.endpoints(), ",")
}

// suggestion is a charge that takes all that a full bucket of the first limit
// has, so that the second one like it is denied. Nil: no limit denies anything.
func suggestion(limits []*quorleasev1.Limit) *quorleasev1.Charge {
	for _, l := range limits {
		if l.GetUnlimited() || len(l.GetDimensions()) == 0 {
			continue
		}
		first := l.GetDimensions()[0]
		c := &quorleasev1.Charge{
			Limit: l.GetName(), Dimension: first.GetName(), Amount: effectiveBurst(l, first.GetBurst()),
		}
		if len(l.GetPer()) > 0 {
			c.Key = "team-a"
		}
		if c.GetAmount() > 0 {
			return c
		}
	}
	return nil
}

// effectiveBurst is what the first class can have at once: the burst without
// what is kept for the others.
func effectiveBurst(l *quorleasev1.Limit, burst int64) int64 {
	left := burst
	for i, c := range l.GetClasses() {
		if i > 0 {
			part := c.GetShareBp()
			if c.BurstBp != nil {
				part = c.GetBurstBp()
			}
			// In two steps, so that the largest burst does not overflow.
			left -= burst/10_000*part + burst%10_000*part/10_000
		}
	}
	return left
}
