// Package match turns what is said of a piece of work into charges: every limit
// whose match fits the attributes is charged, under a key that the attributes make.
//
// It is done by the node that is asked, from the limits that it has applied, and
// the log gets the charges: the state machine never sees an attribute. The charges
// carry the revision of the limits that they were made from, and the state machine
// refuses those of another one, so that a node that lags can't charge by limits that
// are no more.
//
// Different attributes make different keys, whatever is in the values (A22). The
// order of attributes and of limits does not matter, only that of per. The package
// is pure, and an Index is safe for concurrent use: it never changes.
package match
