// Package supervise runs child processes, passes on what they log, and says
// what becomes of them.
//
// A child is in a process group of its own, so that a Ctrl-C at the terminal
// reaches the supervisor alone and the children are stopped in order. On Linux
// the kernel kills them when the supervisor dies without a word: there are no
// orphans.
package supervise
