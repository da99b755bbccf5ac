// Package peer is what all systems that are compared have in common: how one is
// started, asked, killed and ended, and how its program is found.
package peer
