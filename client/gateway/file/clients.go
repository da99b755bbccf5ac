package file

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/client/names"
)

const (
	clientsMax       = 16_384
	clientClassesMax = 64
	// keyMin is the shortest key of a client, in bytes: a shorter one is found from its hash.
	keyMin = 16
)

func (r *reader) clients(n ast.Node, f *File) {
	items := r.Items(n, "clients")
	if len(items) > clientsMax {
		r.FailNode(n, "clients", "%d, more than %d", len(items), clientsMax)
		return
	}
	for i, item := range items {
		f.Who.Clients = append(f.Who.Clients, r.client(item, fmt.Sprintf("clients[%d]", i)))
	}
}

func (r *reader) client(n ast.Node, path string) who.Client {
	fields := r.Fields(n, path, "name", "tenant", "classes", "key_sha256", "key_file", "may", "tenants", "any",
		"retry_marker")
	if !strict.IsMapping(n) {
		return who.Client{}
	}
	c := who.Client{
		Name:     r.text(fields["name"], path+".name", names.ValueProblem),
		Tenant:   r.text(fields["tenant"], path+".tenant", names.ValueProblem),
		Classes:  r.texts(fields["classes"], path+".classes", clientClassesMax, names.DimensionProblem),
		Keys:     r.hashes(fields["key_sha256"], path+".key_sha256"),
		May:      r.texts(fields["may"], path+".may", clientsMax, names.ValueProblem),
		Tenants:  r.texts(fields["tenants"], path+".tenants", clientsMax, names.ValueProblem),
		Any:      r.Boolean(fields["any"], path+".any"),
		Unmarked: r.mode(fields["retry_marker"], path+".retry_marker"),
	}
	if c.Name == "" {
		r.Fail(path+".name", "missing: 1 to %d bytes", names.ClientMax)
	}
	if c.Tenant == "" && fields["tenant"] == nil {
		// Nobody shares anything with it.
		c.Tenant = c.Name
	}
	for i, key := range r.secretFile(fields["key_file"], path+".key_file") {
		if len(key) < keyMin {
			r.Fail(path+".key_file", "key %d has %d bytes, at least %d", i+1, len(key), keyMin)
		}
		c.Keys = append(c.Keys, who.HashKey(key))
	}
	return c
}

// hashes reads hashes of keys, also those that YAML takes for a number. Whether they are some
// is for package who to say, which repeats none.
func (r *reader) hashes(n ast.Node, path string) (list []string) {
	for i, item := range r.Items(n, path) {
		if _, is := item.(ast.ScalarNode); !is || item.Type() == ast.NullType {
			r.FailNode(item, fmt.Sprintf("%s[%d]", path, i), "want a SHA-256 in hex digits")
			continue
		}
		list = append(list, item.GetToken().Value)
	}
	return list
}

// mode reads what becomes of requests that a rule finds.
func (r *reader) mode(n ast.Node, path string) who.Mode {
	if n == nil {
		return who.Default
	}
	return chosen(r, n, path, []string{"off", "shadow", "warn", "enforce"}, who.Off, who.Shadow, who.Warn, who.Enforce)
}

func (r *reader) identify(n ast.Node, f *File) {
	if n == nil {
		return
	}
	fields := r.Fields(n, "identify", "header", "class_header", "tenant_header", "missing", "unnamed", "retry_marker",
		"classes")
	w := &f.Who
	w.Name = r.text(fields["header"], "identify.header", headerProblem)
	w.Class = r.text(fields["class_header"], "identify.class_header", headerProblem)
	w.Tenant = r.text(fields["tenant_header"], "identify.tenant_header", headerProblem)
	w.Unidentified = r.mode(fields["missing"], "identify.missing")
	w.Unnamed = r.mode(fields["unnamed"], "identify.unnamed")
	w.Unmarked = r.mode(fields["retry_marker"], "identify.retry_marker")
	w.Classes = r.texts(fields["classes"], "identify.classes", clientClassesMax, names.DimensionProblem)
}

func headerProblem(s string) string {
	if !isToken(s) {
		return written.Quote(s) + " is no name of a header"
	}
	return ""
}

// identities holds what was read to the rules between clients, and puts each problem where
// the file has the field, or the nearest thing around it.
func (r *reader) identities(f *File) {
	config := f.Who
	config.Loopback = len(config.Clients) == 0
	_, err := who.New(config)
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
	case errors.As(err, &joined):
		for _, one := range joined.Unwrap() {
			r.blame(one.Error())
		}
	default:
		r.blame(err.Error())
	}
}

// called are the fields of who.Config and who.Client as the file calls them.
var called = map[string]string{
	"name header": "identify.header", "class header": "identify.class_header", "tenant header": "identify.tenant_header",
	"unidentified": "identify.missing", "unnamed": "identify.unnamed", "unmarked": "identify.retry_marker",
	"classes": "identify.classes",
}

// blame puts a problem that begins with a field, or with a client and its field, where it
// belongs.
func (r *reader) blame(text string) {
	at := ""
	if rest, is := strings.CutPrefix(text, "clients["); is {
		index, after, _ := strings.Cut(rest, "] ")
		if quoted, err := strconv.QuotedPrefix(after); err == nil {
			at, text = "clients["+index+"]", strings.TrimPrefix(after[len(quoted):], ": ")
		}
	}
	field, problem, _ := strings.Cut(text, ": ")
	switch name := called[field]; {
	case at != "":
		name, number, _ := strings.Cut(field, "[")
		switch name {
		case "keys":
			if name = "key_sha256"; !r.Has(at+".key_sha256") && r.Has(at+".key_file") {
				name = "key_file"
			}
		case "unmarked":
			name = "retry_marker"
		}
		if number != "" {
			number = "[" + number
		}
		field = at + "." + name + number
	case name != "":
		field = name
	}
	r.Fail(field, "%s", problem)
}
