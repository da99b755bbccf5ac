//go:build !race

package retries_test

// slowdown is how much slower than usual this program may be.
const slowdown = 1
