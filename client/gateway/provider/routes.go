package provider

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// Kind is what a route does.
type Kind string

// The kinds.
const (
	Chat        Kind = "chat"
	Completions Kind = "completions"
	Responses   Kind = "responses"
	Messages    Kind = "messages"
	Embeddings  Kind = "embeddings"
	// Invoke is whatever a model does: its body is the model's own.
	Invoke Kind = "invoke"
)

// Body is the form that clients of a route expect errors to have.
type Body int

// The forms.
const (
	// ProblemBody is RFC 9457's, for whoever is no client of a language model.
	ProblemBody Body = iota
	// OpenAIBody is {"error":{"message","type","param","code"}}.
	OpenAIBody
	// AnthropicBody is {"type":"error","error":{"type","message"},"request_id"}.
	AnthropicBody
	// GoogleBody is {"error":{"code","message","status","details"}}.
	GoogleBody
	// AWSBody is {"message"}, with the error's name in a header.
	AWSBody
)

// Model is where a request says which model it wants.
type Model int

// The places.
const (
	// InBody: the field "model" of its JSON.
	InBody Model = iota + 1
	// InPath: a segment of the path.
	InPath
)

// Route is one path that takes work. All of them are POST.
type Route struct {
	// Path has whole segments. A name in braces is any text in its place, such as
	// {deployment} in models/{deployment}:run; ** at the beginning is up to prefixMax segments.
	Path  string
	Kind  Kind
	Model Model
	Body  Body
	// Streams: what it answers comes in events, whatever the body asks for.
	Streams bool
	Seen    Seen
}

// Match is a route that fits a path.
type Match struct {
	*Route
	// Deployment is what {deployment} was, empty where the model is in the body.
	Deployment string
}

const (
	// prefixMax bounds the segments before a path that begins with **.
	prefixMax = 4
	// pathMax and deploymentMax bound what is looked at, in bytes.
	pathMax       = 1024
	deploymentMax = 128

	anySegments = "**"
	deployment  = "{deployment}"
)

// Route finds the route of a path, decoded and without its query. A slash at the
// end makes no difference. It is false for what is no work for a model.
func (t *Table) Route(path string) (Match, bool) {
	// A limit's key has to be text.
	if len(path) > pathMax || !utf8.ValidString(path) {
		return Match{}, false
	}
	var room [12]string
	segments := room[:0]
	for segment := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		segments = append(segments, segment)
	}
	for i := range t.Routes {
		if name, ok := t.Routes[i].match(segments); ok {
			return Match{&t.Routes[i], name}, true
		}
	}
	return Match{}, false
}

func (r *Route) match(segments []string) (name string, ok bool) {
	want := strings.Trim(r.Path, "/")
	if rest, any := strings.CutPrefix(want, anySegments+"/"); any {
		want = rest
		extra := len(segments) - strings.Count(want, "/") - 1
		if extra < 0 || extra > prefixMax {
			return "", false
		}
		segments = segments[extra:]
	}
	if len(segments) != strings.Count(want, "/")+1 {
		return "", false
	}
	for _, segment := range segments {
		var one string
		one, want, _ = strings.Cut(want, "/")
		value, fits := within(one, segment)
		if !fits {
			return "", false
		}
		if strings.Contains(one, deployment) {
			name = value
		}
	}
	return name, true
}

// within is what stands in a segment where its pattern has a name in braces.
func within(pattern, segment string) (value string, fits bool) {
	before, name, any := strings.Cut(pattern, "{")
	if !any {
		return "", pattern == segment
	}
	_, after, _ := strings.Cut(name, "}")
	value, begins := strings.CutPrefix(segment, before)
	value, ends := strings.CutSuffix(value, after)
	return value, begins && ends && value != "" && len(value) <= deploymentMax
}

func (r *Route) check() error {
	switch {
	case !strings.HasPrefix(r.Path, "/"):
		return errors.New("path: must begin with a slash")
	case strings.Trim(r.Path, "/") == anySegments:
		return errors.New("path: must say more than **")
	case r.Kind == "":
		return errors.New("kind: missing")
	case r.Body <= ProblemBody || r.Body > AWSBody:
		return errors.New("body: must be that of a provider")
	case (r.Model == InPath) != strings.Contains(r.Path, deployment):
		return errors.New("model: must be where the path has it")
	}
	return r.Seen.check()
}
