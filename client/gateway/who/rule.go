package who

import (
	"github.com/quorlease/quorlease/client/gateway/refuse"
)

// Rule is something that a request can be refused for. There is a fixed number of them, so
// that they may be labels of a metric.
type Rule string

// The rules.
const (
	// NoCredential: there is no key. (Config.Unidentified).
	NoCredential Rule = "no_credential"
	// UnknownCredential: there are keys, and none is a client's. (Config.Unidentified).
	UnknownCredential Rule = "unknown_credential"
	// NoName: the header that names the client is missing. (Config.Unnamed; on loopback
	// Config.Unidentified).
	NoName Rule = "no_name"
	// NoMarker: nothing says which attempt it is. (Config.Unmarked).
	NoMarker Rule = "no_marker"

	// Those below are always enforced.

	// Repeated: a header that there may be one of is there more than once.
	Repeated Rule = "repeated_header"
	// BadName: a name is too long, or no text.
	BadName Rule = "bad_name"
	// Ambiguous: it has keys of several clients.
	Ambiguous Rule = "ambiguous_credentials"
	// ForeignName: the header names a client for whom the key may not speak, or Unidentified.
	ForeignName Rule = "foreign_name"
	// ForeignTenant: the header names another tenant than the client's.
	ForeignTenant Rule = "foreign_tenant"
	// ForeignClass: the header names a class that the client may not use.
	ForeignClass Rule = "foreign_class"
	// Elsewhere: without configured clients, it does not come from this machine, or not from
	// a program on it.
	Elsewhere Rule = "elsewhere"
)

// said is how a rule refuses. field says that the detail begins with a header's name.
type said struct {
	reason refuse.Reason
	field  bool
	detail string
}

var rules = map[Rule]said{
	NoCredential: {
		refuse.Unidentified, false,
		"It does not say who asks: a key belongs into Authorization (as Bearer), x-api-key or api-key.",
	},
	UnknownCredential: {refuse.Unidentified, false, "Its key is nobody's."},
	NoName:            {refuse.Unidentified, true, "is missing, which says who asks."},
	NoMarker: {
		refuse.Malformed, true,
		"is missing, which says how many retries were made before: 0 for a first attempt.",
	},
	Repeated:      {refuse.Malformed, true, "is there more than once."},
	BadName:       {refuse.Malformed, true, "is not 1 to 256 bytes of UTF-8 without control characters."},
	Ambiguous:     {refuse.Unidentified, false, "Its keys are those of several clients."},
	ForeignName:   {refuse.Forbidden, true, "names a client for whom it may not speak."},
	ForeignTenant: {refuse.Forbidden, true, "names another tenant than the client's."},
	ForeignClass:  {refuse.Forbidden, true, "names a class that this client may not use."},
	Elsewhere: {
		refuse.Unidentified, false,
		"As long as no clients are configured only programs on the gateway's own machine may ask.",
	},
}

// sentence is what a person reads of a rule and a header. It repeats nothing that the
// request said, and does not tell a client that is unknown from one that is foreign.
func (r Rule) sentence(header string) string {
	row := rules[r]
	if !row.field {
		return row.detail
	}
	return "The header " + header + " " + row.detail
}

func (r Rule) refusal(header string) *refuse.Refusal {
	row := rules[r]
	no := &refuse.Refusal{Reason: row.reason, Detail: r.sentence(header)}
	if row.field {
		no.Param = header
	}
	return no
}
