package who

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/names"
)

// Unidentified is the client and the tenant of all that are let in without being known
// (Config.Unidentified). Nobody can have that name.
const Unidentified = "unidentified"

// The headers, unless configured otherwise.
const (
	NameHeader   = "X-Client-Id"
	ClassHeader  = "X-Quorlease-Class"
	TenantHeader = "X-Quorlease-Tenant"
)

// Bounds of the configuration.
const (
	clientsMax = 16_384
	keysMax    = 16
	classesMax = 64
	headerMax  = 128
)

// Client is one client that a gateway knows.
type Client struct {
	// Name is what it is called in counters and alerts, 1 to 256 bytes.
	Name string
	// Tenant is whose it is, 1 to 256 bytes: whose limits count, and among whose requests
	// answers are shared. Several clients may be of one tenant.
	Tenant string
	// Classes are the priority classes that it may use, at most 64, by the rules for names of
	// classes. The first one is that of a request that asks for none. Empty: none may be
	// asked for, and each limit's first one counts.
	Classes []string
	// Keys are the SHA-256 of its keys in hex (HashKey), at most 16: with two of them a key
	// is changed without a moment at which neither works. Empty: it is known only through
	// others that speak for it, of which there has to be one.
	//
	// A key is to be drawn at random, of 128 bits at least. One that a person thinks up is
	// found from its hash by trying.
	Keys []string
	// May are the names of configured clients that it may speak for: with the header a
	// request of its is theirs, with their tenant and classes.
	May []string
	// Tenants are tenants for all of whose configured clients it may speak likewise. It may
	// not for those of its own, unless that one is among them.
	Tenants []string
	// Any: it may speak for whatever name no configured client has, too. Such clients are of
	// its own tenant and have its classes. All that have Any have to be of one tenant: two
	// tenants could otherwise use one name, and use up one another's budget of retries.
	Any bool
	// Unmarked is Config.Unmarked for this client, where it is not Default.
	Unmarked Mode
}

// Config says who may ask, and how a client says who it is.
type Config struct {
	// Clients are those that are known, at most 16,384.
	Clients []Client
	// Loopback is for a gateway without Clients: the header that names the client is
	// believed, for programs on this machine. That is a connection from a loopback address
	// to an address or localhost, and no page of another origin in a browser. A
	// proxy on this machine is such a program, whoever is behind it.
	Loopback bool
	// Classes are as Client.Classes, for clients that are not configured: on loopback, and
	// those that are not identified. Where it is empty, a client on loopback may ask for any.
	Classes []string

	// Unidentified is for requests that do not say who asks: no key that is known, on
	// loopback no name. In Shadow and Warn they pass as one client of one tenant, both called
	// Unidentified, whatever name they give. Whoever can reach the gateway may then ask.
	// Default: Enforce. It can't be Off.
	Unidentified Mode
	// Unnamed is for requests with a key that do not name their client in the header beside
	// it. Default: Off, since the key says it.
	Unnamed Mode
	// Unmarked is for requests in which no retry marker is there and valid, except for GET,
	// HEAD and OPTIONS, which are no work (S1-46). Default: Off.
	Unmarked Mode
	// Markers reads retry markers. Nil: one for attempt.Markers().
	Markers *attempt.Reader

	// Name, Class and Tenant are the headers in which a request says which client, class and
	// tenant it means, in any case, at most 128 bytes. Defaults: NameHeader, ClassHeader and
	// TenantHeader. The tenant is never taken from the header, except on loopback: it has to
	// be the client's, where it is there. On loopback it is as the client, where it is not.
	Name, Class, Tenant string
}

