package replay

import (
	"net/http"
	"strings"
	"testing"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("k", KeyMax)
	for _, row := range []struct{ value, key, problem string }{
		{`"8e03978e-40d5-43dd-bc93-6894a57f9324"`, "8e03978e-40d5-43dd-bc93-6894a57f9324", ""},
		{"8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324", ""},
		{`"a \"b\" \\ c;d,e"`, `a "b" \ c;d,e`, ""},
		{"a+b/c==", "a+b/c==", ""},
		{longest, longest, ""},
		{`"` + strings.Repeat(`\\`, KeyMax) + `"`, strings.Repeat(`\`, KeyMax), ""},
		{longest + "k", "", "longer than 256 bytes"},
		{`"` + longest + `k"`, "", "longer than 256 bytes"},
		{strings.Repeat("k", 1<<20), "", "longer than 256 bytes"},
		{"", "", "empty"},
		{`""`, "", "empty"},
		{`"`, "", "last quotation mark is missing"},
		{`"a`, "", "last quotation mark is missing"},
		{`"a\"`, "", "last quotation mark is missing"},
		{`"a\`, "", "backslash"},
		{`"a\b"`, "", "backslash"},
		{`"a";b=1`, "", "behind its last"},
		{`"a", "b"`, "", "behind its last"},
		{`"a` + "\x00" + `"`, "", "printable"},
		{`"ä"`, "", "printable"},
		{"a,b", "", "quotation marks only"},
		{"a b", "", "quotation marks only"},
		{"ä", "", "quotation marks only"},
	} {
		key, err := ReadKey(http.Header{Header: {row.value}})
		said := ""
		if err != nil {
			said = err.Error()
		}
		if key != row.key || (err == nil) != (row.problem == "") || !strings.Contains(said, row.problem) {
			t.Errorf("%.40q: %.40q, %v; want %.40q, %q", row.value, key, err, row.key, row.problem)
		}
	}
	if key, err := ReadKey(http.Header{}); key != "" || err != nil {
		t.Errorf("none: %q, %v", key, err)
	}
	if _, err := ReadKey(http.Header{Header: {"a", "a"}}); err == nil {
		t.Error("two of them are one key")
	}
}

// FuzzReadKey: what is taken is of bounded length, and is itself again once it is written down.
func FuzzReadKey(f *testing.F) {
	for _, seed := range []string{`"a"`, "a", `"\"\\"`, `"`, `"a";b`, "a,b", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, err := ReadKey(http.Header{Header: {value}})
		if err != nil {
			return
		}
		if key == "" || len(key) > KeyMax {
			t.Fatalf("%q is the key %q", value, key)
		}
		written := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := ReadKey(http.Header{Header: {written}}); err != nil || again != key {
			t.Fatalf("%q, written as %q, is %q, %v", key, written, again, err)
		}
	})
}
