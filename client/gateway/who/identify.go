package who

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/names"
)

// Identity is who asks. What it names is text of 1 to 256 bytes.
type Identity struct {
	// Client is whose counters and retry budget count, and Tenant whose limits.
	Client, Tenant string
	// Class is the priority class, empty for each limit's first one.
	Class string
	// Speaker is the client with whose key another asks for this one. Empty: none does.
	Speaker string
	// Keyed: a key that is the gateway's to know said so. The Credentials of such a request
	// must not be forwarded.
	Keyed bool
	// Found is what the rules found, at most 2, to be counted. Of a refused request the last
	// one is why, and the Identity has nothing else; where one passes, each would have
	// refused it.
	Found []Rule
	// Warnings are sentences of those findings that the client is to be told, fit for a
	// header.
	Warnings []string
}

// Shares is the tenant among whose requests an answer may be shared. It is empty for all
// that are not identified: they have one name, and are not one tenant.
func (id *Identity) Shares() string {
	if id.Tenant == Unidentified {
		return ""
	}
	return id.Tenant
}

// Identify says who sent a request, or why it is refused. It does not read the body.
func (b *Book) Identify(r *http.Request) (Identity, *refuse.Refusal) {
	l := look{Book: b, request: r}
	if no := l.identify(); no != nil {
		return Identity{Found: l.id.Found}, no
	}
	return l.id, nil
}

// look is one request being identified.
type look struct {
	*Book
	request *http.Request
	id      Identity
}

func (l *look) identify() *refuse.Refusal {
	who, no := l.client()
	if no != nil {
		return no
	}
	l.id.Client, l.id.Tenant = who.name, who.tenant
	if no := l.agreesOnTenant(who); no != nil {
		return no
	}
	if no := l.choose(who); no != nil {
		return no
	}
	return l.checkMarker(who)
}

// finds is what becomes of a request that a rule finds in a mode.
func (l *look) finds(rule Rule, mode Mode, header string) *refuse.Refusal {
	if mode == Off {
		return nil
	}
	l.id.Found = append(l.id.Found, rule)
	header = strings.ToLower(header)
	if mode == Enforce {
		return rule.refusal(header)
	}
	if mode == Warn {
		l.id.Warnings = append(l.id.Warnings, string(rule)+": "+rule.sentence(header)+" This will be refused.")
	}
	return nil
}

// one is the value of a header that there may be one of, without spaces around it. With
// two of them the gateway and whoever stands before or behind it could believe different
// ones.
func (l *look) one(header string) (string, *refuse.Refusal) {
	switch values := l.request.Header[header]; len(values) {
	case 0:
		return "", nil
	case 1:
		return textproto.TrimString(values[0]), nil
	default:
		return "", l.finds(Repeated, Enforce, header)
	}
}

// client is whose counters count.
func (l *look) client() (*client, *refuse.Refusal) {
	if l.loopback {
		return l.local()
	}
	speaker, rule, no := l.speaker()
	if no != nil {
		return nil, no
	}
	if speaker == nil {
		return l.unknown(rule)
	}
	l.id.Keyed = true
	name, no := l.one(l.name)
	if no != nil {
		return nil, no
	}
	if name == "" {
		return speaker, l.finds(NoName, l.unnamed, l.name)
	}
	return l.named(speaker, name)
}

// speaker is the client whose key a request has. Keys that are nobody's beside it do not
// matter: some clients send the provider's along. Where there is none, rule says why.
func (l *look) speaker() (speaker *client, rule Rule, no *refuse.Refusal) {
	rule = NoCredential
	for _, header := range credentials {
		value, no := l.one(header)
		if no != nil {
			return nil, "", no
		}
		key := keyIn(header, value)
		if key == "" {
			continue
		}
		rule = UnknownCredential
		switch owner := l.owner(key); {
		case owner == nil || owner == speaker:
		case speaker != nil:
			return nil, "", l.finds(Ambiguous, Enforce, header)
		default:
			speaker = owner
		}
	}
	return speaker, rule, nil
}

// unknown is who asks where nothing says who it is.
func (l *look) unknown(rule Rule) (*client, *refuse.Refusal) {
	if no := l.finds(rule, l.unidentified, l.name); no != nil {
		return nil, no
	}
	// What it calls itself counts for nothing, and is to be read all the same.
	if _, no := l.one(l.name); no != nil {
		return nil, no
	}
	return &l.stranger, nil
}

// named is the client that a header names, if the speaker may speak for it.
func (l *look) named(speaker *client, name string) (*client, *refuse.Refusal) {
	if names.ValueProblem(name) != "" {
		return nil, l.finds(BadName, Enforce, l.name)
	}
	who := l.byName[name]
	switch {
	case who == nil && speaker.any && name != Unidentified:
		who = &client{name: name, tenant: speaker.tenant, classes: speaker.classes, unmarked: speaker.unmarked}
	case who == nil || !speaker.speaksFor(who):
		return nil, l.finds(ForeignName, Enforce, l.name)
	}
	if who != speaker {
		l.id.Speaker = speaker.name
	}
	return who, nil
}

// agreesOnTenant refuses what names another tenant than its own. What is believed of a
// program on this machine has made a tenant of it already.
func (l *look) agreesOnTenant(who *client) *refuse.Refusal {
	tenant, no := l.one(l.tenant)
	if no == nil && tenant != "" && tenant != who.tenant {
		no = l.finds(ForeignTenant, Enforce, l.tenant)
	}
	return no
}

// choose is the class that a request is of.
func (l *look) choose(who *client) *refuse.Refusal {
	class, no := l.one(l.class)
	switch {
	case no != nil:
		return no
	case class == "" && len(who.classes) > 0:
		l.id.Class = who.classes[0]
	case class == "":
	case slices.Contains(who.classes, class), who.free && names.DimensionProblem(class) == "":
		l.id.Class = class
	default:
		return l.finds(ForeignClass, Enforce, l.class)
	}
	return nil
}

// checkMarker looks for a retry marker (S1-46).
func (l *look) checkMarker(who *client) *refuse.Refusal {
	if who.unmarked == Off {
		return nil
	}
	switch l.request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil
	}
	if l.markers.Read(l.request.Header).Marked {
		return nil
	}
	return l.finds(NoMarker, who.unmarked, markerHeader)
}

// markerHeader is the marker that a client is told to send.
const markerHeader = "X-Retry-Attempt"
