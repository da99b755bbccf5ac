// Package whole runs every measure that this program holds itself to, one after the other,
// and puts together what they came to: one table, one page, one object.
package whole
