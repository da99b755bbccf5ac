package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/api/server/convert"
)

const (
	typeJSON = "application/json"
	typeYAML = "application/yaml"
)

// body serves a call whose request is the JSON body.
func (h *handler) body(call string, most int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h.call(w, r, call, func(request proto.Message) error {
			if _, err := contentType(r, typeJSON); err != nil {
				return err
			}
			if err := noQuery(r); err != nil {
				return err
			}
			data, err := read(w, r, most)
			if err != nil {
				return err
			}
			return fromJSON(data, request)
		})
	}
}

// query serves a call whose request is in the query, and in the path for one
// limit. What changes something this way is a DELETE, which no page can make a
// browser send to another origin.
func (h *handler) query(call string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h.call(w, r, call, func(request proto.Message) error {
			values, err := url.ParseQuery(r.URL.RawQuery)
			if err != nil {
				return convert.Wrong("query", "can't be read")
			}
			if name, found := strings.CutPrefix(r.URL.Path, limitPath); found {
				if values.Has("name") {
					return convert.Wrong("name", "is in the path already")
				}
				values.Set("name", name)
			}
			return fromQuery(values, request)
		})
	}
}

// apply serves Limits.Apply: a request in JSON, or a limits file in YAML with the
// rest of the request in the query.
func (h *handler) apply(w http.ResponseWriter, r *http.Request) {
	h.call(w, r, limits+"Apply", func(request proto.Message) error {
		kind, err := contentType(r, typeJSON, typeYAML)
		if err != nil {
			return err
		}
		data, err := read(w, r, applyMax)
		if err != nil {
			return err
		}
		if kind == typeJSON {
			return errors.Join(noQuery(r), fromJSON(data, request))
		}
		values, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return convert.Wrong("query", "can't be read")
		}
		rest := &quorleasev1.LimitsApplyRequest{}
		if err := fromQuery(values, rest); err != nil {
			return err
		}
		file, err := limitsfile.Parse(data)
		if err != nil {
			return err
		}
		proto.Merge(file, rest)
		proto.Merge(request, file)
		return nil
	})
}

// call answers one call; decode fills in its request.
func (h *handler) call(w http.ResponseWriter, r *http.Request, name string, decode func(proto.Message) error) {
	answer, err := h.api.Call(r.Context(), name, func(request any) error {
		message, ok := request.(proto.Message)
		if !ok {
			return fmt.Errorf("%T is no message", request)
		}
		if err := decode(message); err != nil {
			return err
		}
		return allowWait(w, message)
	})
	if err != nil {
		fail(w, err)
		return
	}
	message, ok := answer.(proto.Message)
	if !ok {
		fail(w, fmt.Errorf("%T is no message", answer))
		return
	}
	write(w, http.StatusOK, message)
}

// allowWait gives a request that may wait in a queue the time for its answer.
func allowWait(w http.ResponseWriter, request proto.Message) error {
	acquire, ok := request.(*quorleasev1.AcquireRequest)
	if !ok || acquire.GetMaxWait() == nil {
		return nil
	}
	wait := min(max(acquire.GetMaxWait().AsDuration(), 0), convert.WaitMax)
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + answerWithin)); err != nil {
		return fmt.Errorf("wait for an answer: %w", err)
	}
	return nil
}

// contentType is the one of allowed that the request announces. A page of
// another origin can't send these without asking first, and is not allowed to.
func contentType(r *http.Request, allowed ...string) (string, error) {
	given := r.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(given)
	for _, one := range allowed {
		if err == nil && kind == one {
			return one, nil
		}
	}
	return "", fmt.Errorf("%w: %s; send %s", server.ErrContentType, limitsfile.Quote(given), strings.Join(allowed, " or "))
}

// read reads a body of at most so many bytes.
func read(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, fmt.Errorf("%w: more than %d bytes", server.ErrTooLarge, most)
	case err != nil:
		return nil, convert.Wrong("body", "can't be read")
	case len(data) == 0:
		return nil, convert.Wrong("body", "missing")
	}
	return data, nil
}

func noQuery(r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	return convert.Wrong("query", "not supported here: everything is in the body")
}

// What protojson says of a field, and of a place.
var (
	unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)
	placeInJSON  = regexp.MustCompile(`\(line (\d+:\d+)\):`)
)

func fromJSON(data []byte, request proto.Message) error {
	err := protojson.Unmarshal(data, request)
	if err == nil {
		return nil
	}
	// The library varies its white space so that nobody compares its messages.
	text := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto:")
	if match := unknownField.FindStringSubmatch(text); match != nil {
		return convert.Wrong(clip(match[1]), "unknown field")
	}
	return convert.Wrong("body", clip(strings.TrimSpace(placeInJSON.ReplaceAllString(text, "line $1:"))))
}

// clip bounds what an error repeats.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// fromQuery sets the fields of a request, by their names, from a query.
func fromQuery(values url.Values, request proto.Message) error {
	message := request.ProtoReflect()
	for name, given := range values {
		field := message.Descriptor().Fields().ByName(protoreflect.Name(name))
		if field == nil || field.IsList() || field.Message() != nil || field.Enum() != nil {
			return convert.Wrong(clip(name), "unknown parameter")
		}
		if len(given) != 1 {
			return convert.Wrong(clip(name), fmt.Sprintf("given %d times", len(given)))
		}
		value, problem := scalar(field.Kind(), given[0])
		if problem != "" {
			return convert.Wrong(name, limitsfile.Quote(given[0])+": "+problem)
		}
		message.Set(field, value)
	}
	return nil
}

// scalar reads a value of the kinds that requests have.
func scalar(kind protoreflect.Kind, text string) (protoreflect.Value, string) {
	switch kind {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text), ""
	case protoreflect.BoolKind:
		switch text {
		case "true", "false":
			return protoreflect.ValueOfBool(text == "true"), ""
		}
		return protoreflect.Value{}, "want true or false"
	case protoreflect.Uint32Kind:
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return protoreflect.Value{}, "want a whole number from 0 to 4294967295"
		}
		return protoreflect.ValueOfUint32(uint32(n)), ""
	case protoreflect.Uint64Kind:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return protoreflect.Value{}, "want a whole number, 0 or more"
		}
		return protoreflect.ValueOfUint64(n), ""
	default:
		return protoreflect.Value{}, "can't be given in a query"
	}
}
