package wire

import (
	"errors"
	"fmt"
)

// Sentinels of this package. A *Refusal matches the one of its code, whichever
// side refused.
var (
	// ErrOtherCluster: the other end belongs to another cluster (R36).
	ErrOtherCluster = errors.New("belongs to another cluster")
	// ErrUnknownNode: the other end is not a member (R38).
	ErrUnknownNode = errors.New("is not a member")
	// ErrBusy: the acceptor has as many connections as it may.
	ErrBusy = errors.New("has too many connections")
	// ErrStarting: the acceptor is not ready to say who may talk to it. That is no
	// fault: every node is, once.
	ErrStarting = errors.New("is starting")
	// ErrVersion: the handshake has another version.
	ErrVersion = errors.New("another version of the handshake")
	// ErrOtherNode: another node answers at the address than the one expected.
	ErrOtherNode = errors.New("another node answers")
	// ErrStalled: a connection made no progress for longer than its limit.
	ErrStalled = errors.New("connection stalled")
	// ErrTooLarge: a message is larger than its limit.
	ErrTooLarge = errors.New("message too large")
)

// Code is the outcome of a handshake as it travels.
type Code byte

// The codes. A number is never given another meaning.
const (
	CodeWelcome      Code = 0
	CodeOtherCluster Code = 1
	CodeUnknownNode  Code = 2
	CodeBusy         Code = 3
	CodeVersion      Code = 4
	CodeStarting     Code = 5
)

// Refusal is the error of a handshake that the acceptor refused.
type Refusal struct {
	Code   Code
	Reason string
	// By is who refused.
	By Peer
}

// Error says who refused and why.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%s refused the connection: %s", r.By.RaftID, r.Reason)
}

// Is makes a refusal match the sentinel of its code.
func (r *Refusal) Is(target error) bool {
	return target != nil && target == r.Code.sentinel()
}

func (c Code) sentinel() error {
	switch c {
	case CodeWelcome:
	case CodeOtherCluster:
		return ErrOtherCluster
	case CodeUnknownNode:
		return ErrUnknownNode
	case CodeBusy:
		return ErrBusy
	case CodeVersion:
		return ErrVersion
	case CodeStarting:
		return ErrStarting
	}
	return nil
}

// codeOf picks the code that carries err to the other end.
func codeOf(err error) Code {
	switch {
	case errors.Is(err, ErrOtherCluster):
		return CodeOtherCluster
	case errors.Is(err, ErrBusy):
		return CodeBusy
	case errors.Is(err, ErrVersion):
		return CodeVersion
	case errors.Is(err, ErrStarting):
		return CodeStarting
	}
	return CodeUnknownNode
}
