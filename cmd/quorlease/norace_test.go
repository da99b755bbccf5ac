//go:build !race

package main

// programFirst leaves the test binary to be the program.
func programFirst() (remove func(), err error) { return func() {}, nil }
