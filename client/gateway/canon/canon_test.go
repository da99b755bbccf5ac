package canon

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

var key = []byte("0123456789abcdef0123456789abcdef")

func hasher(t testing.TB, c Config) *Hasher {
	t.Helper()
	if c.Key == nil {
		c.Key = key
	}
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestSpelling(t *testing.T) {
	h := hasher(t, Config{})
	for _, test := range []struct{ name, a, b string }{
		{"S2-13_order_of_names", `{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"d":3,"c":2},"a":1}`},
		{"S2-13_white_space", `{"a":[1,2,{"b":null}]}`, " {\t\"a\" : [ 1 ,\r\n2, { \"b\": null } ] } \n"},
		{
			"S2-13_deep_order", `[{"a":{"x":"` + strings.Repeat("long", 40) + `","y":1}}]`,
			`[{"a":{"y":1,"x":"` + strings.Repeat("long", 40) + `"}}]`,
		},
		{"escapes", `{"\u0061":"\u00e9\/\n"}`, "{\"a\":\"é/\\u000a\"}"},
		{"surrogate_pair", `"\ud83d\ude00"`, `"😀"`},
		{"whole_numbers", `[1,100,-3]`, `[1.0,1e2,-30e-1]`},
		{"parts", `[0.5,0.001]`, `[5e-1,1E-3]`},
		{"nothing", `[0,0,0]`, `[-0,0.00,0e99999999999999999999]`},
		{"exponents", `[1e0010]`, `[1E+10]`},
		{"volatile_value", `{"model":"m","user":"a","seed":1}`, `{"model":"m","user":"b","seed":2}`},
		{"volatile_absent", `{"model":"m","metadata":{"x":[1]}}`, `{"model":"m"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, b := h.Body([]byte(test.a)), h.Body([]byte(test.b))
			if !a.JSON || !b.JSON {
				t.Errorf("read as JSON: %v and %v", a.JSON, b.JSON)
			}
			if a.Work != b.Work {
				t.Errorf("%s and %s differ", test.a, test.b)
			}
		})
	}
}

func TestMeaning(t *testing.T) {
	h := hasher(t, Config{})
	bodies := []string{
		``, ` `, `{}`, `[]`, `null`, `true`, `false`, `""`, `0`, `"0"`, `[0]`, `{"":0}`, `[[]]`, `[{}]`, `{"a":{}}`,
		`{"a":[]}`, `{"a":1}`, `{"a":2}`, `{"a":-1}`, `{"a":"1"}`, `{"a":10}`, `{"a":0.1}`, `{"b":1}`, `{"a":1,"b":1}`,
		`{"a":1,"a":2}`, `{"a":2,"a":1}`, `[1,2]`, `[2,1]`, `[12]`, `[1,[2]]`, `[[1],2]`, `["ab"]`, `["a","b"]`,
		`["a\u0000b"]`, `{"ab":"c"}`, `{"a":"bc"}`, `["\ud83d"]`, `["\ude00"]`, `["\ufffd"]`, `["A"]`, `["a"]`, `["a "]`,
		`[9007199254740992]`, `[9007199254740993]`, `[1e999999999999999999]`, `[1e999999999999999998]`,
		`{"tool":{"user":"a"}}`, `{"tool":{"user":"b"}}`, `[{"seed":1}]`, `[{"seed":2}]`,
		`{"messages":[{"role":"user","content":"hello, this is a text that is longer than what stands inline, one"}]}`,
		`{"messages":[{"role":"user","content":"hello, this is a text that is longer than what stands inline, two"}]}`,
		`{"a":1}x`, `{"a":1`, `{"a":01}`, `{"a":+1}`, `{'a':1}`, `{"a":1,}`, `nul`, "[\"\x01\"]", "[\"\xff\"]", "[\"\xfe\"]",
	}
	seen := make(map[Sum]string)
	for _, body := range bodies {
		sums := h.Body([]byte(body))
		if other, ok := seen[sums.Work]; ok {
			t.Errorf("%q and %q are the same", body, other)
		}
		seen[sums.Work] = body
	}
}

// TestMany: what is folded into a hash is told apart by all of it.
func TestMany(t *testing.T) {
	h := hasher(t, Config{})
	seen := make(map[Sum]int)
	for n := range 5000 {
		body := fmt.Sprintf(`{"messages":[{"content":"%s %d"}]}`, strings.Repeat("long ", 20), n)
		sum := h.Body([]byte(body)).Work
		if other, ok := seen[sum]; ok {
			t.Fatalf("%d and %d are the same", n, other)
		}
		seen[sum] = n
	}
}

// TestRepeatedName: of one name the order counts, and only that.
func TestRepeatedName(t *testing.T) {
	h := hasher(t, Config{})
	var front, back, mixed, turned []string
	for n := range 50 {
		again, other := fmt.Sprintf(`"n":%d`, n), fmt.Sprintf(`"m%02d":0`, (n*7)%50)
		front, back = append(front, again), append(back, other)
		mixed = append(mixed, other, again)
		turned = append(turned, other, fmt.Sprintf(`"n":%d`, 49-n))
	}
	sum := func(lists ...[]string) Sum {
		return h.Body([]byte("[{" + strings.Join(slices.Concat(lists...), ",") + "}]")).Work
	}
	if a, b, c := sum(front, back), sum(back, front), sum(mixed); a != b || b != c {
		t.Errorf("in one order among themselves: %v, %v and %v", a, b, c)
	}
	if sum(mixed) == sum(turned) {
		t.Error("in another order: the same")
	}
}

// TestExact: what answers are shared by leaves out nothing.
func TestExact(t *testing.T) {
	h := hasher(t, Config{})
	a := h.Body([]byte(`{"model":"m","seed":1}`))
	b := h.Body([]byte(`{"seed":2.0,"model":"m"}`))
	c := h.Body([]byte(`{"seed":2,"model":"m"}`))
	if a.Work != b.Work || a.Exact == b.Exact || b.Exact != c.Exact {
		t.Errorf("seeds 1, 2.0 and 2: %v, %v and %v", a, b, c)
	}
	if d := h.Body([]byte(`{"model":"m"}`)); d.Exact != d.Work || d.Work != a.Work {
		t.Errorf("without a seed: %v, with one: %v", d, a)
	}
	none := hasher(t, Config{Volatile: []string{}})
	if a := none.Body([]byte(`{"model":"m","seed":1}`)); a.Work != a.Exact {
		t.Errorf("nothing volatile: %v", a)
	}
	own := hasher(t, Config{Volatile: []string{"now"}})
	a, b = own.Body([]byte(`{"now":1,"user":1}`)), own.Body([]byte(`{"n\u006fw":2,"user":1}`))
	if c := own.Body([]byte(`{"now":1,"user":2}`)); a.Work != b.Work || a.Work == c.Work {
		t.Errorf("an own list: %v, %v and %v", a, b, c)
	}
}

func TestKey(t *testing.T) {
	body := []byte(`{"model":"m"}`)
	sum := hasher(t, Config{}).Body(body)
	if other := hasher(t, Config{}).Body(body); other != sum {
		t.Errorf("one key: %v and %v", sum, other)
	}
	if other := hasher(t, Config{Key: []byte("another key that is secret")}).Body(body); other.Work == sum.Work {
		t.Error("another key gives the same sum")
	}
	drawn, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if drawn.Body(body) == again.Body(body) {
		t.Error("two drawn keys give the same sum")
	}
}

func TestBounds(t *testing.T) {
	h := hasher(t, Config{BytesMax: 100, DepthMax: 3})
	for _, test := range []struct {
		body string
		json bool
	}{
		{`[[[1]]]`, true},
		{`[[[[1]]]]`, false},
		{`{"a":{"b":{"c":1}}}`, true},
		{`{"a":{"b":{"c":{}}}}`, false},
		{`"` + strings.Repeat("x", 97) + `"`, true},
		{`"` + strings.Repeat("x", 99) + `"`, false},
	} {
		sums := h.Body([]byte(test.body))
		if sums.JSON != test.json {
			t.Errorf("%s: JSON %v, want %v", test.body, sums.JSON, test.json)
		}
		if same := h.Body([]byte(test.body)); same != sums {
			t.Errorf("%s: %v and then %v", test.body, sums, same)
		}
		if other := h.Body([]byte(test.body + " ")); (other.Work == sums.Work) != test.json {
			t.Errorf("%s with a space behind it: same %v", test.body, other.Work == sums.Work)
		}
	}
	wide := hasher(t, Config{})
	many := "{" + strings.Repeat(`"a":1,`, membersMax) + `"b":1}`
	if sums := wide.Body([]byte(many)); sums.JSON {
		t.Errorf("%d members were kept", membersMax+1)
	}
	if sums := wide.Body([]byte("[" + strings.Repeat(`{"a":1},`, membersMax+1) + "1]")); !sums.JSON {
		t.Error("members of objects that have ended count")
	}
}

func TestJoin(t *testing.T) {
	h := hasher(t, Config{})
	body := h.Body([]byte(`{}`)).Work
	seen := make(map[Sum]int)
	for i, texts := range [][]string{nil, {""}, {"", ""}, {"a"}, {"a", ""}, {"", "a"}, {"a", "b"}, {"ab"}, {"b", "a"}} {
		sum := h.Join(body, texts...)
		if other, ok := seen[sum]; ok {
			t.Errorf("%q is as number %d", texts, other)
		}
		seen[sum] = i
		if again := h.Join(body, texts...); again != sum {
			t.Errorf("%q: %v and then %v", texts, sum, again)
		}
	}
	if h.Join(body, "a") == h.Join(Sum{}, "a") {
		t.Error("the body makes no difference")
	}
}

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		config Config
		want   string
	}{
		{Config{Key: []byte("short")}, "key: 5 bytes, at least 16"},
		{Config{Volatile: []string{""}}, "volatile[0]: 0 bytes, 1 to 256"},
		{Config{Volatile: make([]string, 65)}, "volatile: 65 names, at most 64"},
		{Config{BytesMax: -1}, "bytes max: -1, 1 to 67108864"},
		{Config{DepthMax: 1001}, "depth max: 1001, 1 to 1000"},
	} {
		if _, err := New(test.config); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q, want %q", err, test.want)
		}
	}
}

// TestAllocations: nothing is allocated for a value. The pool may have to, now and then.
func TestAllocations(t *testing.T) {
	h := hasher(t, Config{})
	message := `{"role":"user","content":"a\nb","n":1.50},`
	body := []byte(`{"user":"u","messages":[` + strings.Repeat(message, 200) + `null],"max_tokens":300}`)
	h.Body(body)
	if n := testing.AllocsPerRun(100, func() { h.Join(h.Body(body).Work, "client", "POST", "/v1/chat") }); n > 25 {
		t.Errorf("%v allocations for 200 messages", n)
	}
}

func BenchmarkBody(b *testing.B) {
	h := hasher(b, Config{})
	body := []byte(`{"model":"m","messages":[{"role":"system","content":"` + strings.Repeat("be brief. ", 50) +
		`"},{"role":"user","content":"` + strings.Repeat("what is this? ", 600) + `"}],"max_tokens":300,"temperature":0.2}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		h.Body(body)
	}
}
