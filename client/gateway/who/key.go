package who

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// digest is what is kept of a key.
type digest = [sha256.Size]byte

// keyMax is how long a key may be in a request, in bytes. What is longer is nobody's.
const keyMax = 4096

// HashKey is what Client.Keys has of a key: its SHA-256, in hex.
func HashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// readHash reads what HashKey has written. The problem does not repeat what it read: that
// may be a key which somebody has put in the place of its hash.
func readHash(text string) (sum digest, problem string) {
	n, err := hex.Decode(sum[:], []byte(text[:min(len(text), 2*len(sum))]))
	switch {
	case err != nil || n < len(sum) || len(text) > 2*len(sum):
		return sum, fmt.Sprintf("%d characters that are no SHA-256 in %d hex digits; the key itself does not belong here",
			len(text), 2*len(sum))
	case sum == sha256.Sum256(nil):
		return sum, "the SHA-256 of nothing, which is no key"
	default:
		return sum, ""
	}
}

// credentials are the headers that clients put keys into: those of OpenAI, of Anthropic, of
// Azure and of Google.
var credentials = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// Credentials are the headers in which a key is looked for.
func Credentials() []string { return append([]string(nil), credentials...) }

// keyIn is the key in one of the credentials, empty where there is none.
func keyIn(header, value string) string {
	if header != "Authorization" {
		return value
	}
	scheme, key, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// owner is the client that has a key. Looking a hash up takes longer or shorter by what the
// hash is, and tells nobody more than that: to come closer to a key by the time one would
// need other keys whose hashes begin alike, and these are as hard to find as the key.
func (b *Book) owner(key string) *client {
	if len(key) > keyMax {
		return nil
	}
	return b.byKey[sha256.Sum256([]byte(key))]
}
