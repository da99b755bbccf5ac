package estimate_test

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/client/gateway/estimate"
)

const text = "Tell me in one sentence what a token bucket is good for."

// image is what no estimate may take for text.
var image = "data:image/png;base64," + strings.Repeat("iVBORw0KGgo", 1000)

// shape is a body and what is in it; the input is what its text counts and more.
type shape struct {
	name, body string
	want       estimate.Request
	texts      int64
	more       int64
}

func shapes() []shape {
	one := func(r estimate.Request) estimate.Request {
		if r.Choices == 0 {
			r.Choices = 1
		}
		return r
	}
	return []shape{
		{
			"chat", `{"model":"gpt-4o","messages":[{"role":"system","content":"` + text + `"},` +
				`{"role":"user","content":[{"type":"text","text":"` + text + `"},{"type":"image_url","image_url":{"url":"` +
				image + `","detail":"low"}},{"type":"image_url","image_url":{"detail":"high","url":"` + image + `"}},` +
				`{"type":"input_audio","input_audio":{"data":"` + image + `"}}]}],"max_tokens":null,` +
				`"max_completion_tokens":300,"n":3,"stream":true,"stream_options":{"include_usage":true},"user":"ann"}`,
			estimate.Request{
				Model: "gpt-4o", User: "ann", Stream: true, IncludeUsage: true, MaxOutput: 300, Choices: 3,
				Messages: 2, Images: 2, SmallImages: 1, Files: 1,
			},
			2, 85 + 765 + 1500 + 2*3 + 3,
		},
		{
			"completions", `{"model":"m","prompt":["` + text + `","` + text + `"],"max_tokens":1e2,"best_of":4,"n":2}`,
			one(estimate.Request{Model: "m", MaxOutput: 100, Choices: 4}), 2, 0,
		},
		{
			"completions_of_tokens", `{"prompt":[[1,2,3],[4]]}`, one(estimate.Request{MaxOutput: -1}), 0, 4,
		},
		{"embeddings", `{"model":"e","input":"` + text + `"}`, one(estimate.Request{Model: "e", MaxOutput: -1}), 1, 0},
		{"embeddings_of_tokens", `{"input":[1,2,3]}`, one(estimate.Request{MaxOutput: -1}), 0, 3},
		{
			"responses", `{"model":"r","instructions":"` + text + `","input":[{"role":"user","content":[` +
				`{"type":"input_text","text":"` + text + `"},{"type":"input_image","image_url":"` + image +
				`","detail":"low"}]}],"max_output_tokens":50,"stream":true}`,
			one(estimate.Request{
				Model: "r", Stream: true, MaxOutput: 50, Messages: 1, Images: 1, SmallImages: 1,
			}), 2, 85 + 3 + 3,
		},
		{
			"messages", `{"model":"claude","max_tokens":1024,"system":[{"type":"text","text":"` + text +
				`","cache_control":{"type":"ephemeral","ttl":"5m"}}],"metadata":{"user_id":"u-1"},"messages":[` +
				`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image +
				`"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + image +
				`"}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"` + text + `"}}]},` +
				`{"role":"assistant","content":"` + text + `"}]}`,
			one(estimate.Request{
				Model: "claude", User: "u-1", MaxOutput: 1024, Messages: 2, Images: 1, Files: 1,
			}), 3, 765 + 1500 + 2*3 + 3,
		},
		{
			"contents", `{"systemInstruction":{"parts":[{"text":"` + text + `"}]},"contents":[{"role":"user","parts":[` +
				`{"text":"` + text + `"},{"inlineData":{"mimeType":"audio/mp3","data":"` + image + `"}}]}],` +
				`"generationConfig":{"maxOutputTokens":7,"candidateCount":2,"temperature":0.5}}`,
			estimate.Request{MaxOutput: 7, Choices: 2, Messages: 1, Files: 1},
			2, 1500 + 3 + 3,
		},
		{"no_bound", `{"max_tokens":-1}`, one(estimate.Request{MaxOutput: -1}), 0, 0},
		{"nothing", `{}`, one(estimate.Request{MaxOutput: -1}), 0, 0},
	}
}

