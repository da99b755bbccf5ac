// Package replay gives a request that comes again under its idempotency key the answer that it
// had, instead of doing its work a second time (draft-ietf-httpapi-idempotency-key-header).
//
// The first request with a key gets a Turn, which records the answer while it is written. Until it
// ends others with the key are in flight; after that they are given what was recorded, or, where
// that is not to be kept, the next one does the work. What another payload comes with is refused.
// A Store knows keys and payloads by hashes: who asks has to be part of the hash of a key, so that
// nobody is given what somebody else was answered.
//
// Answers are in memory only. They go when they are too old, and the oldest go first where there is
// no room; who comes after that does the work again.
package replay
