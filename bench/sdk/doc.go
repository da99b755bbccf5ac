// Package sdk drives SDKs as they are published: what they do when they are refused
// decides whether a refusal ends a storm or feeds it.
//
// Install fetches the versions that package-lock.json names, with npm, into a folder
// outside the tree. Drive runs one of them in a process of its own, against any URL,
// and says what it did: how often it waited and for how long, and what its user got.
// Nothing in an SDK is changed. The timer that it finds is not the real one: it
// writes waits down and makes them short (pace.mjs).
//
// Behaviours is the table of what they do, by version, and Refusals what a gateway
// or a provider says to them. The tests hold one against the other.
package sdk
