package replay

import (
	"errors"
	"fmt"
	"net/http"
)

// Header is where a request has its idempotency key, and Replayed where an answer says that it was
// given before.
const (
	Header   = "Idempotency-Key"
	Replayed = "Idempotent-Replayed"
)

// KeyMax is the longest key, in bytes.
const KeyMax = 256

// IsWrite says whether requests of a method may have an effect each time: the others' keys mean
// nothing.
func IsWrite(method string) bool { return method == http.MethodPost || method == http.MethodPatch }

// ReadKey is the key of a request, empty where it has none. It is written as a string of structured
// fields (RFC 8941), or without the quotation marks, as most programs do; both are the same key. The
// error says what is wrong with one, and does not repeat it.
func ReadKey(h http.Header) (string, error) {
	switch values := h[Header]; {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", errors.New("it is there more than once")
	case values[0] == "":
		return "", errors.New("it is empty")
	case len(values[0]) > 2*KeyMax+2:
		return "", tooLong()
	case values[0][0] == '"':
		return quoted(values[0][1:])
	default:
		return bare(values[0])
	}
}

func tooLong() error { return fmt.Errorf("it is longer than %d bytes", KeyMax) }

// bare is a key without quotation marks: what no list and no parameter of a header could be.
func bare(text string) (string, error) {
	if len(text) > KeyMax {
		return "", tooLong()
	}
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' || c == '"' || c == ',' || c == ';' || c == '\\' {
			return "", errors.New("it has characters that it may have in quotation marks only, or not at all")
		}
	}
	return text, nil
}

// quoted is a key behind its first quotation mark.
func quoted(text string) (string, error) {
	var key []byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"' && i != len(text)-1:
			return "", errors.New("something stands behind its last quotation mark")
		case c == '"' && len(key) == 0:
			return "", errors.New("it is empty")
		case c == '"' && len(key) > KeyMax:
			return "", tooLong()
		case c == '"':
			return string(key), nil
		case c == '\\':
			if i++; i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", errors.New(`a backslash stands before neither '"' nor '\'`)
			}
			c = text[i]
		case c < ' ' || c > '~':
			return "", errors.New("it has characters that are not printable ASCII")
		}
		key = append(key, c)
	}
	return "", errors.New("its last quotation mark is missing")
}
