package guard

import (
	"bytes"
	"unicode/utf8"
)

// Fault is what no line of the file may have. Line and Column count from 1.
type Fault struct {
	Line, Column int
	Problem      string
}

// Text returns what is wrong with lines before anything is made of them; it stops
// looking at the line with which there are most.
func Text(data []byte, most int) (faults []Fault) {
	line := 0
	for row := range bytes.Lines(data) {
		line++
		if !utf8.Valid(row) {
			faults = append(faults, Fault{line, 1, "the line is not valid UTF-8"})
		}
		indent := row[:len(row)-len(bytes.TrimLeft(row, " \t"))]
		if at := bytes.IndexByte(indent, '\t'); at >= 0 && len(bytes.TrimSpace(row)) > 0 {
			faults = append(faults, Fault{line, at + 1, "a tab in the indentation; use spaces"})
		}
		if len(faults) >= most {
			break
		}
	}
	return faults
}
