package stream

import (
	"bytes"
	"encoding/json"
)

// Failure is what an event says of a request that has failed, in the words of the
// provider.
type Failure struct {
	// Type is such as overloaded_error or rate_limit_error.
	Type string
	// Code is such as rate_limit_exceeded, where there is one.
	Code string
	// Message is for people. It may have a wait in it.
	Message string
}

// failureMax is the longest event that may say that a request has failed.
const failureMax = 64 << 10

// FailureOf is what an event says has failed, nil where it says nothing of that kind.
// Anthropic sends an event of the type error, with an object of that name in its data;
// OpenAI sends data with such an object, and in responses data of the type error.
func FailureOf(f Frame) *Failure {
	if !f.Whole || len(f.Data) > failureMax || f.Event != "error" && !bytes.Contains(f.Data, []byte(`error`)) {
		return nil
	}
	var said struct {
		Type    string          `json:"type"`
		Error   json.RawMessage `json:"error"`
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(f.Data, &said) != nil {
		if f.Event == "error" {
			return &Failure{Type: "error", Message: string(f.Data)}
		}
		return nil
	}
	var inner struct {
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
	}
	if len(said.Error) > 0 && json.Unmarshal(said.Error, &inner) != nil {
		// Some only say a sentence.
		inner.Message = text(said.Error)
	}
	switch {
	case len(said.Error) > 0 && string(said.Error) != "null":
		return &Failure{Type: inner.Type, Code: text(inner.Code), Message: inner.Message}
	case said.Type == "error" || f.Event == "error":
		return &Failure{Type: "error", Code: text(said.Code), Message: said.Message}
	default:
		return nil
	}
}

// text is a string without its quotes, and a number as it is written.
func text(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}
