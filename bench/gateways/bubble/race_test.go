//go:build race

package bubble_test

// plays says which storms are played under the race detector, which takes ten times as long:
// those with most gateways, and with faults. The others run the same code.
func plays(slug string) bool { return slug == "s2-faults-gateway" }
