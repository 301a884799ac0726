package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

// Bounds on what a server may send, in bytes.
const (
	maxHead = 64 << 10
	maxBody = 32 << 20
)

// errTooLong is returned when an answer exceeds the bounds.
var errTooLong = errors.New("answer too long")

// response is one HTTP answer. Its slices hold until the next read.
type response struct {
	status  int
	session string // Mcp-Session-Id
	events  bool   // Content-Type is text/event-stream
	body    []byte
}

// reader reads HTTP/1.1 answers from one connection: only what the servers
// under measurement send, in as few steps as possible.
type reader struct {
	conn       net.Conn
	buf        []byte
	start, end int    // the unread part of buf
	joined     []byte // the body of the last chunked answer
}

func newReader(conn net.Conn) *reader {
	return &reader{conn: conn, buf: make([]byte, 128<<10)}
}

func (r *reader) read() (response, error) {
	headEnd, err := r.find([]byte("\r\n\r\n"), maxHead)
	if err != nil {
		return response{}, fmt.Errorf("reading the head: %w", err)
	}
	resp, length, chunked, err := parseHead(r.buf[r.start : r.start+headEnd])
	if err != nil {
		return response{}, err
	}
	r.start += headEnd + len("\r\n\r\n")
	switch {
	case chunked:
		resp.body, err = r.chunks()
	case length >= 0:
		resp.body, err = r.take(length)
	case resp.status != 204:
		err = errors.New("neither Content-Length nor chunks")
	}
	if err != nil {
		return response{}, fmt.Errorf("reading the body: %w", err)
	}
	return resp, nil
}

// parseHead reads the status line and the headers that matter; length is -1
// when none is given.
func parseHead(head []byte) (resp response, length int, chunked bool, err error) {
	length = -1
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return resp, 0, false, fmt.Errorf("not an HTTP/1.1 answer: %.40q", line)
	}
	if resp.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return resp, 0, false, fmt.Errorf("status line %.40q: %w", line, err)
	}
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case is(name, "content-length"):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 || length > maxBody {
				return resp, 0, false, fmt.Errorf("content length %.40q: %w", value, errTooLong)
			}
		case is(name, "transfer-encoding"):
			chunked = is(value, "chunked")
		case is(name, "content-type"):
			resp.events = bytes.HasPrefix(value, []byte("text/event-stream"))
		case is(name, "mcp-session-id"):
			resp.session = string(value)
		}
	}
	return resp, length, chunked, nil
}

// is compares without regard to case; lower is in lower case.
func is(name []byte, lower string) bool {
	return len(name) == len(lower) && bytes.EqualFold(name, []byte(lower))
}

// find returns where, counted from r.start, the first sep begins.
func (r *reader) find(sep []byte, limit int) (int, error) {
	seen := 0
	for {
		unread := r.buf[r.start:r.end]
		if i := bytes.Index(unread[seen:], sep); i >= 0 {
			return seen + i, nil
		}
		if len(unread) > limit {
			return 0, errTooLong
		}
		seen = max(0, len(unread)-len(sep)+1)
		if err := r.fill(len(unread) + 1); err != nil {
			return 0, err
		}
	}
}

// take returns the next n bytes and moves behind them.
func (r *reader) take(n int) ([]byte, error) {
	if err := r.fill(n); err != nil {
		return nil, err
	}
	part := r.buf[r.start : r.start+n]
	r.start += n
	return part, nil
}

// fill reads until at least n bytes are unread, moving them to the front of
// the buffer when they would not fit behind it.
func (r *reader) fill(n int) error {
	if r.start == r.end {
		r.start, r.end = 0, 0
	}
	if r.start+n > len(r.buf) {
		target := r.buf
		if n > len(r.buf) {
			target = make([]byte, n+n/4)
		}
		r.end = copy(target, r.buf[r.start:r.end])
		r.start, r.buf = 0, target
	}
	for r.end-r.start < n {
		got, err := r.conn.Read(r.buf[r.end:])
		r.end += got
		if err != nil && r.end-r.start < n {
			if errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// chunks reads a chunked body and joins it.
func (r *reader) chunks() ([]byte, error) {
	r.joined = r.joined[:0]
	for {
		lineEnd, err := r.find([]byte("\r\n"), maxHead)
		if err != nil {
			return nil, err
		}
		digits, _, _ := bytes.Cut(r.buf[r.start:r.start+lineEnd], []byte(";"))
		size, err := strconv.ParseUint(string(bytes.TrimSpace(digits)), 16, 31)
		if err != nil {
			return nil, fmt.Errorf("chunk size %.20q: %w", digits, err)
		}
		if len(r.joined)+int(size) > maxBody {
			return nil, errTooLong
		}
		r.start += lineEnd + len("\r\n")
		part, err := r.take(int(size) + len("\r\n"))
		if err != nil {
			return nil, err
		}
		if size == 0 {
			return r.joined, nil // no server here sends trailers
		}
		r.joined = append(r.joined, part[:size]...)
	}
}
