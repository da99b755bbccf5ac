package stream

import (
	"bytes"
	"io"
)

// Options are what a Reader goes by. The zero value has the defaults.
type Options struct {
	// Format is how the stream is cut into frames. Default Events.
	Format Format
	// FrameMax is how long a frame may be, in bytes, to be looked at. A longer one passes in
	// pieces of that length. It is what a stream takes of memory at most where it has such
	// frames; otherwise it takes 4 KiB, or what its longest frame had. Default 4 MiB, at
	// least 4 KiB.
	FrameMax int
	// HoldMax is how many bytes First holds back that are no event yet. A provider that
	// sends comments for a minute before it begins keeps its client's connection open by
	// that. Default 4 KiB.
	HoldMax int
}

const (
	readMin = 4 << 10
	// emptyMax is how many reads in a row may give neither bytes nor an error.
	emptyMax = 100
)

// Reader reads a stream frame by frame. It is made by NewReader.
type Reader struct {
	src     io.Reader
	options Options

	// buf[start:end] was read and not returned, up to scanned without finding where the
	// frame ends. found is where it does, 0 where that is not known.
	buf                        []byte
	start, scanned, end, found int
	lines                      lines
	// framing is that of a stream which is no lines, nil for lines.
	framing framing
	// cut: pieces of the present frame were returned already.
	cut bool
	// second: a frame was returned, so that no other one is the first.
	second  bool
	scratch []byte
	err     error

	// held are the frames that First has looked at.
	held []Frame
}

// NewReader returns a reader of src. It reads from src when a frame was asked for that
// is not there yet, and takes what a read gives at once.
func NewReader(src io.Reader, options Options) *Reader {
	if options.FrameMax <= 0 {
		options.FrameMax = 4 << 20
	}
	options.FrameMax = max(options.FrameMax, readMin)
	if options.HoldMax <= 0 {
		options.HoldMax = 4 << 10
	}
	return &Reader{src: src, options: options, framing: framingOf(options.Format)}
}

// Next returns the next frame as soon as its last byte was read. Its error is that of the
// source, io.EOF at the end, after everything that was read was returned.
func (r *Reader) Next() (Frame, error) {
	if len(r.held) > 0 {
		f := r.held[0]
		r.held = r.held[1:]
		return f, nil
	}
	return r.next()
}

func (r *Reader) next() (Frame, error) {
	for {
		switch {
		case r.find():
			return r.take(r.found, !r.cut && !r.lost()), nil
		case r.end-r.start >= r.options.FrameMax:
			f := r.take(r.end, false)
			r.cut = true
			return f, nil
		case r.err != nil && r.end > r.start:
			return r.take(r.end, false), nil
		case r.err != nil:
			return Frame{}, r.err
		}
		r.fill()
	}
}

// Ready says whether Next will return without reading.
func (r *Reader) Ready() bool {
	return len(r.held) > 0 || r.find() || r.end-r.start >= r.options.FrameMax || r.err != nil && r.end > r.start
}

// find looks for the end of the present frame in what was read.
func (r *Reader) find() bool {
	if r.framing != nil {
		return r.findFramed()
	}
	for r.found == 0 && r.scanned < r.end {
		c := r.buf[r.scanned]
		r.scanned++
		if !r.lines.ends(c) {
			continue
		}
		r.found = r.scanned
		// A line feed that has come too belongs to the carriage return.
		if c == '\r' && r.scanned < r.end && r.buf[r.scanned] == '\n' {
			r.lines.afterCR = false
			r.scanned++
			r.found++
		}
	}
	return r.found > 0
}

// findFramed is find for what is no lines. Where no frame can be found any more, what has come
// passes as it is.
func (r *Reader) findFramed() bool {
	for r.found == 0 && r.scanned < r.end {
		r.scanned++
		if r.lost() {
			r.scanned = r.end
		}
		if r.lost() || r.framing.ends(r.buf[r.scanned-1]) {
			r.found = r.scanned
		}
	}
	return r.found > 0
}

func (r *Reader) lost() bool { return r.framing != nil && r.framing.lost() }

// take returns what was read up to end as a frame, or as a piece of one.
func (r *Reader) take(end int, whole bool) Frame {
	f := Frame{Raw: r.buf[r.start:end:end], Whole: whole, dataAt: -1}
	r.start, r.found, r.cut = end, 0, false
	r.scanned = max(r.scanned, end)
	switch {
	case whole && r.framing != nil:
		r.framing.parse(&f)
	case whole:
		r.scratch = f.parse(!r.second, r.scratch)
	}
	r.second = true
	return f
}

// fill reads once, with room for at least one byte more.
func (r *Reader) fill() {
	if r.start > 0 {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.scanned -= r.start
		r.start = 0
	}
	if r.end == len(r.buf) {
		longer := make([]byte, min(max(2*len(r.buf), readMin), r.options.FrameMax))
		copy(longer, r.buf[:r.end])
		r.buf = longer
	}
	for range emptyMax {
		n, err := r.src.Read(r.buf[r.end:])
		if n > 0 || err != nil {
			r.end, r.err = r.end+n, err
			return
		}
	}
	r.err = io.ErrNoProgress
}

// First looks at the first event without passing it by: Next returns it, and everything
// before it, again. Comments and pings are none. It may say that the request has failed
// although the answer's status was 200; nothing was passed on then, and the request can be
// tried again. The frame has no Data where HoldMax bytes have come of which none was an
// event, or where the first one is not whole. err is that of the source where it
// ended before, io.EOF for a stream with no event in it.
//
// It has to be called before Next.
func (r *Reader) First() (Frame, error) {
	bytesHeld := 0
	for bytesHeld < r.options.HoldMax {
		f, err := r.next()
		if err != nil {
			return Frame{}, err
		}
		f = f.clone()
		r.held = append(r.held, f)
		if !f.Whole || f.Data != nil && f.Event != "ping" {
			return f, nil
		}
		bytesHeld += len(f.Raw)
	}
	return Frame{}, nil
}

func (f *Frame) clone() Frame {
	c := *f
	c.Raw = bytes.Clone(f.Raw)
	switch {
	case f.dataAt >= 0:
		c.Data = c.Raw[f.dataAt : f.dataAt+len(f.Data)]
	case f.Data != nil:
		c.Data = append([]byte{}, f.Data...)
	}
	return c
}
