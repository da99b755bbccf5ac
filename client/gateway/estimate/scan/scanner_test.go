package scan_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/client/gateway/estimate/scan"
)

// tree builds the value that encoding/json builds of the same text, with numbers as
// they are written.
type tree struct {
	open  []any
	names []string
	name  strings.Builder
	text  strings.Builder
	known bool
	whole any
}

func (b *tree) Begin(kind scan.Kind) {
	b.names = append(b.names, b.name.String())
	b.name.Reset()
	b.text.Reset()
	switch kind {
	case scan.Object:
		b.open = append(b.open, map[string]any{})
	case scan.Array:
		b.open = append(b.open, []any{})
	default:
		b.open = append(b.open, nil)
	}
}

func (b *tree) Name(piece []byte)  { b.name.Write(piece) }
func (b *tree) Text(piece []byte)  { b.text.Write(piece) }
func (b *tree) Scalar(text []byte) { b.text.Write(text) }

func (b *tree) End(kind scan.Kind) {
	value := b.open[len(b.open)-1]
	switch kind {
	case scan.String:
		value = b.text.String()
	case scan.Number:
		value = json.Number(b.text.String())
	case scan.Bool:
		value = b.text.String() == "true"
	default:
	}
	name := b.names[len(b.names)-1]
	b.open, b.names = b.open[:len(b.open)-1], b.names[:len(b.names)-1]
	if len(b.open) == 0 {
		b.known, b.whole = true, value
		return
	}
	switch outer := b.open[len(b.open)-1].(type) {
	case map[string]any:
		outer[name] = value
	case []any:
		b.open[len(b.open)-1] = append(outer, value)
	}
}

// read reads text in pieces of so many bytes.
func read(text string, piece int) (any, error) {
	var b tree
	s := scan.New(nil, &b)
	for rest := text; rest != ""; {
		n := min(piece, len(rest))
		if _, err := s.Write([]byte(rest[:n])); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return b.whole, s.Close()
}

func want(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if !json.Valid([]byte(text)) {
		return nil, errors.New("more than one value")
	}
	return value, nil
}

var samples = []string{
	`{}`, `[]`, ` [ ] `, `0`, `-0`, `-`, `01`, `1.`, `1.5e+3`, `1e`, `1e5`, `[1,2]`, `[1,]`, `{"a":1,}`,
	`{"a" 1}`, `{a:1}`,
	`"a\u00e9\ud83d\ude00\ud83dx\ud83d"`, `"\ud83d\ud83d\ude00"`, `"\q"`, `"\u12g4"`, "\"a\nb\"", `"`, `tru`,
	`trux`, `nul`,
	`null`, `false`, `{"a":{"b":[true,null,"c",{"d":-1.25E-7}]},"":"x"}`, ``, ` `, `1 2`, `{}}`, `]`, `{"a":1]`, `[1}`,
	`"é世界"`,
	`{"\u0061":1,"a":2}`,
}

func TestScannerReadsAsTheLibraryDoes(t *testing.T) {
	for _, text := range samples {
		for piece := 1; piece <= len(text)+1; piece++ {
			agree(t, text, piece)
		}
	}
}

func agree(t *testing.T, text string, piece int) {
	t.Helper()
	got, err := read(text, piece)
	if errors.Is(err, scan.ErrDepth) || errors.Is(err, scan.ErrNumber) {
		return
	}
	whole, wrong := want(text)
	if (err == nil) != (wrong == nil) {
		t.Fatalf("%q in pieces of %d: %v, want %v", text, piece, err, wrong)
	}
	// The library mends what is no UTF-8; a scanner leaves it.
	if err == nil && strings.ToValidUTF8(text, "") == text && !reflect.DeepEqual(got, whole) {
		t.Fatalf("%q in pieces of %d (-want +got):\n%s", text, piece, cmp.Diff(whole, got))
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range samples {
		f.Add(text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, piece int) {
		agree(t, text, max(1, piece))
	})
}

func TestBounds(t *testing.T) {
	for _, row := range []struct {
		text string
		want error
		say  string
	}{
		{strings.Repeat("[", scan.DepthMax+1), scan.ErrDepth, "deeper than 128 at byte 128"},
		{strings.Repeat("1", scan.NumberMax+1), scan.ErrNumber, "number longer than 64 bytes at byte 64"},
		{`{"a":`, scan.ErrCut, "JSON ends early at byte 5"},
		{`{"a":x}`, scan.ErrSyntax, "not JSON at byte 5"},
	} {
		_, err := read(row.text, len(row.text))
		if !errors.Is(err, row.want) || err.Error() != row.say {
			t.Errorf("%.20q: %v, want %q", row.text, err, row.say)
		}
	}
	deep := strings.Repeat("[", scan.DepthMax) + strings.Repeat("]", scan.DepthMax)
	if _, err := read(deep, 7); err != nil {
		t.Errorf("as deep as may be: %v", err)
	}
	if _, err := read(strings.Repeat("1", scan.NumberMax), 7); err != nil {
		t.Errorf("as long as may be: %v", err)
	}
}

const (
	alpha scan.Word = iota + 1
	beta
)

// places keeps where the values of the path alpha, element, beta begin and end.
type places struct {
	s    *scan.Scanner
	from []int64
	to   []int64
}

func (p *places) Begin(scan.Kind) {
	if p.s.Is(alpha, scan.Element, beta) {
		p.from = append(p.from, p.s.Offset())
	}
}

func (p *places) End(scan.Kind) {
	if p.s.Is(alpha, scan.Element, beta) {
		p.to = append(p.to, p.s.Offset())
	}
}

func (p *places) Name([]byte)   {}
func (p *places) Text([]byte)   {}
func (p *places) Scalar([]byte) {}

func TestPathsAndOffsets(t *testing.T) {
	text := `{"alpha":[{"beta":"x","gamma":{"beta":1}},{"b\u0065ta":{}},["beta"]],"beta":[0]}`
	var p places
	p.s = scan.New(map[string]scan.Word{"alpha": alpha, "beta": beta}, &p)
	for range 2 {
		p.from, p.to = nil, nil
		if _, err := p.s.Write([]byte(text)); err != nil || p.s.Close() != nil {
			t.Fatal(err, p.s.Err())
		}
		var found []string
		for i, from := range p.from {
			found = append(found, text[from:p.to[i]+1])
		}
		if diff := cmp.Diff([]string{`"x"`, `{}`}, found); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		p.s.Reset()
	}
}

func TestNothingIsAllocatedForLength(t *testing.T) {
	body := []byte(`{"a":"` + strings.Repeat(`long \n`, 10_000) + `","b":[` + strings.Repeat("1,", 10_000) + `0]}`)
	s := scan.New(nil, nothing{})
	if n := testing.AllocsPerRun(10, func() {
		s.Reset()
		if _, err := s.Write(body); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

type nothing struct{}

func (nothing) Begin(scan.Kind) {}
func (nothing) End(scan.Kind)   {}
func (nothing) Name([]byte)     {}
func (nothing) Text([]byte)     {}
func (nothing) Scalar([]byte)   {}
