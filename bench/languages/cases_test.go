package languages_test

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// conformance is the folder of the cases.
const conformance = root + "/clients/conformance"

// Case is one case of the list.
type Case struct {
	Name string
	// Open is added to how the client is opened.
	Open map[string]any
	// Script is what the nodes answer, one after another, of a case of HTTP alone.
	Script [][]Scripted
	Steps  []Step
	// Asked is how many requests each node has got in the end; Seen is what they said.
	Asked []int
	Seen  [][]map[string]any
}

// Step is something that a client does, or that is done to nodes.
type Step struct {
	Do   map[string]any
	Node map[string]any
	// Want is what the answer has to have; it may have more.
	Want map[string]any
	// Until: it is done again until the answer is as wanted.
	Until bool
}

// load reads the list, in which {run} stands for a name that nobody else uses, and {id1} for a
// lease id of each case's own.
func load(t *testing.T, run string) (list struct{ Cases, Faults, HTTP []Case }) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(conformance, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.ReplaceAll(data, []byte("{run}"), []byte(run))
	var raw struct{ Cases, Faults, HTTP []json.RawMessage }
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	read := func(from []json.RawMessage) (cases []Case) {
		for _, one := range from {
			decoder := json.NewDecoder(bytes.NewReader(bytes.ReplaceAll(one, []byte("{id1}"), []byte(newID()))))
			decoder.DisallowUnknownFields()
			var c Case
			if err := decoder.Decode(&c); err != nil {
				t.Fatalf("%s: %v", one, err)
			}
			cases = append(cases, c)
		}
		return cases
	}
	list.Cases, list.Faults, list.HTTP = read(raw.Cases), read(raw.Faults), read(raw.HTTP)
	return list
}

func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

// differences is how got is not as wanted: an object has to have the members that are wanted, a
// list as many elements, and what ends in _ms lies between two numbers.
func differences(at string, want, got any) (found []string) {
	switch want := want.(type) {
	case map[string]any:
		has, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s: %v is no object", at, got)}
		}
		for name, one := range want {
			found = append(found, differences(at+"."+name, one, has[name])...)
		}
	case []any:
		if strings.HasSuffix(at, "_ms") && len(want) == 2 {
			n, ok := got.(float64)
			low, _ := want[0].(float64)
			high, _ := want[1].(float64)
			if !ok || n < low || n > high {
				found = append(found, fmt.Sprintf("%s: %v is not from %v to %v", at, got, low, high))
			}
			return found
		}
		has, ok := got.([]any)
		if !ok || len(has) != len(want) {
			return []string{fmt.Sprintf("%s: %v, want %v", at, got, want)}
		}
		for i := range want {
			found = append(found, differences(fmt.Sprintf("%s[%d]", at, i), want[i], has[i])...)
		}
	default:
		if got != want {
			found = append(found, fmt.Sprintf("%s: %v, want %v", at, got, want))
		}
	}
	return found
}

var words = regexp.MustCompile(`[^a-z0-9]+`)

// title is a case's name as that of a test.
func title(name string) string { return words.ReplaceAllString(strings.ToLower(name), "_") }

// TestEveryCaseCanFail: each step wants something, and what is wanted is compared.
func TestEveryCaseCanFail(t *testing.T) {
	t.Parallel()
	list := load(t, "none")
	for _, c := range append(append(list.Cases, list.Faults...), list.HTTP...) {
		for i, step := range c.Steps {
			if (step.Do == nil) == (step.Node == nil) || step.Do != nil && len(step.Want) == 0 {
				t.Errorf("%s: step %d does or wants nothing", c.Name, i)
			}
			if step.Want != nil && len(differences("", step.Want, map[string]any{})) == 0 {
				t.Errorf("%s: step %d: an empty answer passes for %v", c.Name, i, step.Want)
			}
		}
	}
}
