package attempt

import (
	"net/http"
	"strings"

	"github.com/quorlease/quorlease/client/gateway/canon"
)

const (
	// idsMax is how many ids of a request are remembered, and idMax how long one may be;
	// a longer one is not looked at.
	idsMax = 3
	idMax  = 256
)

// IDs are the hashes of what a request calls itself. The zero value has none.
type IDs struct {
	sums [idsMax]canon.Sum
	n    int
	// strong are the first of them: those that stay the same over all attempts at one
	// piece of work and are never given to another.
	strong int
}

// invocation is where clients of Google's storage write an id of all attempts.
const invocation = "gccl-invocation-id/"

// ReadIDs hashes the ids of a request, at most three. Idempotency-Key, the invocation
// ids of AWS and Google and x-ms-client-request-id are the same in all attempts at one
// piece of work. X-Request-Id comes last: services pass it on to everything that they
// do for one request of their own.
func ReadIDs(hasher *canon.Hasher, h http.Header) IDs {
	var ids IDs
	ids.add(hasher, "Idempotency-Key", h.Get("Idempotency-Key"))
	ids.add(hasher, "Amz-Sdk-Invocation-Id", h.Get("Amz-Sdk-Invocation-Id"))
	if _, rest, found := strings.Cut(h.Get("X-Goog-Api-Client"), invocation); found {
		id, _, _ := strings.Cut(rest, " ")
		ids.add(hasher, invocation, id)
	}
	ids.add(hasher, "X-Ms-Client-Request-Id", h.Get("X-Ms-Client-Request-Id"))
	ids.strong = ids.n
	ids.add(hasher, "X-Request-Id", h.Get("X-Request-Id"))
	return ids
}

func (s *IDs) add(hasher *canon.Hasher, name, id string) {
	if id == "" || len(id) > idMax || s.n == idsMax {
		return
	}
	s.sums[s.n] = hasher.Join(canon.Sum{}, name, id)
	s.n++
}
