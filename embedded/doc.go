// Package embedded is an authority inside a process, for one that runs alone: a laptop, a
// single service, a gateway without a cluster.
//
// It is a node that forms a cluster of itself, with its log and its snapshots in a directory,
// and without a port. Clients in the same process reach it without a network: what it grants
// from memory costs a few microseconds, everything else a commit to the disk. What was granted
// was in the log before, so that a process that is killed forgets no debit; settled usage, debts
// and limits are there again when it is back. Retry budgets are kept as nodes keep them: what was
// counted since the last report to the log, about a second, is lost with the process.
//
// Nothing is decided twice: a service that outgrows its process names the endpoints of a cluster in
// its client.Config instead, and gives the cluster the same limits file.
package embedded
