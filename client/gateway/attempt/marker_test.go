package attempt

import (
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func reader(t testing.TB) *Reader {
	t.Helper()
	r, err := NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func header(pairs ...string) http.Header {
	h := make(http.Header)
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestMarkers(t *testing.T) {
	r := reader(t)
	for _, test := range []struct {
		name    string
		header  http.Header
		retries uint32
		marked  bool
		invalid int
	}{
		{"S1-27_absent", header(), 0, false, 0},
		{"S1-27_first", header("x-retry-attempt", "0"), 0, true, 0},
		{"S1-27_third", header("x-retry-attempt", "2"), 2, true, 0},
		{"S1-27_space", header("x-retry-attempt", " 2 "), 2, true, 0},
		{"S1-27_negative", header("x-retry-attempt", "-1"), 0, false, 1},
		{"S1-27_no_number", header("x-retry-attempt", "abc"), 0, false, 1},
		{"S1-27_empty", header("x-retry-attempt", ""), 0, false, 1},
		{"S1-27_no_integer", header("x-retry-attempt", "1.0"), 0, false, 1},
		{"S1-27_too_large", header("x-retry-attempt", "999999"), 0, false, 1},
		{"S1-27_largest", header("x-retry-attempt", "1000"), 1000, true, 0},
		{"S1-27_above_the_largest", header("x-retry-attempt", "1001"), 0, false, 1},
		{"S1-27_overflow", header("x-retry-attempt", "99999999999999999999"), 0, false, 1},
		{"S1-27_invalid_beside_valid", header("x-retry-attempt", "-3", "x-stainless-retry-count", "1"), 1, true, 1},
		{"S1-27_twice", header("x-retry-attempt", "1", "x-retry-attempt", "3"), 3, true, 0},
		{"stainless", header("X-Stainless-Retry-Count", "2"), 2, true, 0},
		{"grpc", header("grpc-previous-rpc-attempts", "1"), 1, true, 0},
		{"envoy_first", header("x-envoy-attempt-count", "1"), 0, true, 0},
		{"envoy_second", header("x-envoy-attempt-count", "2"), 1, true, 0},
		{"envoy_counts_from_one", header("x-envoy-attempt-count", "0"), 0, false, 1},
		{"aws_first", header("amz-sdk-request", "attempt=1; max=3"), 0, true, 0},
		{"aws_third", header("amz-sdk-request", "ttl=20260801T000000Z; attempt=3; max=3"), 2, true, 0},
		{"aws_without", header("amz-sdk-request", "ttl=20260801T000000Z"), 0, false, 0},
		{"google_second", header("x-goog-api-client", "gl-go/1.26 gccl-invocation-id/5 gccl-attempt-count/2"), 1, true, 0},
		{"google_without", header("x-goog-api-client", "gl-python/3.13"), 0, false, 0},
		{"the_largest", header(
			"x-retry-attempt", "1", "x-stainless-retry-count", "3", "x-envoy-attempt-count", "2"), 3, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := r.Read(test.header)
			if d.Retries != test.retries || d.Marked != test.marked || d.Invalid != test.invalid {
				t.Errorf("%v: %+v, want retries %d, marked %v, invalid %d",
					test.header, d, test.retries, test.marked, test.invalid)
			}
		})
	}
}

// TestCeiling: layers that each stay below the maximum exceed it together.
func TestCeiling(t *testing.T) {
	r := reader(t)
	for _, test := range []struct {
		name             string
		header           http.Header
		retries, ceiling uint32
		layers           int
	}{
		{"one_layer_counts_as_it_says", header("x-stainless-retry-count", "3"), 3, 3, 1},
		{"one_layer_twice_is_no_product", header(
			"x-stainless-retry-count", "2", "amz-sdk-request", "attempt=3"), 2, 2, 1},
		{"a_first_try_multiplies_nothing", header("x-retry-attempt", "3", "x-stainless-retry-count", "0"), 3, 3, 1},
		{"two_layers_in_their_second_try", header("x-retry-attempt", "1", "x-stainless-retry-count", "1"), 1, 3, 2},
		{"three_layers_in_their_second_try", header(
			"x-retry-attempt", "1", "x-stainless-retry-count", "1", "x-envoy-attempt-count", "2"), 1, 7, 3},
		{"three_layers_at_their_maximum", header(
			"x-retry-attempt", "3", "x-stainless-retry-count", "3", "x-envoy-attempt-count", "4"), 3, 63, 3},
		{"the_product_ends", header("x-retry-attempt", "1000", "x-stainless-retry-count", "1000"), 1000, 1000, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := r.Read(test.header)
			if d.Retries != test.retries || d.Ceiling != test.ceiling || d.Layers != test.layers {
				t.Errorf("%v: %+v, want retries %d, ceiling %d, layers %d",
					test.header, d, test.retries, test.ceiling, test.layers)
			}
		})
	}
	t.Run("calls_at_least", rapid.MakeCheck(func(t *rapid.T) { nest(t, r) }))
}

// nest plays three layers, each with its own maximum, around calls that all fail, and
// holds the ceiling against the calls made.
func nest(t *rapid.T, r *Reader) {
	outer := rapid.IntRange(0, 4).Draw(t, "outer")
	middle := rapid.IntRange(0, 4).Draw(t, "middle")
	inner := rapid.IntRange(0, 4).Draw(t, "inner")
	digits := func(n int) string { return string(rune('0' + n)) }
	made := uint32(0)
	for a := range outer + 1 {
		for b := range middle + 1 {
			for c := range inner + 1 {
				d := r.Read(header("x-retry-attempt", digits(a), "x-stainless-retry-count", digits(b),
					"x-envoy-attempt-count", digits(c+1)))
				if d.Ceiling > made || d.Retries > d.Ceiling {
					t.Fatalf("after %d calls: %+v", made, d)
				}
				made++
			}
		}
	}
}

func TestNewReader(t *testing.T) {
	for _, test := range []struct {
		marker Marker
		want   string
	}{
		{Marker{}, "markers[0]: header of 0 bytes, 1 to 128"},
		{Marker{Header: "x-attempt", First: 2}, "markers[0]: x-attempt: first 2, 0 or 1"},
		{Marker{Header: "x-attempt", Layer: 4}, "markers[0]: x-attempt: layer 4, 0 to 3"},
	} {
		if _, err := NewReader([]Marker{test.marker}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.marker, err, test.want)
		}
	}
	if _, err := NewReader(make([]Marker, 33)); err == nil {
		t.Error("33 markers are taken")
	}
	own, err := NewReader([]Marker{{Header: "x-attempt", First: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if d := own.Read(header("X-Attempt", "3", "X-Retry-Attempt", "9")); d.Retries != 2 {
		t.Errorf("%+v, want 2 retries", d)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("x-retry-attempt", "3", "attempt=2")
	f.Add("amz-sdk-request", "attempt=;attempt=1", "gccl-attempt-count/")
	r := reader(f)
	f.Fuzz(func(t *testing.T, name, one, other string) {
		h := make(http.Header)
		h[http.CanonicalHeaderKey(name)] = []string{one, other}
		for _, m := range Markers() {
			h[m.Header] = append(h[m.Header], other, one)
		}
		d := r.Read(h)
		if d.Retries > RetriesMax || d.Ceiling > RetriesMax || d.Ceiling < d.Retries || d.SDK > d.Retries {
			t.Fatalf("%v: %+v", h, d)
		}
	})
}
