// Package share bounds the processor time of processes by control groups of Linux, of
// either version.
package share
