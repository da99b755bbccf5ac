package who

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/names"
)

// local is the client that a program on this machine says it is.
func (l *look) local() (*client, *refuse.Refusal) {
	if !isLocal(l.request) || l.origin.Check(l.request) != nil {
		return nil, l.finds(Elsewhere, Enforce, "")
	}
	name, no := l.one(l.name)
	if no != nil {
		return nil, no
	}
	if name == "" {
		return l.unknown(NoName)
	}
	tenant, no := l.one(l.tenant)
	if no != nil {
		return nil, no
	}
	if tenant == "" {
		tenant = name
	}
	switch {
	case names.ValueProblem(name) != "":
		return nil, l.finds(BadName, Enforce, l.name)
	case names.ValueProblem(tenant) != "":
		return nil, l.finds(BadName, Enforce, l.tenant)
	case name == Unidentified:
		return nil, l.finds(ForeignName, Enforce, l.name)
	case tenant == Unidentified:
		return nil, l.finds(ForeignTenant, Enforce, l.tenant)
	}
	return &client{
		name: name, tenant: tenant, unmarked: l.unmarked,
		classes: l.stranger.classes, free: len(l.stranger.classes) == 0,
	}, nil
}

// isLocal says whether a connection comes from this machine, and to a number or localhost. A
// page can have its own name made to point here, and then ask as if it were at home; what it
// can't do is to change what the browser says about where it asks.
func isLocal(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().IsLoopback() {
		return false
	}
	if _, err := netip.ParseAddrPort(r.Host); err == nil {
		return true
	}
	if _, err := netip.ParseAddr(strings.Trim(r.Host, "[]")); err == nil {
		return true
	}
	name, _, _ := strings.Cut(r.Host, ":")
	return strings.EqualFold(strings.TrimSuffix(name, "."), "localhost")
}
