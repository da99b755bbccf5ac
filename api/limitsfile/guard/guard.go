// Package guard looks at the text and the tokens of a limits file before they are
// parsed. It is pure.
package guard

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// Bounds of the shape of a file. The real format is four levels deep and has
// nowhere near as many fields; beyond these bounds the YAML parser takes time
// and memory that grow with the square of the file, or with its depth.
const (
	// EntriesMax is how many fields there may be in one place.
	EntriesMax    = 64
	flowDepthMax  = 8
	blockDepthMax = 16
)

// Check refuses what the format has no use for, at the token where it stands, and
// what would be expensive to parse. It returns nil where all is well, else the
// token and why.
func Check(tokens token.Tokens) (*token.Token, string) {
	g := &guard{}
	return g.check(tokens)
}

// guard follows the tokens.
type guard struct {
	// line is the line of the last token, and dashes how many list entries began
	// on it.
	line, dashes int
	// flow are the brackets and braces that are open.
	flow []flow
	// keys counts the keys of the block mapping that is open at each column;
	// column is that of the last key.
	keys   map[int]int
	column int
	last   *token.Token
}

// flow is an open bracket or brace.
type flow struct {
	brace bool
	// colon: the entry that is being read has one.
	colon bool
}

// refused are the parts of YAML that the format does without.
var refused = map[token.Type]string{
	token.AnchorType:     "anchors (&) are not supported",
	token.AliasType:      "aliases (*) are not supported; quote a value that begins with a star",
	token.TagType:        "tags (!) are not supported",
	token.DirectiveType:  "directives (%) are not supported",
	token.MergeKeyType:   "merge keys (<<) are not supported",
	token.MappingKeyType: "keys that begin with ? are not supported",
	token.LiteralType:    "block texts (|) are not supported",
	token.FoldedType:     "block texts (>) are not supported",
}

// check returns the first token that is refused, and why.
func (g *guard) check(tokens token.Tokens) (*token.Token, string) {
	g.keys = map[int]int{}
	for _, tk := range tokens {
		if tk.Type == token.CommentType {
			continue
		}
		if problem := refused[tk.Type]; problem != "" {
			return tk, problem
		}
		// A header may begin the file and a "..." may end it.
		if tk.Type == token.DocumentHeaderType && g.last != nil ||
			g.last != nil && g.last.Type == token.DocumentEndType {
			return tk, "a second document in one file is not supported"
		}
		if problem := g.open(tk); problem != "" {
			return tk, problem
		}
		g.last = tk
	}
	return nil, ""
}

// open follows how deep and how broad what is open has become.
func (g *guard) open(tk *token.Token) string {
	if at := tk.Position.Line; at != g.line {
		g.line, g.dashes = at, 0
		if len(g.flow) == 0 {
			g.close(tk.Position.Column)
		}
	}
	if g.last != nil && g.isEmpty(tk) {
		return "the value before is empty"
	}
	switch tk.Type {
	case token.MappingStartType, token.SequenceStartType:
		g.flow = append(g.flow, flow{brace: tk.Type == token.MappingStartType})
		if len(g.flow) > flowDepthMax {
			return fmt.Sprintf("nested deeper than %d", flowDepthMax)
		}
	case token.CollectEntryType, token.MappingEndType, token.SequenceEndType:
		return g.ended(tk)
	case token.SequenceEntryType:
		if g.dashes++; g.dashes > 1 {
			return "a list directly inside a list is not supported"
		}
	case token.MappingValueType:
		return g.key()
	default:
	}
	return ""
}

// ended follows the end of an entry between brackets or braces.
func (g *guard) ended(tk *token.Token) string {
	last := len(g.flow) - 1
	if last < 0 {
		return ""
	}
	in := &g.flow[last]
	if in.brace && !in.colon && g.last != nil &&
		g.last.Type != token.MappingStartType && g.last.Type != token.CollectEntryType {
		return "the field before has no value"
	}
	in.colon = false
	if tk.Type != token.CollectEntryType {
		g.flow = g.flow[:last]
	}
	return ""
}

// isEmpty says whether tk follows a colon or a dash that has no value.
func (g *guard) isEmpty(tk *token.Token) bool {
	dash := tk.Type == token.SequenceEntryType
	switch g.last.Type {
	case token.SequenceEntryType:
		return dash || tk.Position.Line != g.last.Position.Line && tk.Position.Column <= g.last.Position.Column
	case token.MappingValueType:
		if len(g.flow) > 0 {
			return tk.Type == token.CollectEntryType || tk.Type == token.MappingEndType ||
				tk.Type == token.SequenceEndType
		}
		// A list may stand at the column of the key it belongs to.
		at := tk.Position.Column
		return tk.Position.Line != g.last.Position.Line && (at < g.column || at == g.column && !dash)
	default:
		return false
	}
}

// close ends the mappings to the right of a line that begins at column.
func (g *guard) close(column int) {
	for open := range g.keys {
		if open > column {
			delete(g.keys, open)
		}
	}
}

// key counts the key before a colon.
func (g *guard) key() string {
	if last := len(g.flow) - 1; last >= 0 {
		g.flow[last].colon = true
		return ""
	}
	if g.last == nil {
		return ""
	}
	g.column = g.last.Position.Column
	if g.keys[g.column]++; g.keys[g.column] > EntriesMax {
		return fmt.Sprintf("more than %d fields in one place", EntriesMax)
	}
	if len(g.keys) > blockDepthMax {
		return fmt.Sprintf("nested deeper than %d", blockDepthMax)
	}
	return ""
}
