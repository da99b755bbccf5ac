// Package strict reads YAML that people write by hand, such as a limits file or a
// gateway's configuration. What is not understood is refused, not ignored: unknown
// fields, floats, a name twice, anchors and aliases, tags, a second document and tabs in
// the indentation are errors, each with its line and column. It is pure.
//
// A Reader is of one file. Whoever reads it walks down from Root, names each field by
// its path, and asks for Err in the end; what was read is of use only where that is nil.
// The methods that read a value take nil for a field that is absent.
package strict

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/quorlease/quorlease/api/limitsfile/guard"
)

// Reader turns a syntax tree into values and collects what is wrong.
type Reader struct {
	file string
	errs Errors
	// places says where each field that the file has stands, by its path.
	places map[string]Place
}

// New returns a reader of one file. Errors call it name.
func New(name string) *Reader { return &Reader{file: name, places: map[string]Place{}} }

// Place is a position in the file, from 1; columns count characters.
type Place struct{ Line, Column int }

func placeOf(tk *token.Token) Place { return Place{tk.Position.Line, tk.Position.Column} }

// Err is everything that is wrong so far, by line, at most 20 of it; nil where nothing is.
func (r *Reader) Err() error {
	if len(r.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(r.errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return r.errs[:min(len(r.errs), errorsMax)]
}

// FailAt says what is wrong with a field at a place.
func (r *Reader) FailAt(at Place, field, format string, args ...any) {
	r.errs = append(r.errs, &Error{
		File: r.file, Line: at.Line, Column: at.Column,
		Field: field, Problem: fmt.Sprintf(format, args...),
	})
}

// Fail says what is wrong with a field, where the file has it, or the nearest thing
// around it.
func (r *Reader) Fail(field, format string, args ...any) {
	r.FailAt(r.Nearest(field), field, format, args...)
}

// FailNode is Fail at a node; nil is for a field that is absent.
func (r *Reader) FailNode(n ast.Node, field, format string, args ...any) {
	at := r.Nearest(field)
	if n != nil {
		at = Start(n)
	}
	r.FailAt(at, field, format, args...)
}

// Has says whether the file has a field.
func (r *Reader) Has(field string) bool {
	_, known := r.places[field]
	return known
}

// Nearest is where the file has a field, or the nearest thing around it.
func (r *Reader) Nearest(field string) Place {
	for field != "" {
		if at, known := r.places[field]; known {
			return at
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return Place{1, 1}
}

// Root checks a text of at most so many bytes, and returns the root of its one document.
// It returns nil after an error; empty is what is said of a file that has nothing in it.
func (r *Reader) Root(data []byte, most int, empty string) ast.Node {
	if len(data) > most {
		r.FailAt(Place{1, 1}, "", "the file has more than %d bytes", most)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if faults := guard.Text(data, errorsMax); len(faults) > 0 {
		for _, fault := range faults {
			r.FailAt(Place{fault.Line, fault.Column}, "", "%s", fault.Problem)
		}
		return nil
	}
	tokens := lexer.Tokenize(string(data))
	if tk := tokens.InvalidToken(); tk != nil {
		r.FailAt(placeOf(tk), "", "%s", oneLine(tk.Error))
		return nil
	}
	if tk, problem := guard.Check(tokens); tk != nil {
		r.FailAt(placeOf(tk), "", "%s", problem)
		return nil
	}
	// The parser's own check for duplicates takes time that grows with the square
	// of the file; Entries makes it here.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.syntax(err)
		return nil
	}
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			return doc.Body
		}
	}
	r.FailAt(Place{1, 1}, "", "the file is empty%s", empty)
	return nil
}

func (r *Reader) syntax(err error) {
	var syntax yaml.Error
	if errors.As(err, &syntax) && syntax.GetToken() != nil {
		r.FailAt(placeOf(syntax.GetToken()), "", "%s", oneLine(syntax.GetMessage()))
		return
	}
	r.FailAt(Place{1, 1}, "", "%s", oneLine(err.Error()))
}

func oneLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
