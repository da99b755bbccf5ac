package strict

import (
	"fmt"
	"strings"
)

// Error is one thing that is wrong with one place of a file.
type Error struct {
	// File is the name under which the file was given to New.
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
func (e *Error) Error() string {
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

// Errors is everything that is wrong with a file, by line; at most 20.
type Errors []*Error

// Error has one line for each problem.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}