func (c *Config) defaults() error {
	c.Name = cmp.Or(c.Name, NameHeader)
	c.Class = cmp.Or(c.Class, ClassHeader)
	c.Tenant = cmp.Or(c.Tenant, TenantHeader)
	c.Unidentified = c.Unidentified.or(Enforce)
	c.Unnamed = c.Unnamed.or(Off)
	c.Unmarked = c.Unmarked.or(Off)
	if c.Markers != nil {
		return nil
	}
	markers, err := attempt.NewReader(nil)
	c.Markers = markers
	return err
}

// validate names all problems. Those between clients are the Book's to find.
func (c *Config) validate() error {
	var problems wrong
	problems.add("unidentified", c.Unidentified.problem(Shadow))
	problems.add("unnamed", c.Unnamed.problem(Off))
	problems.add("unmarked", c.Unmarked.problem(Off))
	problems.classes("classes", c.Classes)
	c.validateHeaders(&problems)
	switch n := len(c.Clients); {
	case n > clientsMax:
		problems.add("clients", fmt.Sprintf("%d, at most %d", n, clientsMax))
		return errors.Join(problems...)
	case n > 0 && c.Loopback:
		problems.add("loopback", fmt.Sprintf("true, and %d clients: it is for a gateway without", n))
	case n == 0 && !c.Loopback && c.Unidentified == Enforce:
		problems.add("clients", "none, and loopback is off: nobody could ask")
	}
	for i := range c.Clients {
		c.Clients[i].validate(&problems, clientField(i, c.Clients[i].Name))
	}
	return errors.Join(problems...)
}

func (c *Config) validateHeaders(problems *wrong) {
	used := map[string]string{}
	for _, name := range credentials {
		used[name] = "keys"
	}
	for _, h := range []struct {
		field string
		name  *string
	}{{"name", &c.Name}, {"class", &c.Class}, {"tenant", &c.Tenant}} {
		field := h.field + " header"
		if !isHeader(*h.name) {
			problems.add(field, fmt.Sprintf("%.40q is not 1 to %d of a-z, A-Z, 0-9, - and _", *h.name, headerMax))
			continue
		}
		*h.name = http.CanonicalHeaderKey(*h.name)
		if other, taken := used[*h.name]; taken {
			problems.add(field, fmt.Sprintf("%s is for the %s", *h.name, other))
		}
		used[*h.name] = h.field
	}
}

func isHeader(name string) bool {
	return name != "" && len(name) <= headerMax && !strings.ContainsFunc(name, func(r rune) bool {
		lower := r | 0x20
		return (lower < 'a' || lower > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

func (c *Client) validate(problems *wrong, at string) {
	problems.add(at+"name", nameProblem(c.Name))
	problems.add(at+"tenant", nameProblem(c.Tenant))
	problems.classes(at+"classes", c.Classes)
	problems.add(at+"unmarked", c.Unmarked.problem(Off))
	if n := len(c.Keys); n > keysMax {
		problems.add(at+"keys", fmt.Sprintf("%d, at most %d", n, keysMax))
	}
}

// nameProblem is what is wrong with the name of a client or a tenant.
func nameProblem(name string) string {
	if name == Unidentified {
		return fmt.Sprintf("%q is for those that are not known", name)
	}
	return names.ValueProblem(name)
}

// wrong are the problems that were found.
type wrong []error

func (w *wrong) add(field, problem string) {
	if problem != "" {
		*w = append(*w, fmt.Errorf("%s: %s", field, problem))
	}
}

func (w *wrong) classes(field string, classes []string) {
	if n := len(classes); n > classesMax {
		w.add(field, fmt.Sprintf("%d, at most %d", n, classesMax))
	}
	for i, class := range classes[:min(len(classes), classesMax)] {
		at := fmt.Sprintf("%s[%d]", field, i)
		w.add(at, names.DimensionProblem(class))
		if slices.Contains(classes[:i], class) {
			w.add(at, fmt.Sprintf("%q is there twice", class))
		}
	}
}

// clientField is how a problem of a client begins.
func clientField(i int, name string) string { return fmt.Sprintf("clients[%d] %.40q: ", i, name) }
