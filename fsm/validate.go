package fsm

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/lineage"
)

// Bounds of what an operation may carry. The servers check the same; here they
// keep a hostile or mistaken leader from filling the state (G10).
const (
	maxCharges = 16
	maxUsages  = 64
	maxKey     = 512
	maxText    = 256
	maxReason  = 512
)

// leaseID is the id that a client drew.
type leaseID [16]byte

func checkLeaseID(id []byte) (leaseID, error) {
	if len(id) != len(leaseID{}) {
		return leaseID{}, badField("lease_id", "%d bytes: must be %d", len(id), len(leaseID{}))
	}
	return leaseID(id), nil
}

// checkText bounds a name that people chose: valid UTF-8 without control
// characters.
func checkText(field, text string, least, most int) error {
	if len(text) < least || len(text) > most {
		return badField(field, "%d bytes: must be from %d to %d", len(text), least, most)
	}
	if !printable(text) {
		return badField(field, "%q: must be valid UTF-8 without control characters", clip(text))
	}
	return nil
}

// printable is most often ASCII.
func printable(text string) bool {
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

// checkCharge looks at what can be seen without the state.
func checkCharge(i int, c *logv1.Charge) error {
	field := func(name string) string { return at("charges", i, name) }
	switch {
	case c == nil || !lineage.IsName(c.GetLimit()):
		return badField(field("limit"), "%q: is no name of a limit", clip(c.GetLimit()))
	case !lineage.IsWord(c.GetDimension()):
		return badField(field("dimension"), "%q: is no name of a dimension", clip(c.GetDimension()))
	case c.GetAmount() < 1 || c.GetAmount() > bucket.MaxTokens:
		return badField(field("amount"), "%d: must be from 1 to %d", c.GetAmount(), int64(bucket.MaxTokens))
	case len(c.GetKey()) > maxKey:
		return badField(field("key"), "%d bytes: must be at most %d", len(c.GetKey()), maxKey)
	case !printable(c.GetKey()):
		return badField(field("key"), "%q: must be valid UTF-8 without control characters", clip(c.GetKey()))
	}
	return nil
}

// wrongKey says what is wrong with a key: there has to be one where the limit
// has keys, and only there. It is empty where all is well.
func wrongKey(keyed bool, key string) string {
	switch {
	case keyed && key == "":
		return "none: the limit has one bucket a key"
	case !keyed && key != "":
		return fmt.Sprintf("%q: the limit has no keys", clip(key))
	}
	return ""
}

// at names a field of an element of a list.
func at(list string, i int, name string) string { return fmt.Sprintf("%s[%d].%s", list, i, name) }
