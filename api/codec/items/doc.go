// Package items reads and writes the messages of a session, in which most of what
// happens travels, with less memory than the generated code takes.
//
// What most items are, an acquire of one charge and a grant of it, it reads and
// writes by itself; every other item is left to the generated methods. The bytes
// are the same, which fuzz tests hold it to, and as in api/codec texts are not
// looked at: whoever reads a request checks them.
package items
