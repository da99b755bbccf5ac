package limitsfile

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

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	at    place
	value ast.Node
}

// entries returns what a mapping holds, in its order. A key that comes twice, or
// is no text, is an error.
func (d *decoder) entries(n ast.Node, path, want string) []entry {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		d.mismatch(n, path, want)
		return nil
	}
	if len(values) > guard.EntriesMax {
		d.fail(start(n), path, "more than %d fields in one place", guard.EntriesMax)
		return nil
	}
	var found []entry
	for _, value := range values {
		at := start(value.Key)
		key, ok := value.Key.(*ast.StringNode)
		if !ok {
			d.fail(at, path, "%s is no name of a field", Quote(value.Key.GetToken().Value))
			continue
		}
		if slices.ContainsFunc(found, func(e entry) bool { return e.key == key.Value }) {
			d.fail(at, join(path, shortened(key.Value)), "set twice in one place")
			continue
		}
		d.places[join(path, shortened(key.Value))] = at
		found = append(found, entry{key.Value, at, value.Value})
	}
	return found
}

// fields is entries for a mapping whose keys are known. It returns the values by
// key; an unknown key is an error that lists the known ones.
func (d *decoder) fields(n ast.Node, path string, known ...string) map[string]ast.Node {
	values := map[string]ast.Node{}
	for _, e := range d.entries(n, path, "fields: "+strings.Join(known, ", ")) {
		if !slices.Contains(known, e.key) {
			d.fail(e.at, join(path, shortened(e.key)), "unknown field; known are %s", strings.Join(known, ", "))
			continue
		}
		values[e.key] = e.value
	}
	return values
}

// items returns the elements of a list.
func (d *decoder) items(n ast.Node, path string) []ast.Node {
	if n == nil {
		return nil
	}
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		d.mismatch(n, path, "a list")
		return nil
	}
	for i, item := range list.Values {
		d.places[fmt.Sprintf("%s[%d]", path, i)] = start(item)
	}
	return list.Values
}

// start is where a node begins; a mapping begins at its first key.
func start(n ast.Node) place {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return start(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return start(n.Key)
	}
	return placeOf(n.GetToken())
}

// shortened is a key of the file as a part of a path: on one line and bounded.
func shortened(s string) string {
	return strings.Trim(Quote(s), `"`)
}

func (d *decoder) mismatch(n ast.Node, path, want string) {
	d.fail(start(n), path, "%s: want %s", describe(n), want)
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
		return Quote(n.GetToken().Value)
	}
}

// float matches what YAML, or a person, takes for a number that is not whole.
var float = regexp.MustCompile(`^[-+]?(\d[\d_]*\.[\d_]*|\.[\d_]+|\d[\d_]*(\.[\d_]*)?[eE][-+]?\d+)$` +
	`|^[-+]?\.(inf|Inf|INF|nan|NaN|NAN)$`)

// plain returns the text of a scalar without quotes. Floats are refused whatever
// was wanted: what is computed with them differs from machine to machine (A06).
func (d *decoder) plain(n ast.Node, path, want string) (string, bool) {
	tk := n.GetToken()
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode, *ast.BoolNode:
		quoted := tk.Type == token.SingleQuoteType || tk.Type == token.DoubleQuoteType
		if !quoted && float.MatchString(tk.Value) {
			d.fail(placeOf(tk), path, "%s: floats are not supported; want %s", Quote(tk.Value), want)
			return "", false
		}
		return tk.Value, true
	default:
		d.mismatch(n, path, want)
		return "", false
	}
}

// value reads a scalar with parse, which returns the problem or "".
func value[T any](d *decoder, n ast.Node, path, want string, parse func(string) (T, string)) (T, bool) {
	var none T
	text, ok := d.plain(n, path, want)
	if !ok {
		return none, false
	}
	parsed, problem := parse(text)
	if problem != "" {
		d.fail(start(n), path, "%s", problem)
		return none, false
	}
	return parsed, true
}

// str reads a text. A number or a boolean has to be quoted, so that nobody is
// surprised by what YAML makes of 007 or true.
func (d *decoder) str(n ast.Node, path string) string {
	if n == nil {
		return ""
	}
	s, ok := n.(*ast.StringNode)
	if !ok {
		d.mismatch(n, path, "a text; put it in quotes if it is one")
		return ""
	}
	return s.Value
}

func (d *decoder) boolean(n ast.Node, path string) bool {
	if n == nil {
		return false
	}
	b, ok := n.(*ast.BoolNode)
	if !ok {
		d.mismatch(n, path, "true or false")
		return false
	}
	return b.Value
}

func (d *decoder) size(n ast.Node, path string) *int64 {
	if n == nil {
		return nil
	}
	if size, ok := value(d, n, path, "a whole number", written.ParseSize); ok {
		return &size
	}
	return nil
}

func (d *decoder) share(n ast.Node, path string) *int64 {
	if n == nil {
		return nil
	}
	if share, ok := value(d, n, path, "a percentage", written.ParseShare); ok {
		return &share
	}
	return nil
}

func (d *decoder) duration(n ast.Node, path string) *time.Duration {
	if n == nil {
		return nil
	}
	if long, ok := value(d, n, path, "a duration", written.ParseDuration); ok {
		return &long
	}
	return nil
}
