package stream_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/client/gateway/stream"
)

// pieces gives one piece a read, and counts the reads.
type pieces struct {
	rest  []string
	end   error
	reads int
}

func (p *pieces) Read(into []byte) (int, error) {
	p.reads++
	if len(p.rest) == 0 {
		if p.end != nil {
			return 0, p.end
		}
		return 0, io.EOF
	}
	n := copy(into, p.rest[0])
	if p.rest[0] = p.rest[0][n:]; p.rest[0] == "" {
		p.rest = p.rest[1:]
	}
	return n, nil
}

type event struct{ Event, Data string }

// drain reads a stream to its end: its events, and all of its bytes.
func drain(t testing.TB, r *stream.Reader) (events []event, raw string) {
	t.Helper()
	var all bytes.Buffer
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return events, all.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Raw) == 0 {
			t.Fatal("a frame of nothing")
		}
		all.Write(f.Raw)
		if f.Data != nil {
			events = append(events, event{f.Event, string(f.Data)})
		}
	}
}

// conversations are streams with what is in them, as the HTML standard has it.
var conversations = []struct {
	name, stream string
	want         []event
}{
	{"line_feeds", "data: a\n\ndata: b\n\n", []event{{"", "a"}, {"", "b"}}},
	{"carriage_returns", "data: a\r\rdata: b\r\r", []event{{"", "a"}, {"", "b"}}},
	{"both", "event: x\r\ndata: a\r\n\r\nevent: y\r\ndata: b\r\n\r\n", []event{{"x", "a"}, {"y", "b"}}},
	{"mixed", "data: a\r\ndata: b\rdata: c\n\r\ndata: d\n\r", []event{{"", "a\nb\nc"}, {"", "d"}}},
	{"byte_order_mark", "\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n", []event{{"", "a"}}},
	{"byte_order_mark_alone", "\xEF\xBB\xBF\n\ndata: a\n\n", []event{{"", "a"}}},
	{"half_a_mark", "\xEF\xBBdata: a\n\ndata: b\n\n", []event{{"", "b"}}},
	{"mark_and_comment", "\xEF\xBB\xBF: hello\ndata: a\n\n", []event{{"", "a"}}},
	{"comments", ": one\n:two\r\n\ndata: a\n: three\ndata:b\n\n:\n\n", []event{{"", "a\nb"}}},
	{"one_space_is_taken_off", "data:a\n\ndata:  b\n\ndata\n\n", []event{{"", "a"}, {"", " b"}, {"", ""}}},
	{"lines_of_nothing", "data\ndata:\n\n", []event{{"", "\n"}}},
	{"fields", "id: 7\nretry: 10\nevent: x\ndata: {\"a\": \"b:c\"}\nfoo\nDATA: no\n\n", []event{{"x", `{"a": "b:c"}`}}},
	{"no_event", "event: x\nid: 3\n\n\n\ndata: a\n\n", []event{{"", "a"}}},
	{"the_last_event_type_counts", "event: x\nevent: y\ndata: a\n\n", []event{{"y", "a"}}},
	{"not_over", "data: a\n\ndata: b\n", []event{{"", "a"}}},
	{"not_over_within_a_line", "data: a\n\ndata: b", []event{{"", "a"}}},
	{"nothing", "", nil},
}

func TestReaderReadsWhateverReadsEndAt(t *testing.T) {
	t.Parallel()
	for _, row := range conversations {
		t.Run(row.name, func(t *testing.T) {
			for i := range len(row.stream) + 1 {
				for j := i; j <= len(row.stream); j++ {
					var parts []string
					for _, part := range []string{row.stream[:i], row.stream[i:j], row.stream[j:]} {
						if part != "" {
							parts = append(parts, part)
						}
					}
					got, raw := drain(t, stream.NewReader(&pieces{rest: parts}, stream.Options{}))
					if diff := cmp.Diff(row.want, got); diff != "" || raw != row.stream {
						t.Fatalf("%q (-want +got):\n%s\n%q", parts, diff, raw)
					}
				}
			}
			one := iotest.DataErrReader(iotest.OneByteReader(strings.NewReader(row.stream)))
			got, raw := drain(t, stream.NewReader(one, stream.Options{}))
			if diff := cmp.Diff(row.want, got); diff != "" || raw != row.stream {
				t.Errorf("byte by byte (-want +got):\n%s\n%q", diff, raw)
			}
		})
	}
}

func TestFramesAreNotHeldBack(t *testing.T) {
	t.Parallel()
	// A frame a read, and it is there when the read is over.
	for _, row := range []struct{ parts, want []string }{
		{
			[]string{"data: a\n\n", "data: b\r\n\r\n", "data: c\r\r"},
			[]string{"data: a\n\n", "data: b\r\n\r\n", "data: c\r\r"},
		},
		{[]string{": one\n", ": two\r", "data: a\n\n"}, []string{": one\n", ": two\r", "data: a\n\n"}},
		// A line feed after a carriage return is not waited for.
		{[]string{"data: a\r\n\r", "\ndata: b\n\n"}, []string{"data: a\r\n\r", "\ndata: b\n\n"}},
	} {
		src := &pieces{rest: row.parts}
		r := stream.NewReader(src, stream.Options{})
		for i, want := range row.want {
			if r.Ready() {
				t.Errorf("%q: ready before it was read", want)
			}
			f, err := r.Next()
			if err != nil || string(f.Raw) != want || src.reads != i+1 {
				t.Errorf("%q after %d reads, %v; want %q after %d", f.Raw, src.reads, err, want, i+1)
			}
		}
	}
	src := &pieces{rest: []string{"data: a\n\ndata: b\n\ndata: c"}}
	r := stream.NewReader(src, stream.Options{})
	for i, ready := range []bool{true, false} {
		if _, err := r.Next(); err != nil || r.Ready() != ready || src.reads != 1 {
			t.Errorf("frame %d: %v, ready %v after %d reads", i, err, r.Ready(), src.reads)
		}
	}
}

