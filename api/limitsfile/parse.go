package limitsfile

import (
	"errors"

	"github.com/quorlease/quorlease/api/limitsfile/callers"
	"github.com/quorlease/quorlease/api/limitsfile/strict"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// FileMax is the largest file, in bytes.
const FileMax = 512 << 10

// Parse is shorthand for ParseNamed with the name "limits.yaml".
func Parse(data []byte) (*quorleasev1.LimitsApplyRequest, error) {
	return ParseNamed("limits.yaml", data)
}

// ParseNamed reads a limits file and checks all of it. The request names the
// limits and retry budgets of the file, in its order, and sets only what the
// file says: defaults stay absent. The error is SourceErrors; name is what they
// call the file.
func ParseNamed(name string, data []byte) (*quorleasev1.LimitsApplyRequest, error) {
	file, err := ParseFile(name, data)
	if err != nil {
		return nil, err
	}
	return file.Request, nil
}

// File is a limits file, with what is not applied of it.
type File struct {
	Request *quorleasev1.LimitsApplyRequest
	// Clients are how callers behave, in the order of the file.
	Clients []callers.Client

	reader *strict.Reader
}

// Place is where the file has a field, as the file calls it, or the nearest thing
// around it. Both count from 1.
func (f *File) Place(field string) (line, column int) {
	at := f.reader.Nearest(field)
	return at.Line, at.Column
}

// ParseFile is ParseNamed for somebody who looks at all of the file.
func ParseFile(name string, data []byte) (*File, error) {
	d := &decoder{strict.New(name)}
	file := &File{Request: &quorleasev1.LimitsApplyRequest{}, reader: d.Reader}
	// Somebody who truncated the file by accident must not delete every limit
	// with --prune.
	if root := d.Root(data, FileMax, "; write limits: [] to name none"); root != nil {
		d.document(root, file)
		d.resolve(file.Request)
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return file, nil
}

// decoder turns a syntax tree into a request and collects what is wrong.
type decoder struct{ *strict.Reader }

// resolve holds what was read to the rules of the protocol, and puts each
// problem where the file has the field, or the nearest thing around it.
func (d *decoder) resolve(req *quorleasev1.LimitsApplyRequest) {
	if d.Err() != nil {
		return
	}
	_, err := ResolveAll(req)
	var wrong FieldErrors
	if !errors.As(err, &wrong) {
		return
	}
	for _, one := range wrong {
		field := d.sourcePath(req, one.Field)
		d.Fail(field, "%s", one.Problem)
	}
}
