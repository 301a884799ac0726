package upstream

import (
	"bufio"
	"bytes"
	"io"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// lineReader cuts a byte stream at line feeds, and only there (stdio transport: one message a line). A line over the
// bound is discarded without being kept; what is left of it are its first and last bytes, in which its id may stand.
type lineReader struct {
	r   *bufio.Reader
	max int
}

const (
	readBuffer = 64 << 10
	edgeBytes  = 512
)

func newLineReader(r io.Reader, maxLine int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, readBuffer), max: maxLine}
}

// line is one line without its end.
type line struct {
	text       []byte // owned by whoever gets it
	tooLong    bool
	head, tail []byte // of a line that was too long
}

// next reads one line. The last one may lack its end; then io.EOF comes with the next call.
func (l *lineReader) next() (line, error) {
	part, err := l.r.ReadSlice('\n')
	if err == nil || (err == io.EOF && len(part) > 0) {
		return line{text: bytes.Clone(trimEnd(part))}, nil
	}
	if err != bufio.ErrBufferFull {
		return line{}, err
	}
	buf := append(make([]byte, 0, 4*readBuffer), part...)
	for err == bufio.ErrBufferFull {
		part, err = l.r.ReadSlice('\n')
		if len(buf)+len(part) > l.max {
			return l.discard(buf, part, err)
		}
		buf = append(buf, part...)
	}
	if err != nil && err != io.EOF {
		return line{}, err
	}
	return line{text: trimEnd(buf)}, nil
}

// discard reads on to the end of a line that is too long.
func (l *lineReader) discard(head, part []byte, err error) (line, error) {
	out := line{tooLong: true, head: bytes.Clone(head[:edgeBytes])}
	tail := append([]byte(nil), part...)
	for err == bufio.ErrBufferFull {
		part, err = l.r.ReadSlice('\n')
		tail = append(tail, part...)
		if n := len(tail) - edgeBytes; n > 0 {
			tail = append(tail[:0], tail[n:]...)
		}
	}
	out.tail = trimEnd(tail)
	if err != nil && err != io.EOF {
		return line{}, err
	}
	return out, nil
}

func trimEnd(b []byte) []byte {
	return bytes.TrimRight(b, "\r\n")
}

// idAtEdge looks for our id in what is left of a line that was too long: members come in any order, but an id stands
// before or after the large one. Zero where none is found.
func idAtEdge(l line) uint64 {
	if id := idIn(l.head, bytes.Index(l.head, []byte(`"id"`))); id != 0 {
		return id
	}
	return idIn(l.tail, bytes.LastIndex(l.tail, []byte(`"id"`)))
}

func idIn(b []byte, at int) uint64 {
	if at < 0 {
		return 0
	}
	rest := bytes.TrimLeft(b[at+len(`"id"`):], " \t:")
	end := bytes.IndexAny(rest, ",} \t")
	if end < 0 {
		return 0
	}
	id, _ := wire.ParseUpstreamID(rest[:end])
	return id
}
