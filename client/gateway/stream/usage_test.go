package stream_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/client/gateway/stream"
)

func TestAskUsage(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, body, want string
		asked            bool
	}{
		{
			"missing", ` { "model":"m","stream" : true,"x":1.50e1 }`,
			` {"stream_options":{"include_usage":true}, "model":"m","stream" : true,"x":1.50e1 }`, false,
		},
		{"null", `{"stream":true,"stream_options":null}`, `{"stream":true,"stream_options":{"include_usage":true}}`, false},
		{
			"of_nothing", `{"stream_options":{ },"stream":true}`,
			`{"stream_options":{"include_usage":true },"stream":true}`, false,
		},
		{
			"of_others", `{"stream_options":{"a":{"include_usage":false}},"stream":true}`,
			`{"stream_options":{"include_usage":true,"a":{"include_usage":false}},"stream":true}`, false,
		},
		{
			"refused", `{"stream_options":{"a":1,"include_usage" : false },"stream":true}`,
			`{"stream_options":{"a":1,"include_usage" : true },"stream":true}`, false,
		},
		{
			"include_null", `{"stream":true,"stream_options":{"include_usage":null}}`,
			`{"stream":true,"stream_options":{"include_usage":true}}`, false,
		},
		{"asked", `{"stream":true,"stream_options":{"include_usage":true}}`, "", true},
		{"no_stream", `{"stream":false,"stream_options":null}`, "", false},
		{"nothing_of_a_stream", `{"model":"m"}`, "", false},
		{"elsewhere", `{"metadata":{"stream":true}}`, "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			body := []byte(row.body)
			out, asked, err := stream.AskUsage(body)
			want := row.want
			if want == "" {
				want = row.body
			}
			if diff := cmp.Diff(want, string(out)); diff != "" || asked != row.asked || err != nil {
				t.Errorf("asked %v, want %v; %v (-want +got):\n%s", asked, row.asked, err, diff)
			}
			if string(body) != row.body {
				t.Errorf("the body became %q", body)
			}
			again, _, err := stream.AskUsage(out)
			if err != nil || !bytes.Equal(again, out) {
				t.Errorf("a second time: %q, %v", again, err)
			}
		})
	}
	for body, want := range map[string]string{
		``:                               "request body: JSON ends early at byte 0",
		`{"stream":true`:                 "request body: JSON ends early at byte 14",
		`[true]`:                         "request body: want an object, not [true]",
		`{"stream":true,"stream":false}`: "request body: stream: given twice",
		`{"stream_options":{},"stream_options":{}}`: "request body: stream_options: given twice",
		`{"stream":true,"stream_options":15}`:       "request body: stream_options: want an object, not 15",
		`{"stream":true,"stream_options":{"include_usage":1}}`: "request body: stream_options.include_usage: " +
			"want true or false, not 1",
	} {
		if _, _, err := stream.AskUsage([]byte(body)); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", body, err, want)
		}
	}
}

// FuzzAskUsage: what comes out asks for usage and says the same otherwise.
func FuzzAskUsage(f *testing.F) {
	for _, body := range []string{
		`{"stream":true}`, `{"stream":true,"stream_options":{"include_usage":false,"a":[1]}}`, `{}`,
		`{"stream_options":null}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		out, asked, err := stream.AskUsage(body)
		if err != nil {
			return
		}
		var before, after map[string]any
		if err := json.Unmarshal(body, &before); err != nil {
			t.Skipf("the library does not read it: %v", err)
		}
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%q became %q: %v", body, out, err)
		}
		if before["stream"] == true {
			options, ok := before["stream_options"].(map[string]any)
			if !ok {
				options = map[string]any{}
			}
			if asked != (options["include_usage"] == true) {
				t.Fatalf("%q: asked %v", body, asked)
			}
			options["include_usage"] = true
			before["stream_options"] = options
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("%q became %q (-want +got):\n%s", body, out, diff)
		}
	})
}
