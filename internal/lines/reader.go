// Package lines carries messages as lines, one message a line, the way the stdio transport does: reading within a bound,
// and writing whole lines from many goroutines without ever waiting for a reader for longer than is allowed.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// ErrTooLong is returned once for a line over the bound. It has been discarded; the next call goes on after it.
var ErrTooLong = errors.New("the line is over the bound")

const readBuffer = 64 << 10

// Reader cuts a stream into lines. It is not safe for concurrent use.
type Reader struct {
	r   *bufio.Reader
	max int
}

// NewReader reads lines of at most maxLine bytes.
func NewReader(r io.Reader, maxLine int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, readBuffer), max: maxLine}
}

// Next gives the next line without its end, in a buffer that is the caller's and may go back to wire.PutBuffer. Blank
// lines are passed over, and so is a byte order mark that a line begins with. The last line may lack its end; then io.EOF
// comes with the next call.
func (l *Reader) Next() ([]byte, error) {
	for {
		b, err := l.line()
		if err != nil {
			return nil, err
		}
		if b = trim(b); len(b) > 0 {
			return b, nil
		}
	}
}

func trim(b []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(b), []byte("\uFEFF")))
}

func (l *Reader) line() ([]byte, error) {
	part, err := l.r.ReadSlice('\n')
	if err == nil || errors.Is(err, io.EOF) && len(part) > 0 {
		if len(withoutEnd(part)) > l.max {
			return nil, ErrTooLong
		}
		return append(wire.GetBuffer(len(part))[:0], part...), nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	buf := append(make([]byte, 0, 2*readBuffer), part...)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = l.r.ReadSlice('\n')
		if len(buf)+len(withoutEnd(part)) > l.max {
			return nil, l.discard(err)
		}
		buf = append(buf, part...)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return buf, nil
}

// discard reads to the end of a line that is too long; err is what its last part came with.
func (l *Reader) discard(err error) error {
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = l.r.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return ErrTooLong
}

func withoutEnd(b []byte) []byte { return bytes.TrimRight(b, "\r\n") }
