// Package usage keeps the book of what a node's answers granted and denied: by
// client, team, limit and dimension, for each hour; and of how far the estimates of
// leases were off that were settled.
//
// Counting is a short look into a map. A goroutine writes the book of the hour into a
// file of its own, whole, every minute: a crash loses a minute at most, and no file is
// ever half an hour's. Nothing here is replicated. What one node knows it says when
// another asks.
//
// What is *not* here: what an acquire may do, and who may read the book.
package usage
