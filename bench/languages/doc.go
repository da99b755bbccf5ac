// Package languages runs one list of cases (clients/conformance/cases.json) with the client of
// each language, against real nodes and against nodes that follow a script: what is asked and
// answered is the same in Go, Python and TypeScript.
//
// A client is driven by an adapter, a program of its language that does what it is told, a line
// of JSON at a time.
//
// There is nothing in it but tests.
package languages
