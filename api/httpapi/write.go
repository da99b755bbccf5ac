package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/quorlease/quorlease/api/server"
)

// options: names as in the .proto files, 64-bit numbers as strings, defaults
// there, durations like "1.500s".
var options = protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}

// toJSON writes a message on one line. The library varies its white space on
// purpose; compacted it is always the same.
func toJSON(message proto.Message) ([]byte, error) {
	raw, err := options.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("write %T as JSON: %w", message, err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, fmt.Errorf("write %T as JSON: %w", message, err)
	}
	return out.Bytes(), nil
}

func write(w http.ResponseWriter, code int, message proto.Message) {
	data, err := toJSON(message)
	if err != nil {
		fail(w, err)
		return
	}
	writeBody(w, code, data)
}

func writeBody(w http.ResponseWriter, code int, data []byte) {
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(code)
	// Whoever does not read the answer has gone.
	_, _ = w.Write(append(data, '\n'))
}

// failure is an error as JSON.
type failure struct {
	Code    string            `json:"code"`
	Reason  string            `json:"reason"`
	Message string            `json:"message"`
	Details []json.RawMessage `json:"details"`
}

// fail answers with the row of the error table.
func fail(w http.ResponseWriter, err error) {
	e := server.ErrorOf(err)
	if wait := e.Cause.RetryAfter; wait > 0 {
		// Whole seconds, rounded up: never earlier than it helps (A08).
		w.Header().Set("Retry-After", fmt.Sprint(int64((wait+time.Second-1)/time.Second)))
	}
	writeBody(w, e.Cause.HTTP, failureJSON(e))
}

func failureJSON(e *server.Error) []byte {
	f := failure{
		Code: e.Cause.CodeName(), Reason: e.Cause.Reason, Message: e.Message, Details: []json.RawMessage{},
	}
	for _, detail := range e.GRPCStatus().Proto().GetDetails() {
		if data, err := toJSON(detail); err == nil {
			f.Details = append(f.Details, data)
		}
	}
	data, err := json.Marshal(f)
	if err != nil {
		// Strings and JSON always are JSON.
		return []byte("{}")
	}
	return data
}
