// Package front measures what a gateway costs whoever asks through it: beside a bare
// reverse proxy, while a client storms, and how much of a provider's limit is used.
//
// The gateway is a process of its own and asks three nodes; callers and the provider are
// in this process.
package front
