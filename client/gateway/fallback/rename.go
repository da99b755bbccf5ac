package fallback

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/client/gateway/estimate/scan"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

const wModel scan.Word = 1

// finder finds where a body names its model.
type finder struct {
	scan     *scan.Scanner
	from, to int
	found    int
	text     bool
}

// Begin is the scanner's, as are the other methods that a scan.Visitor has.
func (f *finder) Begin(kind scan.Kind) {
	if f.scan.Is(wModel) {
		f.from, f.text = int(f.scan.Offset()), kind == scan.String
		f.found++
	}
}

func (f *finder) End(scan.Kind) {
	if f.scan.Is(wModel) {
		f.to = int(f.scan.Offset()) + 1
	}
}

func (f *finder) Name([]byte)   {}
func (f *finder) Text([]byte)   {}
func (f *finder) Scalar([]byte) {}

// errModel is a body of which nobody can say which model it means.
var errModel = errors.New("model: want one text")

// Rename is a body that asks for another model. All other bytes stay as they are, and body is
// not changed. It is an error where body names none, or several.
func Rename(body []byte, model string) ([]byte, error) {
	f := &finder{}
	f.scan = scan.New(map[string]scan.Word{"model": wModel}, f)
	_, err := f.scan.Write(body)
	if err == nil {
		err = f.scan.Close()
	}
	if err == nil && (f.found != 1 || !f.text) {
		err = errModel
	}
	if err != nil {
		return nil, fmt.Errorf("rename model: %w", err)
	}
	name, err := json.Marshal(model)
	if err != nil {
		return nil, fmt.Errorf("rename model: %w", err)
	}
	return slices.Concat(body[:f.from], name, body[f.to:]), nil
}

// Aimed is a request as a fallback gets it.
type Aimed struct {
	Match provider.Match
	Model string
	Body  []byte
}

// Aim makes a request for a model ask for the target's, in its body or in its path. body is not
// changed. It is an error where nobody can say which model the body means.
func (t Target) Aim(match provider.Match, model string, body []byte) (Aimed, error) {
	a := Aimed{match, model, body}
	if t.Model == "" || t.Model == model {
		return a, nil
	}
	a.Model = t.Model
	if match.Deployment != "" {
		a.Match.Deployment = t.Model
		return a, nil
	}
	var err error
	a.Body, err = Rename(body, t.Model)
	return a, err
}

// Repath is an address whose path names another deployment of Azure's in the place of one.
func Repath(from *url.URL, before, after string) *url.URL {
	to := *from
	const segment = "/deployments/"
	to.Path = strings.Replace(from.Path, segment+before+"/", segment+after+"/", 1)
	to.RawPath = ""
	return &to
}
