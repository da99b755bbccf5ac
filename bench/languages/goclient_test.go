package languages_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/client/session"
)

// goClient is the adapter of the Go client, which speaks gRPC.
type goClient struct {
	client   *client.Client
	leases   map[string]client.Lease
	log      *bench.Printed
	deadline time.Duration
}

// asked is a request as the cases write it.
type asked struct {
	Op, Client, Class, Fallback string
	Endpoints                   []string
	DeadlineMS                  int64  `json:"deadline_ms"`
	LeaseID                     string `json:"lease_id"`
	Charges                     []charge
	Attempt                     uint32
	Track                       *bool
	MaxWaitMS                   int64 `json:"max_wait_ms"`
	Attributes                  map[string]string
	Amounts                     map[string]json.Number
	Used                        []charge
	Progress                    bool
	TTLMS                       int64 `json:"ttl_ms"`
	Sequence                    uint64
}

type charge struct {
	Limit, Key, Dimension string
	Amount                int64 `json:",string"`
	Used                  int64 `json:",string"`
}

func (g *goClient) do(request map[string]any) (map[string]any, error) {
	data, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	var r asked
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("read %s: %w", data, err)
	}
	var answer map[string]any
	switch r.Op {
	case "open":
		err = errors.Join(g.close(), g.open(&r))
		answer = map[string]any{}
	case "acquire":
		answer, err = g.acquire(&r)
	default:
		answer, err = g.operate(&r)
	}
	var bad *client.BadRequestError
	switch {
	case errors.As(err, &bad):
		answer = map[string]any{"error": "BAD_FIELD", "message": err.Error()}
	case errors.Is(err, client.ErrUnanswered):
		answer = map[string]any{"error": "UNANSWERED", "message": err.Error()}
	case err != nil && session.Reason(err) != "":
		answer = map[string]any{"error": session.Reason(err), "message": err.Error()}
	case err != nil:
		return nil, err
	}
	said := g.log.String()
	answer["alerts"] = float64(strings.Count(said, "msg=ALERT"))
	answer["resolved"] = float64(strings.Count(said, "msg=RESOLVED"))
	// As another language's would be read.
	if data, err = json.Marshal(answer); err != nil {
		return nil, err
	}
	return answer, json.Unmarshal(data, &answer)
}

func (g *goClient) open(r *asked) (err error) {
	g.leases, g.log = make(map[string]client.Lease), &bench.Printed{}
	g.deadline = time.Duration(r.DeadlineMS) * time.Millisecond
	config := client.Config{
		Endpoints: r.Endpoints, Client: r.Client, Deadline: g.deadline,
		Logger: slog.New(slog.NewTextHandler(g.log, nil)),
	}
	if r.Fallback == "closed" {
		config.Fallback.Mode = failopen.Closed
	}
	g.client, err = client.New(config)
	return err
}

func (g *goClient) acquire(r *asked) (map[string]any, error) {
	request := client.Request{
		LeaseID: r.LeaseID, Client: r.Client, Class: r.Class, Attempt: r.Attempt, Track: r.Track == nil || *r.Track,
		MaxWait: time.Duration(r.MaxWaitMS) * time.Millisecond, Attributes: r.Attributes,
	}
	for _, c := range r.Charges {
		request.Charges = append(request.Charges, client.Charge{
			Limit: c.Limit, Key: c.Key, Dimension: c.Dimension, Amount: c.Amount,
		})
	}
	for name, text := range r.Amounts {
		n, err := text.Int64()
		if err != nil {
			return nil, err
		}
		if request.Amounts == nil {
			request.Amounts = make(map[string]int64)
		}
		request.Amounts[name] = n
	}
	d, err := g.client.Acquire(context.Background(), request)
	if err != nil {
		return nil, err
	}
	if d.Granted {
		g.leases[d.Lease.ID] = d.Lease
	}
	charges, remaining := make([]string, 0), make([]string, 0)
	for _, c := range d.Lease.Charges {
		charges = append(charges, fmt.Sprintf("%s/%s/%s=%d", c.Limit, c.Key, c.Dimension, c.Amount))
	}
	for _, c := range d.Remaining {
		remaining = append(remaining, strconv.FormatInt(c.Amount, 10))
	}
	warnings := make([]string, 0)
	for _, w := range d.Warnings {
		warnings = append(warnings, w.Reason)
	}
	return map[string]any{
		"granted": d.Granted, "local": d.Source == client.Local, "repeated": d.Repeated, "charges": charges,
		"remaining": remaining, "warnings": warnings, "waited": d.Queue.Waited > 0, "denials": denials(d.Denials),
	}, nil
}

func denials(list []client.Denial) []map[string]any {
	out := make([]map[string]any, 0)
	for _, d := range list {
		one := map[string]any{
			"reason": d.Reason, "limit": d.Limit, "key": d.Key, "dimension": d.Dimension, "never": d.Never,
		}
		if !d.Never {
			one["retry_after_ms"] = d.RetryAfter.Milliseconds()
		}
		out = append(out, one)
	}
	return out
}

func (g *goClient) operate(r *asked) (map[string]any, error) {
	lease, ok := g.leases[r.LeaseID]
	if !ok {
		lease = client.Lease{ID: r.LeaseID, Tracked: true}
	}
	used := make([]client.Usage, len(r.Used))
	for i, u := range r.Used {
		used[i] = client.Usage{Limit: u.Limit, Key: u.Key, Dimension: u.Dimension, Used: u.Used}
	}
	var s *client.Settlement
	var err error
	switch ctx := context.Background(); {
	case r.Op == "settle" && r.Progress:
		s, err = g.client.Progress(ctx, lease, used...)
	case r.Op == "settle":
		s, err = g.client.Settle(ctx, lease, used...)
	case r.Op == "release":
		s, err = g.client.Release(ctx, lease)
	case r.Op == "renew":
		s, err = g.client.Renew(ctx, lease, client.Renewal{
			TTL: time.Duration(r.TTLMS) * time.Millisecond, Sequence: r.Sequence, Used: used,
		})
	default:
		return nil, fmt.Errorf("%q is no operation", r.Op)
	}
	if err != nil {
		return nil, err
	}
	settlements := make([]map[string]any, 0)
	for _, c := range s.Charges {
		settlements = append(settlements, map[string]any{
			"used": strconv.FormatInt(c.Used, 10), "refunded": strconv.FormatInt(c.Refunded, 10),
			"excess": strconv.FormatInt(c.Excess, 10), "written_off": strconv.FormatInt(c.WrittenOff, 10),
		})
	}
	return map[string]any{"state": s.State, "repeated": s.Repeated, "local": s.Local, "settlements": settlements}, nil
}

func (g *goClient) close() error {
	if g.client == nil {
		return nil
	}
	return g.client.Close()
}
