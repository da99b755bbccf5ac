// Package check says whether names, numbers and records that came from outside may
// be kept (G10). Operations are checked by it, and so are snapshots, which may come
// from anywhere. It is pure.
package check

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/retry"
	"github.com/quorlease/quorlease/fsm/window"
)

// Bounds of what the state holds.
const (
	// MaxKey is the longest key, in bytes.
	MaxKey = 512
	// MaxText is the longest of the other names that people choose, in bytes.
	MaxText = 256
	// MaxGrace is for how long slots can outlive their session.
	MaxGrace = time.Hour
	// MaxNodes bounds the members. Consensus gets slow long before.
	MaxNodes = 64
	// LastInstant bounds authority time, 146 years. Up to it any time that
	// follows from now and a configured duration fits an int64.
	LastInstant = bucket.Instant(1 << 62)

	maxKeys    = 100_000_000
	maxLeases  = 100_000_000
	maxLimits  = 20_000
	maxClients = 10_000_000

	minWindow = int64(300 * time.Millisecond)
	maxWindow = int64(7 * 24 * time.Hour)
	minPause  = int64(time.Millisecond)
	maxPause  = int64(24 * time.Hour)
)

// FieldError says which field can't be used, and why.
type FieldError = lineage.FieldError

func bad(field, format string, values ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, values...)}
}

// DefaultCaps are the caps until the cluster has formed, and where Form leaves
// one out.
func DefaultCaps() *logv1.Caps {
	return &logv1.Caps{Keys: 1_000_000, Leases: 1_000_000, Limits: 10_000, Clients: 100_000}
}

// Caps fills in what is left out. The error is a *FieldError.
func Caps(caps *logv1.Caps) (*logv1.Caps, error) {
	full := DefaultCaps()
	for _, one := range []struct {
		field string
		given int64
		to    *int64
		most  int64
	}{
		{"caps.keys", caps.GetKeys(), &full.Keys, maxKeys},
		{"caps.leases", caps.GetLeases(), &full.Leases, maxLeases},
		{"caps.limits", caps.GetLimits(), &full.Limits, maxLimits},
		{"caps.clients", caps.GetClients(), &full.Clients, maxClients},
	} {
		if one.given < 0 || one.given > one.most {
			return nil, bad(one.field, "%d: must be from 0 (the default) to %d", one.given, one.most)
		}
		if one.given > 0 {
			*one.to = one.given
		}
	}
	return full, nil
}

// IsClusterID says whether id is 32 lower-case hex digits.
func IsClusterID(id string) bool {
	return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == ""
}

// Text bounds a name that people chose: valid UTF-8 without control
// characters. The error is a *FieldError.
func Text(field, text string, least, most int) error {
	if len(text) < least || len(text) > most {
		return bad(field, "%d bytes: must be from %d to %d", len(text), least, most)
	}
	if !Printable(text) {
		return bad(field, "%q: must be valid UTF-8 without control characters", Clip(text))
	}
	return nil
}

// Printable says that text is valid UTF-8 without control characters. It is most
// often ASCII.
func Printable(text string) bool {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c >= 0x7f {
			return printableRunes(text[i:])
		}
	}
	return true
}

func printableRunes(text string) bool {
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 || unicode.IsControl(r) {
			return false
		}
		text = text[size:]
	}
	return true
}

// Clip bounds what a message repeats of what it was given.
func Clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Budget says whether a retry budget can be used. The error is a
// *FieldError.
func Budget(b *logv1.RetryBudget) error {
	star := strings.IndexByte(b.GetClient(), '*')
	switch {
	case !lineage.IsName(b.GetName()):
		return bad("name", "%q: is no name of a retry budget", Clip(b.GetName()))
	case b.GetClient() == "" || len(b.GetClient()) > MaxText || !Printable(b.GetClient()):
		return bad("client", "%q: must be 1 to %d bytes of valid UTF-8 without control characters",
			Clip(b.GetClient()), MaxText)
	case star >= 0 && star != len(b.GetClient())-1:
		return bad("client", "%q: a star can only be the end", Clip(b.GetClient()))
	case b.GetMaxFraction() < 0 || b.GetMaxFraction() >= retry.Whole:
		return bad("max_fraction", "%d: must be from 0 to %d", b.GetMaxFraction(), retry.Whole-1)
	case b.GetMinRequests() < 0 || b.GetMinRequests() > bucket.MaxTokens:
		return bad("min_requests", "%d: must be from 0 to %d", b.GetMinRequests(), int64(bucket.MaxTokens))
	case b.GetWindow() < minWindow || b.GetWindow() > maxWindow || b.GetWindow()%window.Slices != 0:
		return bad("window", "%v: must be from %v to %v and a multiple of %v", time.Duration(b.GetWindow()),
			time.Duration(minWindow), time.Duration(maxWindow), time.Duration(window.Slices))
	case b.GetRetryAfter() < minPause || b.GetRetryAfter() > maxPause:
		return bad("retry_after", "%v: must be from %v to %v", time.Duration(b.GetRetryAfter()),
			time.Duration(minPause), time.Duration(maxPause))
	}
	return budgetModes(b)
}

