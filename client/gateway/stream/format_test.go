package stream_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/client/gateway/stream"
)

// message is one of Bedrock's.
func message(payload string, pairs ...string) string {
	return string(stream.AppendMessage(nil, payload, pairs...))
}

func eventOf(name, payload string) string {
	return message(payload, ":event-type", name, ":content-type", "application/json", ":message-type", "event")
}

func bytesOf(t testing.TB, text string) string {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var throttled = message(`{"message":"Too many tokens"}`,
	":exception-type", "throttlingException", ":content-type", "application/json", ":message-type", "exception")

// spoken are streams in each format, with what is in them.
var spoken = []struct {
	name   string
	format stream.Format
	stream string
	want   []event
}{
	{
		"converse", stream.Messages,
		eventOf("messageStart", `{"role":"assistant"}`) + eventOf("metadata", `{"usage":{}}`),
		[]event{{"messageStart", `{"role":"assistant"}`}, {"metadata", `{"usage":{}}`}},
	},
	{
		"chunks_are_unwrapped", stream.Messages,
		eventOf("chunk", `{"bytes":"eyJ0eXBlIjoicGluZyJ9","p":"ab"}`) + eventOf("chunk", `{"bytes":7}`),
		[]event{{"chunk", `{"type":"ping"}`}, {"chunk", `{"bytes":7}`}},
	},
	{
		"an_exception", stream.Messages, throttled,
		[]event{{"throttlingException", `{"message":"Too many tokens"}`}},
	},
	{
		"an_error", stream.Messages,
		message("", ":message-type", "error", ":error-code", "InternalError", ":error-message", "It broke"),
		[]event{{"InternalError", "It broke"}},
	},
	{"cut", stream.Messages, eventOf("a", "1") + eventOf("b", "2")[:30], []event{{"a", "1"}}},
	{"no_message_at_all", stream.Messages, "HTTP/1.1 502 Bad Gateway\r\n\r\nsorry", nil},
	{
		"an_array", stream.Elements, "[{\"a\":\"}]\\\"\"}\n,\r\n{\"b\":[{},[1]]}\n]\n",
		[]event{{"", `{"a":"}]\""}`}, {"", `{"b":[{},[1]]}`}},
	},
	{"an_object", stream.Elements, `{"error":{"code":429}}`, []event{{"", `{"error":{"code":429}}`}}},
	{"an_array_of_nothing", stream.Elements, " [ ] ", nil},
	{"an_array_that_is_cut", stream.Elements, `[{"a":1},{"b":`, []event{{"", `{"a":1}`}}},
	{"no_array_at_all", stream.Elements, "]]}}sorry", nil},
}

func TestFormatsPassAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, row := range spoken {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for at := range len(row.stream) + 1 {
				src := io.MultiReader(strings.NewReader(row.stream[:at]), strings.NewReader(row.stream[at:]))
				got, raw := drain(t, stream.NewReader(src, stream.Options{Format: row.format}))
				if diff := cmp.Diff(row.want, got); diff != "" || raw != row.stream {
					t.Fatalf("cut at %d (-want +got):\n%s\n%q", at, diff, raw)
				}
			}
			r := stream.NewReader(iotest.OneByteReader(strings.NewReader(row.stream)), stream.Options{Format: row.format})
			first, err := r.First()
			if err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			if len(row.want) > 0 && (first.Event != row.want[0].Event || string(first.Data) != row.want[0].Data) {
				t.Errorf("the first is %q %q", first.Event, first.Data)
			}
			got, raw := drain(t, r)
			if diff := cmp.Diff(row.want, got); diff != "" || raw != row.stream {
				t.Errorf("after the first (-want +got):\n%s\n%q", diff, raw)
			}
		})
	}
}

// TestMessagesOfTheirMakers are two of the samples that AWS tests its own readers with.
func TestMessagesOfTheirMakers(t *testing.T) {
	t.Parallel()
	for sample, want := range map[string]string{
		"000000100000000005c248eb7d98c8ff":                                                           "",
		"0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936":                                 "{'foo':'bar'}",
		"0000002d0000001041c424b80a6576656e742d74797065040000a00c7b27666f6f273a27626172277d36f480a0": "{'foo':'bar'}",
	} {
		f, err := stream.NewReader(strings.NewReader(bytesOf(t, sample)), stream.Options{Format: stream.Messages}).Next()
		if err != nil || !f.Whole || f.Fault || string(f.Data) != want {
			t.Errorf("%s: %+v, %v", sample, f, err)
		}
	}
}

func TestWhatIsDamagedIsNotLookedAt(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]int{"payload": 90, "header": 20, "checksum": len(throttled) - 1} {
		text := []byte(throttled)
		text[spoil] ^= 1
		r := stream.NewReader(bytes.NewReader(append(text, eventOf("a", "1")...)), stream.Options{Format: stream.Messages})
		f, err := r.Next()
		if err != nil || f.Whole || f.Fault || f.Data != nil || !bytes.Equal(f.Raw, text) {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
		if f, err = r.Next(); err != nil || f.Event != "a" {
			t.Errorf("after a damaged %s: %+v, %v", name, f, err)
		}
	}
	for _, headers := range []string{"\x00\x00", "\x01a", "\x01a\x07", "\x01a\x07\x00\x09x", "\x01a\x0a", "\xffa"} {
		b := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
		b = append(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)), headers...)
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
		f, err := stream.NewReader(bytes.NewReader(b), stream.Options{Format: stream.Messages}).Next()
		if err != nil || f.Whole || f.Data != nil {
			t.Errorf("%q: %+v, %v", headers, f, err)
		}
	}
	exception, err := stream.NewReader(strings.NewReader(throttled), stream.Options{Format: stream.Messages}).First()
	if err != nil || !exception.Fault {
		t.Errorf("%+v, %v; want a fault", exception, err)
	}
}

func TestFormatOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		said    string
		streams bool
		want    stream.Format
		is      bool
	}{
		{"text/event-stream", false, stream.Events, true},
		{"TEXT/EVENT-STREAM; charset=utf-8", true, stream.Events, true},
		{"application/vnd.amazon.eventstream", false, stream.Messages, true},
		{"application/json; charset=UTF-8", true, stream.Elements, true},
		{"application/json; charset=UTF-8", false, 0, false},
		{"text/event-streams", true, 0, false},
		{"", true, 0, false},
		{"application/json;;", true, 0, false},
	} {
		if got, is := stream.FormatOf(row.said, row.streams); got != row.want || is != row.is {
			t.Errorf("%q: %d %t, want %d %t", row.said, got, is, row.want, row.is)
		}
	}
}

// FuzzFormats wants every byte to pass, wherever reads end, and frames to be the same.
func FuzzFormats(f *testing.F) {
	for _, row := range spoken {
		f.Add([]byte(row.stream), byte(row.format), uint(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, format byte, at uint) {
		options := stream.Options{Format: stream.Format(format % 3)}
		whole, raw := drain(t, stream.NewReader(bytes.NewReader(text), options))
		if raw != string(text) {
			t.Fatalf("%q became %q", text, raw)
		}
		cut := at % uint(len(text)+1)
		src := io.MultiReader(bytes.NewReader(text[:cut]), bytes.NewReader(text[cut:]))
		parts, raw := drain(t, stream.NewReader(src, options))
		if diff := cmp.Diff(whole, parts); diff != "" || raw != string(text) {
			t.Fatalf("%q cut at %d: %q (-whole +cut):\n%s", text, cut, raw, diff)
		}
	})
}
