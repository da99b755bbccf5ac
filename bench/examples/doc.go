// Package examples runs what is in the tree's folder of examples for gateways, as its pages
// say: real nodes, real gateways, a simulated provider (bench/upstream), and programs that
// ask.
//
// There is nothing in it but tests.
package examples
