// Package alone tries gateways that have their authority in them (package embedded), as
// processes: they are killed under load, and go on from what is on their disk.
//
// There is nothing in it but tests.
package alone
