package contention

import (
	"context"

	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/client"
)

// throughClient asks as users do: one client for all callers, which finds the
// nodes, outlives elections, and decides by itself where nobody answers.
func throughClient(c *Config, endpoints []string) (*authority, error) {
	one, err := client.New(client.Config{Endpoints: endpoints, Client: clientName, Deadline: c.Timeout})
	if err != nil {
		return nil, err
	}
	keys := keyNames(c.Keys)
	return &authority{
		newAsker: func() load.Asker { return &clientAsker{one, keys} },
		end:      one.Close,
	}, nil
}

// clientAsker is one caller of the client.
type clientAsker struct {
	client *client.Client
	keys   []string
}

func (a *clientAsker) Ask(ctx context.Context, key int) (load.Answer, error) {
	decision, err := a.client.Acquire(ctx, client.Request{
		Charges: []client.Charge{{Limit: limitName, Key: a.keys[key], Dimension: dimension, Amount: 1}},
	})
	if err != nil {
		return load.Answer{}, err
	}
	return load.Answer{Granted: decision.Granted, Local: decision.Source == client.Local}, nil
}
