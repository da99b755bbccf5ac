package attempt

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const (
	// RetriesMax is the largest number of retries. A marker that says more is invalid,
	// and what is inferred stays there.
	RetriesMax = 1000
	// markersMax is how many markers are read, and headerMax how long a header's name is.
	markersMax = 32
	headerMax  = 128
)

// Layer is who counts. Each repeats what the one before it sent.
type Layer uint8

// The layers, from the outermost.
const (
	// Application: the program, a decorator of it, or a queue that redelivers.
	Application Layer = iota
	// SDK: the provider's library.
	SDK
	// Transport: a gRPC channel.
	Transport
	// Proxy: a sidecar or another gateway.
	Proxy

	layers = iota
)

// Marker is a header in which somebody counts attempts.
type Marker struct {
	// Header is its name, in any case.
	Header string
	// Field stands before the number, as in "attempt=2; max=3". Empty: the header is the
	// number.
	Field string
	// First is the number of the first attempt, 0 or 1.
	First uint32
	// Layer is who writes it.
	Layer Layer
}

// Markers are the headers that are known to count attempts, as SDKs and proxies wrote
// them in August 2026.
func Markers() []Marker {
	return []Marker{
		{Header: "X-Retry-Attempt", Layer: Application},
		{Header: "X-Stainless-Retry-Count", Layer: SDK},
		{Header: "Amz-Sdk-Request", Field: "attempt=", First: 1, Layer: SDK},
		{Header: "X-Goog-Api-Client", Field: "gccl-attempt-count/", First: 1, Layer: SDK},
		{Header: "Grpc-Previous-Rpc-Attempts", Layer: Transport},
		{Header: "X-Envoy-Attempt-Count", First: 1, Layer: Proxy},
	}
}

// Declaration is what a request says about itself.
type Declaration struct {
	// Retries is how many retries were made before this request, 0 to RetriesMax: the
	// largest of what the markers say.
	Retries uint32
	// Ceiling is the product bound over the layers, Retries to RetriesMax.
	Ceiling uint32
	// SDK is how many retries the provider's library made.
	SDK uint32
	// Layers is how many layers have retried.
	Layers int
	// Marked: at least one marker is there and valid.
	Marked bool
	// Invalid is how many markers are no number, negative or above RetriesMax. They count
	// as if they were absent.
	Invalid int
}

// Reader reads markers. It is safe for concurrent use.
type Reader struct{ markers []Marker }

// NewReader returns a reader of some markers; nil is for Markers(). Whoever may write a
// header can make the number larger, and smaller only as far as others do not say it.
func NewReader(markers []Marker) (*Reader, error) {
	if markers == nil {
		markers = Markers()
	}
	if len(markers) > markersMax {
		return nil, fmt.Errorf("markers: %d, at most %d", len(markers), markersMax)
	}
	r := &Reader{markers: make([]Marker, len(markers))}
	var problems []error
	for i, m := range markers {
		switch {
		case m.Header == "" || len(m.Header) > headerMax:
			problems = append(problems, fmt.Errorf("markers[%d]: header of %d bytes, 1 to %d", i, len(m.Header), headerMax))
		case m.First > 1:
			problems = append(problems, fmt.Errorf("markers[%d]: %s: first %d, 0 or 1", i, m.Header, m.First))
		case m.Layer >= layers:
			problems = append(problems, fmt.Errorf("markers[%d]: %s: layer %d, 0 to %d", i, m.Header, m.Layer, layers-1))
		}
		m.Header = http.CanonicalHeaderKey(m.Header)
		r.markers[i] = m
	}
	return r, errors.Join(problems...)
}

// Read reads the markers of a request. Metadata of gRPC has to be put under canonical
// names first.
func (r *Reader) Read(h http.Header) Declaration {
	var d Declaration
	var made [layers]uint32
	for i := range r.markers {
		m := &r.markers[i]
		for _, text := range h[m.Header] {
			n, present, ok := m.number(text)
			switch {
			case !present:
			case !ok:
				d.Invalid++
			default:
				d.Marked = true
				made[m.Layer] = max(made[m.Layer], n)
			}
		}
	}
	product := uint32(1)
	for _, n := range made {
		d.Retries = max(d.Retries, n)
		d.Layers += int(min(n, 1))
		// Both are at most RetriesMax+1: no overflow.
		product = min(product*(n+1), RetriesMax+1)
	}
	d.Ceiling, d.SDK = product-1, made[SDK]
	return d
}

// number reads how many retries a header's text speaks of.
func (m *Marker) number(text string) (n uint32, present, ok bool) {
	if m.Field != "" {
		_, rest, found := strings.Cut(text, m.Field)
		if !found {
			return 0, false, false
		}
		text, _, _ = strings.Cut(rest, ";")
		text, _, _ = strings.Cut(text, " ")
	}
	value, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
	if err != nil || value < uint64(m.First) || value-uint64(m.First) > RetriesMax {
		return 0, true, false
	}
	return uint32(value) - m.First, true, true
}
