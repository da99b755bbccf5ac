package front

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/bench/load"
)

// door is how many callers ask through one address, each over a connection of its own.
// Requests are put together by hand and answers read where they arrive, so that no
// client library's goroutines are measured. It may be used by many at the same time.
type door struct {
	address, path string
	// header has what is the same in every request, with a line break behind each, and
	// clients is how many clients there are by the names that begin so.
	header, client string
	clients        int
	// body writes a request's body, of the caller's own. Bodies differ.
	body func(to []byte) []byte
	// timeout is the longest that one call may take. 0: as long as it likes.
	timeout time.Duration
	// cpu is the processor time of who answers. Nil: not known.
	cpu func() (time.Duration, error)

	// elsewhere counts refusals that were not a retry budget's.
	elsewhere atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]bool // guarded by mu
}

// Asker is that of one more caller.
func (d *door) Asker(index int) (load.Asker, error) {
	client := d.client
	if d.clients > 0 {
		client += strconv.Itoa(index % d.clients)
	}
	return &program{door: d, client: client}, nil
}

// CPU is the processor time of who answers.
func (d *door) CPU() (time.Duration, error) {
	if d.cpu == nil {
		return 0, load.ErrUnknown
	}
	return d.cpu()
}

// dial opens a connection that close closes.
func (d *door) dial(ctx context.Context) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", d.address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conns == nil {
		d.conns = map[net.Conn]bool{}
	}
	d.conns[conn] = true
	return conn, nil
}

func (d *door) drop(conn net.Conn) {
	d.mu.Lock()
	delete(d.conns, conn)
	d.mu.Unlock()
	_ = conn.Close()
}

// close closes the connections of all callers, which have stopped.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for conn := range d.conns {
		_ = conn.Close()
	}
	d.conns = nil
}

// program is one caller.
type program struct {
	door   *door
	client string
	conn   net.Conn
	from   *bufio.Reader
	// out and text are used again for each request.
	out, text []byte
}

// statusError is an answer that is neither granted nor a refusal for a rate.
type statusError int

// Error names it.
func (e statusError) Error() string { return "HTTP " + strconv.Itoa(int(e)) }

// reason names a failure.
func reason(err error) string {
	var status statusError
	switch {
	case errors.As(err, &status):
		return status.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "UNANSWERED"
	default:
		return "UNREACHABLE"
	}
}

// Ask sends one request and reads its answer to the end.
func (p *program) Ask(ctx context.Context, _ int) (load.Answer, error) {
	if p.conn == nil {
		conn, err := p.door.dial(ctx)
		if err != nil {
			return load.Answer{}, err
		}
		p.conn, p.from = conn, bufio.NewReader(conn)
	}
	answer, keep, err := p.exchange(ctx)
	if err != nil || !keep {
		p.door.drop(p.conn)
		p.conn = nil
	}
	return answer, err
}

func (p *program) exchange(ctx context.Context) (answer load.Answer, keep bool, err error) {
	conn := p.conn
	if p.door.timeout > 0 {
		_ = conn.SetDeadline(time.Now().Add(p.door.timeout))
	}
	// Whoever waits for an answer stops when it is told to.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	if _, err := conn.Write(p.request()); err != nil {
		return answer, false, fmt.Errorf("ask: %w", err)
	}
	said, err := http.ReadResponse(p.from, nil)
	if err != nil {
		return answer, false, fmt.Errorf("read an answer: %w", err)
	}
	defer said.Body.Close()
	if _, err := io.Copy(io.Discard, said.Body); err != nil {
		return answer, false, fmt.Errorf("read an answer: %w", err)
	}
	switch said.StatusCode {
	case http.StatusOK:
		answer.Granted = true
	case http.StatusTooManyRequests:
		if said.Header.Get("X-Retry-Budget-Exceeded") == "" {
			p.door.elsewhere.Add(1)
		}
	default:
		return answer, !said.Close, statusError(said.StatusCode)
	}
	return answer, !said.Close, nil
}

// request is the next one, until the one after it.
func (p *program) request() []byte {
	d := p.door
	p.text = d.body(p.text[:0])
	out := bytes.NewBuffer(p.out[:0])
	fmt.Fprintf(out, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nX-Client-Id: %s\r\n%s"+
		"Content-Length: %d\r\n\r\n", d.path, d.address, p.client, d.header, len(p.text))
	out.Write(p.text)
	p.out = out.Bytes()
	return p.out
}

// asked counts requests, so that no two are equal.
var asked atomic.Int64

// chat writes the body of a short request for a model that no other request is equal to.
func chat(model string) func([]byte) []byte {
	return func(to []byte) []byte {
		return fmt.Appendf(to, `{"model":%q,"max_tokens":100,"messages":[{"role":"user","content":"Number %d asks what `+
			`somebody might ask who has a question, says some more of it, and waits to be told."}]}`, model, asked.Add(1))
	}
}
