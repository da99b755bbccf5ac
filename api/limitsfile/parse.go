package limitsfile

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

	"github.com/quorlease/quorlease/api/limitsfile/callers"
	"github.com/quorlease/quorlease/api/limitsfile/guard"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// FileMax is the largest file, in bytes.
const FileMax = 512 << 10

// Parse is shorthand for ParseNamed with the name "limits.yaml".
func Parse(data []byte) (*quorleasev1.LimitsApplyRequest, error) {
	return ParseNamed("limits.yaml", data)
}

// ParseNamed reads a limits file and checks all of it. The request names the
// limits and retry budgets of the file, in its order, and sets only what the
// file says: defaults stay absent. The error is SourceErrors; name is what they
// call the file.
func ParseNamed(name string, data []byte) (*quorleasev1.LimitsApplyRequest, error) {
	file, err := ParseFile(name, data)
	if err != nil {
		return nil, err
	}
	return file.Request, nil
}

// File is a limits file, with what is not applied of it.
type File struct {
	Request *quorleasev1.LimitsApplyRequest
	// Clients are how callers behave, in the order of the file.
	Clients []callers.Client

	places map[string]place
}

// Place is where the file has a field, as the file calls it, or the nearest thing
// around it. Both count from 1.
func (f *File) Place(field string) (line, column int) {
	at := nearest(f.places, field)
	return at.line, at.column
}

// ParseFile is ParseNamed for somebody who looks at all of the file.
func ParseFile(name string, data []byte) (*File, error) {
	d := &decoder{file: name, places: map[string]place{}}
	file := &File{Request: &quorleasev1.LimitsApplyRequest{}, places: d.places}
	if root := d.read(data); root != nil {
		d.document(root, file)
		d.resolve(file.Request)
	}
	if len(d.errs) > 0 {
		slices.SortStableFunc(d.errs, func(a, b *SourceError) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return nil, d.errs[:min(len(d.errs), errorsMax)]
	}
	return file, nil
}

// place is a position in the file, from 1.
type place struct{ line, column int }

func placeOf(tk *token.Token) place { return place{tk.Position.Line, tk.Position.Column} }

// decoder turns a syntax tree into a request and collects what is wrong.
type decoder struct {
	file string
	errs SourceErrors
	// places says where each field that the file has stands, by its path.
	places map[string]place
}

func (d *decoder) fail(at place, field, format string, args ...any) {
	d.errs = append(d.errs, &SourceError{
		File: d.file, Line: at.line, Column: at.column,
		Field: field, Problem: fmt.Sprintf(format, args...),
	})
}

// read checks the text and returns the root of its one document, or nil after
// an error.
func (d *decoder) read(data []byte) ast.Node {
	if len(data) > FileMax {
		d.fail(place{1, 1}, "", "the file has more than %d bytes", FileMax)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if faults := guard.Text(data, errorsMax); len(faults) > 0 {
		for _, fault := range faults {
			d.fail(place{fault.Line, fault.Column}, "", "%s", fault.Problem)
		}
		return nil
	}
	tokens := lexer.Tokenize(string(data))
	if tk := tokens.InvalidToken(); tk != nil {
		d.fail(placeOf(tk), "", "%s", oneLine(tk.Error))
		return nil
	}
	if tk, problem := guard.Check(tokens); tk != nil {
		d.fail(placeOf(tk), "", "%s", problem)
		return nil
	}
	// The parser's own check for duplicates takes time that grows with the square
	// of the file; entries makes it here.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntax(err)
		return nil
	}
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			return doc.Body
		}
	}
	// Somebody who truncated the file by accident must not delete every limit
	// with --prune.
	d.fail(place{1, 1}, "", "the file is empty; write limits: [] to name none")
	return nil
}

func (d *decoder) syntax(err error) {
	var syntax yaml.Error
	if errors.As(err, &syntax) && syntax.GetToken() != nil {
		d.fail(placeOf(syntax.GetToken()), "", "%s", oneLine(syntax.GetMessage()))
		return
	}
	d.fail(place{1, 1}, "", "%s", oneLine(err.Error()))
}

func oneLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// resolve holds what was read to the rules of the protocol, and puts each
// problem where the file has the field, or the nearest thing around it.
func (d *decoder) resolve(req *quorleasev1.LimitsApplyRequest) {
	if len(d.errs) > 0 {
		return
	}
	_, err := ResolveAll(req)
	var wrong FieldErrors
	if !errors.As(err, &wrong) {
		return
	}
	for _, one := range wrong {
		field := d.sourcePath(req, one.Field)
		d.fail(nearest(d.places, field), field, "%s", one.Problem)
	}
}

func nearest(places map[string]place, field string) place {
	for field != "" {
		if at, known := places[field]; known {
			return at
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return place{1, 1}
}
