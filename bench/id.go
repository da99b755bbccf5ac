package bench

import (
	"crypto/rand"
	"encoding/hex"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NewID draws a lease or session id.
func NewID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand, Go 1.24)
	return hex.EncodeToString(id[:])
}

// MayHaveHappened says whether an operation that failed with err could have
// had its effect: only these codes promise that it had none.
func MayHaveHappened(err error) bool {
	switch status.Code(err) {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.ResourceExhausted:
		return false
	default:
		return true
	}
}
