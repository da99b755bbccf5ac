package limitsfile

import (
	"fmt"
	"strings"
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
		moved[i] = &FieldError{Field: join(parent, one.Field), Problem: one.Problem}
	}
	return moved
}

func join(parent, field string) string {
	switch {
	case parent == "":
		return field
	case field == "":
		return parent
	default:
		return parent + "." + field
	}
}

// SourceError is one thing that is wrong with one place of a file.
type SourceError struct {
	// File is the name under which the file was given to ParseNamed.
	File string
	// Line and Column count from 1; columns count characters.
	Line, Column int
	// Field is the path as the file calls it: "limits[0].rate.requests". Empty
	// where the text is no YAML.
	Field string
	// Problem has the value and the bound.
	Problem string
}

// Error is one line: "limits.yaml:3:11: limits[0].rate.requests: …".
func (e *SourceError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, line(e.Field, e.Problem))
}

func line(field, problem string) string {
	if field == "" {
		return problem
	}
	return field + ": " + problem
}

// errorsMax bounds how many errors are reported of one file: a person mends the
// first ones first, and a hostile file can't make a longer answer.
const errorsMax = 20

// SourceErrors is everything that is wrong with a file, by line; at most 20.
type SourceErrors []*SourceError

// Error has one line for each problem.
func (e SourceErrors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}
