package canon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// tree is a value of JSON: nil, bool, number, string, []tree or object.
type tree any

type (
	number struct {
		digits   string
		exponent int
		negative bool
	}
	object map[string]tree
)

func drawTree(t *rapid.T, depth int) tree {
	most := 5
	if depth > 4 {
		most = 3
	}
	switch rapid.IntRange(0, most).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		digits := rapid.StringMatching(`[1-9][0-9]{0,20}`).Draw(t, "digits")
		digits = strings.TrimRight(digits, "0")
		return number{digits, rapid.IntRange(-30, 30).Draw(t, "exponent"), rapid.Bool().Draw(t, "negative")}
	case 3:
		return rapid.String().Draw(t, "string")
	case 4:
		list := make([]tree, rapid.IntRange(0, 4).Draw(t, "length"))
		for i := range list {
			list[i] = drawTree(t, depth+1)
		}
		return list
	default:
		return drawObject(t, depth)
	}
}

func drawObject(t *rapid.T, depth int) object {
	o := make(object)
	for range rapid.IntRange(0, 5).Draw(t, "members") {
		o[rapid.StringMatching(`[a-z]{1,3}|é|"`).Draw(t, "name")] = drawTree(t, depth+1)
	}
	return o
}

// spell writes a value in one of the many ways in which it can be written.
func spell(t *rapid.T, out *bytes.Buffer, v tree) {
	space := func() { out.WriteString(rapid.SampledFrom([]string{"", "", " ", "\n\t", "\r "}).Draw(t, "space")) }
	space()
	defer space()
	switch v := v.(type) {
	case nil:
		out.WriteString("null")
	case bool:
		fmt.Fprint(out, v)
	case number:
		spellNumber(t, out, v)
	case string:
		spellString(t, out, v)
	case []tree:
		out.WriteByte('[')
		for i, element := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			spell(t, out, element)
		}
		out.WriteByte(']')
	case object:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		out.WriteByte('{')
		space()
		for i, name := range rapid.Permutation(names).Draw(t, "order") {
			if i > 0 {
				out.WriteByte(',')
				space()
			}
			spellString(t, out, name)
			space()
			out.WriteByte(':')
			spell(t, out, v[name])
		}
		out.WriteByte('}')
	}
}

func spellNumber(t *rapid.T, out *bytes.Buffer, n number) {
	if n.negative {
		out.WriteByte('-')
	}
	exponent := n.exponent
	digits := n.digits
	for range rapid.IntRange(0, 3).Draw(t, "zeros") {
		digits += "0"
		exponent--
	}
	out.WriteString(digits[:1])
	if rest := digits[1:]; rest != "" {
		if rapid.Bool().Draw(t, "point") {
			out.WriteByte('.')
			exponent += len(rest)
		}
		out.WriteString(rest)
	}
	if exponent != 0 || rapid.Bool().Draw(t, "e0") {
		out.WriteString(rapid.SampledFrom([]string{"e", "E"}).Draw(t, "e"))
		fmt.Fprintf(out, rapid.SampledFrom([]string{"%d", "%+d", "%03d"}).Draw(t, "form"), exponent)
	}
}

func spellString(t *rapid.T, out *bytes.Buffer, s string) {
	out.WriteByte('"')
	for _, r := range s {
		switch {
		case r < ' ' || r == '"' || r == '\\' || rapid.IntRange(0, 7).Draw(t, "escape") == 0:
			if r >= 0x10000 {
				r -= 0x10000
				fmt.Fprintf(out, `\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
				break
			}
			fmt.Fprintf(out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
}

func bodyOf(t *rapid.T, v tree) []byte {
	var out bytes.Buffer
	spell(t, &out, v)
	if !json.Valid(out.Bytes()) {
		t.Fatalf("the test writes %q, which is no JSON", out.Bytes())
	}
	return out.Bytes()
}

// change changes one thing of a value; the result means something else.
func change(t *rapid.T, v tree) tree {
	switch v := v.(type) {
	case []tree:
		if len(v) > 0 && rapid.Bool().Draw(t, "inside") {
			list := slices.Clone(v)
			i := rapid.IntRange(0, len(v)-1).Draw(t, "element")
			list[i] = change(t, v[i])
			return list
		}
		return append(slices.Clone(v), nil)
	case object:
		o := make(object, len(v)+1)
		names := make([]string, 0, len(v))
		for name, value := range v {
			o[name] = value
			names = append(names, name)
		}
		slices.Sort(names)
		if len(v) > 0 {
			name := rapid.SampledFrom(names).Draw(t, "name")
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				o[name] = change(t, v[name])
			case 1:
				delete(o, name)
			default:
				delete(o, name)
				o[name+"x1"] = v[name]
			}
			return o
		}
		o["new"] = nil
		return o
	case number:
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			v.negative = !v.negative
		case 1:
			v.exponent++
		default:
			v.digits += "1"
		}
		return v
	case string:
		return v + rapid.SampledFrom([]string{" ", "x", "\x00"}).Draw(t, "more")
	case bool:
		return !v
	default:
		return false
	}
}

func TestAnySpelling(t *testing.T) {
	h := hasher(t, Config{})
	t.Run("S2-13", rapid.MakeCheck(func(t *rapid.T) {
		v := tree(drawObject(t, 0))
		one, other := bodyOf(t, v), bodyOf(t, v)
		a, b := h.Body(one), h.Body(other)
		if a != b || !a.JSON {
			t.Fatalf("%s: %v\n%s: %v", one, a, other, b)
		}
		changed := bodyOf(t, change(t, v))
		if c := h.Body(changed); c.Exact == a.Exact || c.Work == a.Work {
			t.Fatalf("%s and %s are the same", one, changed)
		}
	}))
}

// FuzzBody holds the reading of JSON against that of encoding/json: the same bodies
// are valid, and one without white space is the same.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{"a":[1,2.50e-3,{"b":"\u0041\ud83d\ude00"}],"user":null}`, `[[[[]]]]`, `"\ud800"`, `-0.0`, `{"a":1,"a":2}`,
		"\xef\xbb\xbf{}", ` {"":{"":{"":""}}} `, `[1e-99999999999999999999]`, "[\"\xc3\x28\"]",
		`{"a":"` + strings.Repeat("x", 100) + `","A":[]}`,
	} {
		f.Add([]byte(body))
	}
	h := hasher(f, Config{DepthMax: depthMaxMost})
	f.Fuzz(func(t *testing.T, body []byte) {
		sums := h.Body(body)
		if again := h.Body(bytes.Clone(body)); again != sums {
			t.Fatalf("%q: %v and then %v", body, sums, again)
		}
		if len(body) > 900 {
			// It may be nested more deeply than is read.
			return
		}
		if want := json.Valid(body) && utf8.Valid(body); sums.JSON != want {
			t.Fatalf("%q: JSON %v, want %v", body, sums.JSON, want)
		}
		var compact bytes.Buffer
		if !sums.JSON || json.Compact(&compact, body) != nil {
			return
		}
		if other := h.Body(compact.Bytes()); other != sums {
			t.Fatalf("%q: %v, without white space %v", body, sums, other)
		}
	})
}