// budgetModes checks the floor, the scope, the mode and the warning of a retry
// budget.
func budgetModes(b *logv1.RetryBudget) error {
	floor := retry.Rule{
		Window:     time.Duration(b.GetWindow()),
		MinRetries: b.GetMinRetries(), MinInterval: time.Duration(b.GetMinRetriesInterval()),
	}
	switch {
	case b.GetMinRetries() < 0 || b.GetMinRetries() > bucket.MaxTokens:
		return bad("min_retries", "%d: must be from 0 to %d", b.GetMinRetries(), int64(bucket.MaxTokens))
	case b.GetMinRetriesInterval() < 0 || b.GetMinRetriesInterval() > maxWindow:
		return bad("min_retries_interval", "%v: must be from 0 to %v",
			time.Duration(b.GetMinRetriesInterval()), time.Duration(maxWindow))
	case b.GetMinRetries() > 0 && floor.Floor() < 1:
		return bad("min_retries", "%d in %v: must be at least one in the window, %v",
			b.GetMinRetries(), floor.MinInterval, floor.Window)
	case logv1.Scope_name[int32(b.GetScope())] == "":
		return bad("scope", "%d: is no scope", b.GetScope())
	case logv1.Mode_name[int32(b.GetMode())] == "":
		return bad("mode", "%d: is no mode", b.GetMode())
	case b.GetWarnFraction() < 0 || b.GetWarnFraction() >= retry.Whole:
		return bad("warn_fraction", "%d: must be from 0 to %d", b.GetWarnFraction(), retry.Whole-1)
	case b.GetWarnFor() < 0 || b.GetWarnFor() > maxPause:
		return bad("warn_for", "%v: must be from 0 to %v", time.Duration(b.GetWarnFor()), time.Duration(maxPause))
	}
	return nil
}

// Node says whether a member's record can be kept. The error is a
// *FieldError.
func Node(n *logv1.NodeRecord) error {
	if err := Text("node.raft_id", n.GetRaftId(), 1, MaxText); err != nil {
		return err
	}
	for _, one := range []struct{ field, text string }{
		{"node.name", n.GetName()},
		{"node.peer", n.GetPeer()},
		{"node.grpc", n.GetGrpc()},
		{"node.http", n.GetHttp()},
		{"node.version", n.GetVersion()},
	} {
		if err := Text(one.field, one.text, 0, MaxText); err != nil {
			return err
		}
	}
	return nil
}

// Count says whether a count of a report can be booked or kept, as far as
// that can be seen without the state. The error is a *FieldError.
func Count(c *logv1.AdmittedCount) error {
	switch {
	case !lineage.IsName(c.GetLimit()):
		return bad("limit", "%q: is no name of a limit", Clip(c.GetLimit()))
	case !lineage.IsWord(c.GetDimension()):
		return bad("dimension", "%q: is no name of a dimension", Clip(c.GetDimension()))
	case c.GetClass() != "" && !lineage.IsWord(c.GetClass()):
		return bad("class", "%q: is no name of a class", Clip(c.GetClass()))
	case c.GetTokens() < 1 || c.GetTokens() > bucket.MaxTokens:
		return bad("tokens", "%d: must be from 1 to %d", c.GetTokens(), int64(bucket.MaxTokens))
	}
	return Text("key", c.GetKey(), 0, MaxKey)
}

// Charge says whether a charge can be made, as far as that can be seen without the
// state. The error is a *FieldError.
func Charge(c *logv1.Charge) error {
	switch {
	case !lineage.IsName(c.GetLimit()):
		return bad("limit", "%q: is no name of a limit", Clip(c.GetLimit()))
	case !lineage.IsWord(c.GetDimension()):
		return bad("dimension", "%q: is no name of a dimension", Clip(c.GetDimension()))
	case c.GetAmount() < 1 || c.GetAmount() > bucket.MaxTokens:
		return bad("amount", "%d: must be from 1 to %d", c.GetAmount(), int64(bucket.MaxTokens))
	case c.GetKeep() < 0 || c.GetKeep() > bucket.MaxTokens:
		return bad("keep", "%d: must be from 0 to %d", c.GetKeep(), int64(bucket.MaxTokens))
	case len(c.GetKey()) > MaxKey:
		return bad("key", "%d bytes: must be at most %d", len(c.GetKey()), MaxKey)
	case !Printable(c.GetKey()):
		return bad("key", "%q: must be valid UTF-8 without control characters", Clip(c.GetKey()))
	}
	return nil
}

// WrongKey says what is wrong with a key: there has to be one where the limit
// has keys, and only there. It is empty where all is well.
func WrongKey(keyed bool, key string) string {
	switch {
	case keyed && key == "":
		return "none: the limit has one bucket a key"
	case !keyed && key != "":
		return fmt.Sprintf("%q: the limit has no keys", Clip(key))
	}
	return ""
}
