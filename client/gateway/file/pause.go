package file

import (
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

// pause reads how long to wait where a provider gives no hint.
func (r *reader) pause(n ast.Node, f *File) {
	if n == nil {
		return
	}
	const at = "pause"
	fields := r.Fields(n, at, "step", "least", "most")
	if !strict.IsMapping(n) {
		return
	}
	s := provider.Schedule{}
	readable := true
	for name, field := range map[string]*time.Duration{"step": &s.Step, "least": &s.Least, "most": &s.Most} {
		if fields[name] != nil {
			var ok bool
			*field, ok = strict.Value(r.Reader, fields[name], at+"."+name, "a duration like 500ms", written.ParseDuration)
			readable = readable && ok
		}
	}
	if fields["most"] == nil {
		r.Fail(at+".most", "missing: a pause of a fixed length brings all back at once")
		return
	}
	if err := s.Validate(); err != nil && readable {
		field, _, _ := strings.Cut(err.Error(), " ")
		r.Fail(at+"."+field, "%v", err)
	}
	f.Gateway.Pauses = s
}
