package limitsfile

import (
	"strings"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
)

// FieldError is one thing that is wrong with one field.
type FieldError struct {
	// Field is the path of the field: "limits[0].dimensions[1].burst".
	Field string
	// Problem has the value and the bound.
	Problem string
}

// Error is one line.
func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// FieldErrors is everything that is wrong, in the order in which it was found.
type FieldErrors []*FieldError

// Error joins the problems with semicolons.
func (e FieldErrors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "; ")
}

// under returns the same errors with a longer path: the field they speak of is
// inside parent.
func (e FieldErrors) under(parent string) FieldErrors {
	moved := make(FieldErrors, len(e))
	for i, one := range e {
		moved[i] = &FieldError{Field: strict.Join(parent, one.Field), Problem: one.Problem}
	}
	return moved
}

// SourceError is one thing that is wrong with one place of a file.
type SourceError = strict.Error

// SourceErrors is everything that is wrong with a file, by line; at most 20.
type SourceErrors = strict.Errors //nolint:errname // it is a list of them, as its name says