func TestShapes(t *testing.T) {
	t.Parallel()
	for _, row := range slices.Concat(shapes(), cloudShapes()) {
		t.Run(row.name, func(t *testing.T) {
			got, err := estimate.Read(strings.NewReader(row.body), estimate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			each := tokens([]byte(text))
			most := row.want
			most.Bytes = int64(len(row.body))
			most.Input = got.Input
			if diff := cmp.Diff(most, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// Texts are rounded up together, not each.
			if least := row.texts*(each-1) + row.more; got.Input < least || got.Input > row.texts*each+row.more {
				t.Errorf("input %d, want %d texts of %d and %d", got.Input, row.texts, each, row.more)
			}
			slow, err := estimate.Read(iotest.OneByteReader(strings.NewReader(row.body)), estimate.Options{})
			if diff := cmp.Diff(got, slow); diff != "" || err != nil {
				t.Errorf("byte by byte: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestToolsCountAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	schema := string(sample(t, "schema"))
	var value any
	if err := json.Unmarshal([]byte(schema), &value); err != nil {
		t.Fatal(err)
	}
	compact, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	want := tokens(compact)
	for _, body := range []string{
		`{"tools":` + schema + `}`, `{"response_format":` + schema + `}`, `{"text":` + schema + `}`,
		`{"messages":[{"role":"assistant","content":[{"type":"tool_use","input":` + schema + `}]}]}`,
	} {
		got, err := estimate.Read(strings.NewReader(body), estimate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if off := float64(got.Input-want) / float64(want); off < -0.05 || off > 0.05 {
			t.Errorf("%.40s…: %d tokens, want %d within 5 %%", body, got.Input, want)
		}
	}
	got, err := estimate.Read(strings.NewReader(`{"tools":null,"messages":null}`), estimate.Options{})
	if err != nil || got.Input != 0 {
		t.Errorf("of nothing: %d tokens, %v", got.Input, err)
	}
}

func TestArgumentsOfToolsAreNoImages(t *testing.T) {
	t.Parallel()
	body := `{"messages":[{"role":"assistant","content":[{"type":"tool_use","input":` +
		`{"content":[{"image_url":"` + text + `","source":{"data":"` + text + `"}}]}}]}]}`
	got, err := estimate.Read(strings.NewReader(body), estimate.Options{})
	if err != nil || got.Images != 0 || got.Input < 2*(tokens([]byte(text))-1) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhatLiesDeeperInAnImageSaysNothingOfIt(t *testing.T) {
	t.Parallel()
	body := `{"messages":[{"content":[{"image_url":{"x":{"detail":"low"},"url":"` + image + `"}},` +
		`{"source":{"x":{"media_type":"text/plain"},"data":"` + image + `"}}]}]}`
	got, err := estimate.Read(strings.NewReader(body), estimate.Options{})
	if err != nil || got.Images != 2 || got.SmallImages != 0 || got.Input != 2*765+3+3 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestBadBodies(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("m", estimate.TextMax+1)
	for _, row := range []struct{ body, want string }{
		{``, "request body: JSON ends early at byte 0"},
		{`{"model":"m"`, "request body: JSON ends early at byte 12"},
		{`{"model":"m"}}`, "request body: not JSON at byte 13"},
		{`[]`, "request body: body: an array where an object is expected"},
		{"{\"model\":\"\xff\"}", "request body: model: not UTF-8"},
		{"{\"metadata\":{\"user_id\":\"a\xc3\"}}", "request body: metadata.user_id: not UTF-8"},
		{`{"model":5}`, "request body: model: a number where text is expected"},
		{`{"model":"` + long + `"}`, "request body: model: longer than 512 bytes"},
		{`{"model":"a","model":"b"}`, "request body: model: given twice"},
		{`{"model":"a","mod\u0065l":"b"}`, "request body: model: given twice"},
		{`{"max_tokens":-5}`, "request body: max_tokens: -5 is not a whole number from -1 to 2147483647"},
		{`{"max_tokens":1.5}`, "request body: max_tokens: 1.5 is not a whole number from -1 to 2147483647"},
		{`{"max_tokens":1e400}`, "request body: max_tokens: 1e400 is not a whole number from -1 to 2147483647"},
		{`{"max_tokens":"5"}`, "request body: max_tokens: text where a number is expected"},
		{`{"n":0}`, "request body: n: 0 is not a whole number from 1 to 2147483647"},
		{`{"stream":1}`, "request body: stream: a number where true or false is expected"},
		{`{"stream_options":[]}`, "request body: stream_options: an array where an object is expected"},
		{
			`{"stream_options":{"include_usage":"yes"}}`,
			"request body: stream_options.include_usage: text where true or false is expected",
		},
	} {
		_, err := estimate.Read(strings.NewReader(row.body), estimate.Options{})
		if !errors.Is(err, estimate.ErrBody) || err.Error() != row.want {
			t.Errorf("%.40s: %v\nwant %s", row.body, err, row.want)
		}
	}
	_, err := estimate.Read(strings.NewReader(`{"a":"123456"}`), estimate.Options{BytesMax: 13})
	if !errors.Is(err, estimate.ErrTooLarge) || err.Error() != "request body too large: more than 13 bytes" {
		t.Errorf("%v", err)
	}
	if _, err := estimate.Read(strings.NewReader(`{"a":"123456"}`), estimate.Options{BytesMax: 14}); err != nil {
		t.Errorf("as long as may be: %v", err)
	}
	if _, err := estimate.Read(iotest.ErrReader(io.ErrUnexpectedEOF), estimate.Options{}); !errors.Is(
		err, io.ErrUnexpectedEOF) || errors.Is(err, estimate.ErrBody) {
		t.Errorf("%v", err)
	}
}

// FuzzBody: any body gives one answer, however it is cut, and no estimate beyond what
// its length can be.
func FuzzBody(f *testing.F) {
	for _, row := range shapes() {
		if len(row.body) < 2000 {
			f.Add([]byte(row.body), 7)
		}
	}
	f.Add([]byte(`{"messages":[{"content":[{"source":{"media_type":"image/a","data":"x"}}]}],"tools":[{"a":[1]}]}`), 3)
	f.Fuzz(func(t *testing.T, body []byte, at int) {
		whole, err := estimate.Read(strings.NewReader(string(body)), estimate.Options{})
		at = min(max(0, at), len(body))
		b := estimate.NewBody(estimate.Options{})
		_, _ = b.Write(body[:at])
		_, _ = b.Write(body[at:])
		cut, wrong := b.Close()
		if diff := cmp.Diff(whole, cut); diff != "" || (err == nil) != (wrong == nil) {
			t.Fatalf("%q cut at %d: %v, %v (-want +got):\n%s", body, at, err, wrong, diff)
		}
		if !json.Valid(body) && err == nil {
			t.Fatalf("%q was read", body)
		}
		if whole.Input < 0 || whole.Images < whole.SmallImages || whole.Input > 1500*int64(len(body)+1) {
			t.Fatalf("%q: %+v", body, whole)
		}
	})
}

func TestBodyAllocatesNothingForLength(t *testing.T) {
	body := []byte(`{"messages":[` + strings.Repeat(`{"role":"user","content":"a \n b"},`, 20_000) + `{}]}`)
	if n := testing.AllocsPerRun(5, func() {
		b := estimate.NewBody(estimate.Options{})
		if _, err := b.Write(body); err != nil {
			t.Error(err)
		}
	}); n > 10 {
		t.Errorf("%v allocations for %d bytes", n, len(body))
	}
}

func BenchmarkBody(b *testing.B) {
	quoted, err := json.Marshal(strings.Repeat(string(sample(b, "english")), 16))
	if err != nil {
		b.Fatal(err)
	}
	body := []byte(`{"messages":[{"role":"user","content":` + string(quoted) + `}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r := estimate.NewBody(estimate.Options{})
		_, _ = r.Write(body)
	}
}
