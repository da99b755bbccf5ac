// Package alert tells people about incidents: once when one begins, once when it
// is over (G8).
//
// Whoever finds an incident gives it to a Notifier, which never blocks and hands
// it to every sink: a function, a log, a webhook, an Alertmanager. Each sink has
// a goroutine of its own, so that one that hangs delays nobody else. Incidents
// are kept until every sink has taken their beginning and their end; how many is
// bounded, and what finds no room is counted.
//
// An end is delivered only after its beginning, by each sink for itself. A sink
// that was away while an incident came and went gets both, in order. Delivery is
// at least once: a receiver that took an alert without answering gets it again,
// with the same id and status.
//
// What is *not* here: what an incident is. Clients and nodes decide that.
package alert
