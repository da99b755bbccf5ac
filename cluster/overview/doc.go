// Package overview keeps what a picture of the last hour needs of one node: what was
// decided here, what the cluster's clients reported of their providers, which
// incidents are open, and which keys and clients are worth showing.
//
// It is told, never asks, and everything in it is bounded: a hundred thousand names
// of clients or keys leave it as large as a hundred do (G10). What is told on the way
// of an answer takes no memory, and no lock that anybody holds for longer than a few
// additions.
//
// What is *not* here: levels, budgets and members, which whoever draws the picture
// reads where they are, and who draws it (api/server/overview). The package has
// locks, and neither a clock nor a goroutine.
package overview
