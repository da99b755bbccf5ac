package who

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/quorlease/quorlease/client/gateway/attempt"
)

// Book has the clients of a gateway. It does not change: where the configuration does,
// there is a new one.
type Book struct {
	byKey  map[digest]*client
	byName map[string]*client
	// stranger is for those that are not identified.
	stranger client

	loopback                        bool
	unidentified, unnamed, unmarked Mode
	markers                         *attempt.Reader
	name, class, tenant             string
	origin                          *http.CrossOriginProtection
}

// client is one as it is kept.
type client struct {
	name, tenant string
	classes      []string
	// free: classes that are not among these may be used, too.
	free     bool
	unmarked Mode
	// may and tenants are the names of those for whom it may speak.
	may, tenants map[string]bool
	any          bool
}

// speaksFor says whether the key of a client is good for another one.
func (c *client) speaksFor(other *client) bool {
	return c == other || c.may[other.name] || c.tenants[other.tenant]
}

// New returns a book. The error names everything that is wrong, by its field and value; of
// a key's hash it has the first digits, and of what is none nothing.
func New(config Config) (*Book, error) {
	if err := config.defaults(); err != nil {
		return nil, err
	}
	if err := config.validate(); err != nil {
		return nil, err
	}
	b := &Book{
		byKey: map[digest]*client{}, byName: map[string]*client{},
		stranger: client{
			name: Unidentified, tenant: Unidentified,
			classes: slices.Clone(config.Classes), unmarked: config.Unmarked,
		},
		loopback: config.Loopback, origin: http.NewCrossOriginProtection(),
		unidentified: config.Unidentified, unnamed: config.Unnamed, unmarked: config.Unmarked,
		markers: config.Markers, name: config.Name, class: config.Class, tenant: config.Tenant,
	}
	var problems wrong
	for i := range config.Clients {
		b.enter(&config.Clients[i], &problems, clientField(i, config.Clients[i].Name))
	}
	b.relate(config.Clients, &problems)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return b, nil
}

// enter adds one client.
func (b *Book) enter(from *Client, problems *wrong, at string) {
	c := &client{
		name: from.Name, tenant: from.Tenant, classes: slices.Clone(from.Classes),
		unmarked: from.Unmarked.or(b.unmarked), may: set(from.May), tenants: set(from.Tenants), any: from.Any,
	}
	if b.byName[c.name] != nil {
		problems.add(at+"name", "is another client's, too")
		return
	}
	b.byName[c.name] = c
	for i, text := range from.Keys {
		field := fmt.Sprintf("%skeys[%d]", at, i)
		sum, problem := readHash(text)
		if other := b.byKey[sum]; problem == "" && other != nil {
			problem = fmt.Sprintf("%x… is a key of %.40q already", sum[:4], other.name)
		}
		problems.add(field, problem)
		if problem == "" {
			b.byKey[sum] = c
		}
	}
}

func set(names []string) map[string]bool {
	if len(names) == 0 {
		return nil
	}
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}

// relate checks what clients are to one another.
func (b *Book) relate(clients []Client, problems *wrong) {
	tenants, spoken := map[string]bool{}, map[string]bool{}
	for i := range clients {
		tenants[clients[i].Tenant] = true
	}
	var open *Client
	for i := range clients {
		c, at := &clients[i], clientField(i, clients[i].Name)
		for j, name := range c.May {
			if b.byName[name] == nil {
				problems.add(fmt.Sprintf("%smay[%d]", at, j), fmt.Sprintf("%.40q is no configured client", name))
			}
			spoken[name] = true
		}
		for j, tenant := range c.Tenants {
			if !tenants[tenant] {
				problems.add(fmt.Sprintf("%stenants[%d]", at, j), fmt.Sprintf("%.40q has no configured client", tenant))
			}
		}
		speaks := c.Any || len(c.May) > 0 || len(c.Tenants) > 0
		switch {
		case speaks && len(c.Keys) == 0:
			problems.add(at+"keys", "none, and it may speak for others: that needs a key")
		case c.Any && open == nil:
			open = c
		case c.Any && open.Tenant != c.Tenant:
			problems.add(at+"any", fmt.Sprintf("true, as for %.40q of another tenant, %.40q", open.Name, open.Tenant))
		}
	}
	b.reach(clients, spoken, problems)
}

// reach finds the clients as whom nobody could ask.
func (b *Book) reach(clients []Client, spoken map[string]bool, problems *wrong) {
	tenants := map[string]bool{}
	for i := range clients {
		for _, tenant := range clients[i].Tenants {
			tenants[tenant] = true
		}
	}
	for i := range clients {
		if c := &clients[i]; len(c.Keys) == 0 && !spoken[c.Name] && !tenants[c.Tenant] {
			problems.add(clientField(i, c.Name)+"keys", "none, and no other client may speak for it: nobody could ask as it")
		}
	}
}

// Headers are those that are meant for the gateway and for nobody behind it: in which a
// request says its client, tenant and class.
func (b *Book) Headers() []string { return []string{b.name, b.tenant, b.class} }
