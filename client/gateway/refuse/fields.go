package refuse

import (
	"net/http"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/quorlease/quorlease/client/httpmw"
)

// The RateLimit fields of the IETF's draft (draft-ietf-httpapi-ratelimit-headers),
// lists of RFC 9651.
const (
	fieldPolicy = "Ratelimit-Policy"
	fieldLimit  = "Ratelimit"
)

const (
	// integerMax is the largest integer that a structured field can have.
	integerMax = 999_999_999_999_999
	// requests is the unit that the draft has by default, and slots what it calls
	// concurrent requests. It has none for tokens: what else we count is a unit of our
	// own, with our name before it.
	requests, slots = "requests", "slots"
	unitConcurrent  = "concurrent-requests"
	unitPrefix      = "quorlease-"
)

// SetLimits puts what policies give and have left into the header of an answer, of
// one that passes or of one that does not. They belong in no trailer.
func SetLimits(header http.Header, policies []Policy) { setLimits(header, policies, 0) }

// setLimits leaves out times that are later than the hint: whoever obeys it must
// not be early.
func setLimits(header http.Header, policies []Policy, hint time.Duration) {
	var given, left httpsfv.List
	for i := range policies[:min(len(policies), policiesMax)] {
		p := &policies[i]
		if p.Quota > 0 {
			given = append(given, p.given())
		}
		if p.Known {
			left = append(left, p.left(hint))
		}
	}
	for name, list := range map[string]httpsfv.List{fieldPolicy: given, fieldLimit: left} {
		if value, err := httpsfv.Marshal(list); err == nil && value != "" {
			header.Set(name, value)
		}
	}
}

// given is what a policy gives: "tpm";q=400000;qu="quorlease-tokens";w=60.
func (p *Policy) given() httpsfv.Item {
	item := httpsfv.NewItem(p.Name())
	item.Params.Add("q", min(p.Quota, integerMax))
	item.Params.Add("qu", p.unit())
	if p.Window > 0 {
		item.Params.Add("w", httpmw.Seconds(p.Window))
	}
	return item
}

// left is what a policy has left: "tpm";r=0;t=12.
func (p *Policy) left(hint time.Duration) httpsfv.Item {
	item := httpsfv.NewItem(p.Name())
	item.Params.Add("r", min(max(0, p.Left), integerMax))
	if p.Full > 0 && (hint <= 0 || p.Full <= hint) {
		item.Params.Add("t", httpmw.Seconds(p.Full))
	}
	return item
}

func (p *Policy) unit() string {
	switch p.Dimension {
	case requests, "":
		return requests
	case slots:
		return unitConcurrent
	default:
		return visible(unitPrefix + p.Dimension)
	}
}
