package callers

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/quorlease/quorlease/api/limitsfile/written"
)

// Read reads the section under path. What it returns is of use only where Fail was
// never called.
func Read(r Reader, n ast.Node, path string) []Client {
	items := r.Items(n, path)
	if len(items) > ClientsMax {
		r.Fail(n, path, "%d of them, more than %d", len(items), ClientsMax)
		return nil
	}
	var list []Client
	first := map[string]int{}
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		c := r.client(item, at)
		if before, twice := first[c.Name]; twice && c.Name != "" {
			r.Fail(item, at+".match.client", "%s is used twice, first by %s[%d]", written.Quote(c.Name), path, before)
		} else {
			first[c.Name] = i
		}
		list = append(list, c)
	}
	return list
}

func (r Reader) client(n ast.Node, path string) Client {
	f := r.Fields(n, path, "match", "instances", "delay", "jitter", "attempts", "fallback_after",
		"honours_retry_after", "dedupes", "measures")
	c := Client{
		Instances:     r.within(f["instances"], path+".instances", instancesMax),
		Delay:         word(r, f["delay"], path+".delay", delays),
		Jitter:        r.Share(f["jitter"], path+".jitter"),
		Attempts:      r.attempts(f["attempts"], path+".attempts"),
		FallbackAfter: r.within(f["fallback_after"], path+".fallback_after", attemptsMax),
		Honours:       r.truth(f["honours_retry_after"], path+".honours_retry_after"),
		Dedupes:       r.truth(f["dedupes"], path+".dedupes"),
		Measures:      r.measures(f["measures"], path+".measures"),
	}
	if f["match"] != nil {
		c.Name = r.Text(r.Fields(f["match"], path+".match", "client")["client"], path+".match.client")
	}
	if problem := r.Pattern(c.Name); problem != "" {
		r.Fail(f["match"], path+".match.client", "%s", problem)
	}
	return c
}

// within is a whole number from 1 to most.
func (r Reader) within(n ast.Node, path string, most int64) *int64 {
	value := r.Size(n, path)
	if value != nil && (*value < 1 || *value > most) {
		r.Fail(n, path, "%d is out of range 1..%d", *value, most)
	}
	return value
}

func (r Reader) truth(n ast.Node, path string) *bool {
	if n == nil {
		return nil
	}
	b := r.Boolean(n, path)
	return &b
}

func word[T ~int32](r Reader, n ast.Node, path string, known written.Words[T]) (value T) {
	text := r.Text(n, path)
	if _, is := n.(*ast.StringNode); !is {
		// It is absent, or Text has said what is wrong.
		return value
	}
	value, problem := known.Parse(text)
	if problem != "" {
		r.Fail(n, path, "%s", problem)
	}
	return value
}

func (r Reader) attempts(n ast.Node, path string) (list []Layer) {
	if n == nil {
		return nil
	}
	f := r.Fields(n, path, layers...)
	for _, name := range layers {
		if most := r.within(f[name], path+"."+name, attemptsMax); most != nil {
			list = append(list, Layer{Name: name, Attempts: *most})
		}
	}
	return list
}

// measures is empty, and not nil, where nothing is measured.
func (r Reader) measures(n ast.Node, path string) (list []string) {
	if n != nil {
		list = []string{}
	}
	for i, item := range r.Items(n, path) {
		at := fmt.Sprintf("%s[%d]", path, i)
		word(r, item, at, measures)
		name := r.Text(item, at)
		if slices.Contains(list, name) {
			r.Fail(item, at, "%s is there twice", written.Quote(name))
		}
		list = append(list, name)
	}
	return list
}
