package front

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorlease/quorlease/bench/bound"
)

// Result is one run. Its JSON is documented in docs/reference/bench.md: a field is added,
// never renamed.
type Result struct {
	Hasty  bool          `json:"hasty"`
	Rounds []Round       `json:"rounds"`
	Storm  *Storm        `json:"storm"`
	Fill   *Fill         `json:"fill"`
	Bounds []bound.Bound `json:"bounds"`
}

// Run measures, and ends every process that it started. A bound that was missed is in the
// result and no error; calls that fail, and refusals where there is enough, are one.
func Run(ctx context.Context, c Config) (r *Result, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p, err := open(ctx, &c)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err = errors.Join(err, p.close()); err != nil {
			r = nil
		}
	}()
	r = &Result{Hasty: c.Hasty}
	if r.Rounds, err = p.cost(ctx); err != nil {
		return nil, err
	}
	if r.Fill, err = p.fill(ctx); err != nil {
		return nil, err
	}
	if r.Storm, err = p.storm(ctx); err != nil {
		return nil, fmt.Errorf("storm: %w", err)
	}
	r.judge()
	return r, nil
}
