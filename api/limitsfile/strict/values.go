package strict

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/quorlease/quorlease/api/limitsfile/guard"
	"github.com/quorlease/quorlease/api/limitsfile/written"
)

// Entry is one key of a mapping with its value.
type Entry struct {
	Key   string
	At    Place
	Value ast.Node
}

// Entries returns what a mapping holds, in its order. A key that comes twice, or
// is no text, is an error.
func (r *Reader) Entries(n ast.Node, path, want string) []Entry {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		r.mismatch(n, path, want)
		return nil
	}
	if len(values) > guard.EntriesMax {
		r.FailAt(Start(n), path, "more than %d fields in one place", guard.EntriesMax)
		return nil
	}
	var found []Entry
	for _, value := range values {
		at := Start(value.Key)
		key, ok := value.Key.(*ast.StringNode)
		if !ok {
			r.FailAt(at, path, "%s is no name of a field", written.Quote(value.Key.GetToken().Value))
			continue
		}
		if slices.ContainsFunc(found, func(e Entry) bool { return e.Key == key.Value }) {
			r.FailAt(at, Join(path, Shortened(key.Value)), "set twice in one place")
			continue
		}
		r.places[Join(path, Shortened(key.Value))] = at
		found = append(found, Entry{key.Value, at, value.Value})
	}
	return found
}

// Fields is Entries for a mapping whose keys are known. It returns the values by
// key; an unknown key is an error that lists the known ones.
func (r *Reader) Fields(n ast.Node, path string, known ...string) map[string]ast.Node {
	values := map[string]ast.Node{}
	for _, e := range r.Entries(n, path, "fields: "+strings.Join(known, ", ")) {
		if !slices.Contains(known, e.Key) {
			r.FailAt(e.At, Join(path, Shortened(e.Key)), "unknown field; known are %s", strings.Join(known, ", "))
			continue
		}
		values[e.Key] = e.Value
	}
	return values
}

// Items returns the elements of a list, nil where it is absent.
func (r *Reader) Items(n ast.Node, path string) []ast.Node {
	if n == nil {
		return nil
	}
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		r.mismatch(n, path, "a list")
		return nil
	}
	for i, item := range list.Values {
		r.places[fmt.Sprintf("%s[%d]", path, i)] = Start(item)
	}
	return list.Values
}

// Start is where a node begins; a mapping begins at its first key.
func Start(n ast.Node) Place {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return Start(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return Start(n.Key)
	}
	return placeOf(n.GetToken())
}

// IsMapping says whether a node has fields.
func IsMapping(n ast.Node) bool {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}

// Shortened is a key of the file as a part of a path: on one line and bounded.
func Shortened(s string) string {
	return strings.Trim(written.Quote(s), `"`)
}

func (r *Reader) mismatch(n ast.Node, path, want string) {
	r.FailAt(Start(n), path, "%s: want %s", describe(n), want)
}

// describe shows a node in an error.
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.NullNode:
		return "empty"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "fields"
	case *ast.SequenceNode:
		return "a list"
	default:
		return written.Quote(n.GetToken().Value)
	}
}

// float matches what YAML, or a person, takes for a number that is not whole.
var float = regexp.MustCompile(`^[-+]?(\d[\d_]*\.[\d_]*|\.[\d_]+|\d[\d_]*(\.[\d_]*)?[eE][-+]?\d+)$` +
	`|^[-+]?\.(inf|Inf|INF|nan|NaN|NAN)$`)

// Plain returns the text of a scalar without quotes. Floats are refused whatever
// was wanted: what is computed with them differs from machine to machine (A06).
func (r *Reader) Plain(n ast.Node, path, want string) (string, bool) {
	tk := n.GetToken()
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode, *ast.BoolNode:
		quoted := tk.Type == token.SingleQuoteType || tk.Type == token.DoubleQuoteType
		if !quoted && float.MatchString(tk.Value) {
			r.FailAt(placeOf(tk), path, "%s: floats are not supported; want %s", written.Quote(tk.Value), want)
			return "", false
		}
		return tk.Value, true
	default:
		r.mismatch(n, path, want)
		return "", false
	}
}

// Value reads a scalar with parse, which returns the problem or "".
func Value[T any](r *Reader, n ast.Node, path, want string, parse func(string) (T, string)) (T, bool) {
	var none T
	text, ok := r.Plain(n, path, want)
	if !ok {
		return none, false
	}
	parsed, problem := parse(text)
	if problem != "" {
		r.FailAt(Start(n), path, "%s", problem)
		return none, false
	}
	return parsed, true
}

// Text reads a text. A number or a boolean has to be quoted, so that nobody is
// surprised by what YAML makes of 007 or true.
func (r *Reader) Text(n ast.Node, path string) string {
	if n == nil {
		return ""
	}
	s, ok := n.(*ast.StringNode)
	if !ok {
		r.mismatch(n, path, "a text; put it in quotes if it is one")
		return ""
	}
	return s.Value
}

// Boolean reads true or false; false where it is absent.
func (r *Reader) Boolean(n ast.Node, path string) bool {
	if n == nil {
		return false
	}
	b, ok := n.(*ast.BoolNode)
	if !ok {
		r.mismatch(n, path, "true or false")
		return false
	}
	return b.Value
}

// Size reads a whole number (written.ParseSize).
func (r *Reader) Size(n ast.Node, path string) *int64 {
	if n == nil {
		return nil
	}
	if size, ok := Value(r, n, path, "a whole number", written.ParseSize); ok {
		return &size
	}
	return nil
}

// Share reads a percentage, as hundredths of a percent (written.ParseShare).
func (r *Reader) Share(n ast.Node, path string) *int64 {
	if n == nil {
		return nil
	}
	if share, ok := Value(r, n, path, "a percentage", written.ParseShare); ok {
		return &share
	}
	return nil
}

// Duration reads a duration (written.ParseDuration).
func (r *Reader) Duration(n ast.Node, path string) *time.Duration {
	if n == nil {
		return nil
	}
	if long, ok := Value(r, n, path, "a duration", written.ParseDuration); ok {
		return &long
	}
	return nil
}

// Join is the path of a field inside another one.
func Join(parent, field string) string {
	switch {
	case parent == "":
		return field
	case field == "":
		return parent
	default:
		return parent + "." + field
	}
}
