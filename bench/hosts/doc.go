// Package hosts is a few hosts on one machine, each in a network namespace of its own,
// that can be taken off the network: nothing is refused then, nothing arrives. The
// machine's own network is not touched. It needs Linux, root, and the program ip.
package hosts

import "errors"

// ErrUnavailable: hosts can't be had here; what it wraps says why.
var ErrUnavailable = errors.New("no network namespaces")