func TestLongFramesPassInPieces(t *testing.T) {
	t.Parallel()
	long := "data: " + strings.Repeat("x", 20_000) + "\n\n"
	all := "data: a\n\n" + long + "data: b\n\n"
	for _, src := range []io.Reader{strings.NewReader(all), iotest.OneByteReader(strings.NewReader(all))} {
		r := stream.NewReader(src, stream.Options{FrameMax: 1})
		var raw strings.Builder
		var events []event
		cut := 0
		for {
			f, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			raw.Write(f.Raw)
			switch {
			case f.Whole:
				events = append(events, event{f.Event, string(f.Data)})
			case len(f.Raw) > 4096:
				t.Errorf("a piece of %d bytes", len(f.Raw))
			default:
				cut++
			}
		}
		if raw.String() != all || cut != 5 {
			t.Errorf("%d bytes in %d pieces, want %d in 5", raw.Len(), cut, len(all))
		}
		if diff := cmp.Diff([]event{{"", "a"}, {"", "b"}}, events); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	whole, _ := drain(t, stream.NewReader(strings.NewReader(long), stream.Options{}))
	if len(whole) != 1 || len(whole[0].Data) != 20_000 {
		t.Errorf("%d events where it is not too long", len(whole))
	}
}

func FuzzReader(f *testing.F) {
	for _, row := range conversations {
		f.Add([]byte(row.stream), uint(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, at uint) {
		whole, raw := drain(t, stream.NewReader(bytes.NewReader(text), stream.Options{}))
		if raw != string(text) {
			t.Fatalf("%q became %q", text, raw)
		}
		cut := at % uint(len(text)+1)
		for _, src := range []io.Reader{
			iotest.OneByteReader(bytes.NewReader(text)),
			io.MultiReader(bytes.NewReader(text[:cut]), bytes.NewReader(text[cut:])),
		} {
			parts, raw := drain(t, stream.NewReader(src, stream.Options{}))
			if diff := cmp.Diff(whole, parts); diff != "" || raw != string(text) {
				t.Fatalf("%q cut at %d: %q (-whole +cut):\n%s", text, cut, raw, diff)
			}
		}
	})
}

const (
	overloadedData = `{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"}}`
	overloaded     = "event: error\ndata: " + overloadedData + "\n\n"
)

func TestFirst(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, stream string
		event, data  string
		err          error
	}{
		{"overloaded", overloaded, "error", overloadedData, nil},
		{
			"after_comments_and_pings", ": hello\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n" + overloaded,
			"error", overloadedData, nil,
		},
		{"without_a_type", "data: {\"error\":\"busy\"}\n\n" + overloaded, "", `{"error":"busy"}`, nil},
		{"lines", "\ufeffevent: x\rdata:a\rdata: b\r\rz", "x", "a\nb", nil},
		{"begins", "event: message_start\ndata: {}\n\n" + overloaded, "message_start", "{}", nil},
		{"nothing_in_it", "data\n\n" + overloaded, "", "", nil},
		{"no_event", "event: x\n\ndata: [DONE]\n\n", "", "[DONE]", nil},
		{"only_comments", ": hello\n\n", "", "", io.EOF},
		{"cut", "event: error\ndata: {\"type\":\"err", "", "", nil},
		{"nothing", "", "", "", io.EOF},
		{"comments_for_long", strings.Repeat(": waiting\n\n", 1000) + overloaded, "", "", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			src := &pieces{rest: strings.SplitAfter(row.stream, "\n")}
			r := stream.NewReader(src, stream.Options{})
			got, err := r.First()
			if got.Event != row.event || string(got.Data) != row.data || !errors.Is(err, row.err) {
				t.Errorf("%q %q, %v; want %q %q, %v", got.Event, got.Data, err, row.event, row.data, row.err)
			}
			want, _ := drain(t, stream.NewReader(strings.NewReader(row.stream), stream.Options{}))
			events, raw := drain(t, r)
			if diff := cmp.Diff(want, events); diff != "" || raw != row.stream {
				t.Errorf("what comes after (-want +got):\n%s\n%q", diff, raw)
			}
		})
	}
}

func TestFirstReadsNoFurther(t *testing.T) {
	t.Parallel()
	src := &pieces{rest: []string{": a\n\n", "data: {}\n\n", "data: {}\n\n"}}
	r := stream.NewReader(src, stream.Options{})
	if _, err := r.First(); err != nil || src.reads != 2 {
		t.Errorf("%d reads, %v; want 2", src.reads, err)
	}
	broken := errors.New("connection reset")
	r = stream.NewReader(&pieces{rest: []string{": a\n\n"}, end: broken}, stream.Options{})
	if _, err := r.First(); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// nothingEver is a source that breaks the contract of io.Reader.
type nothingEver struct{}

func (nothingEver) Read([]byte) (int, error) { return 0, nil }

func TestASourceThatGivesNothing(t *testing.T) {
	t.Parallel()
	if f, err := stream.NewReader(nothingEver{}, stream.Options{}).Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("%+v, %v; want io.ErrNoProgress", f, err)
	}
}
