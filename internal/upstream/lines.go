package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// lineReader cuts a byte stream at line feeds, and only there (stdio transport: one message a line). A line over the
// bound is discarded without being kept; what is left of it are its first and last bytes, in which its id may stand.
type lineReader struct {
	r    *bufio.Reader
	max  int
	long []byte // where lines over the buffer are put together
}

const (
	readBuffer = 64 << 10
	edgeBytes  = 512
	// longKept bounds what is kept for the next long line.
	longKept = 1 << 20
)

// keep copies a line out of the reader's buffer.
func keep(b []byte) []byte { return append(wire.GetBuffer(len(b))[:0], b...) }

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
	if err == nil || (errors.Is(err, io.EOF) && len(part) > 0) {
		if len(trimEnd(part)) > l.max {
			return l.discard(nil, part, err)
		}
		return line{text: keep(trimEnd(part))}, nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line{}, err
	}
	buf := append(l.long[:0], part...)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = l.r.ReadSlice('\n')
		if len(buf)+len(trimEnd(part)) > l.max {
			return l.discard(buf, part, err)
		}
		buf = append(buf, part...)
	}
	if cap(buf) <= longKept {
		l.long = buf
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return line{}, err
	}
	return line{text: keep(trimEnd(buf))}, nil
}

// discard reads on to the end of a line that is too long, of which buf and part have been read.
func (l *lineReader) discard(buf, part []byte, err error) (line, error) {
	out := line{tooLong: true}
	tail := append(bytes.Clone(buf[max(0, len(buf)-edgeBytes):]), part...)
	if out.head = buf; len(buf) < edgeBytes {
		out.head = tail
	}
	out.head = bytes.Clone(out.head[:min(edgeBytes, len(out.head))])
	for errors.Is(err, bufio.ErrBufferFull) {
		tail = append(tail[:0], tail[max(0, len(tail)-edgeBytes-2):]...) // the end of the line may be cut in two
		part, err = l.r.ReadSlice('\n')
		tail = append(tail, part...)
	}
	tail = trimEnd(tail)
	out.tail = tail[max(0, len(tail)-edgeBytes):]
	if err != nil && !errors.Is(err, io.EOF) {
		return line{}, err
	}
	return out, nil
}

func trimEnd(b []byte) []byte {
	return bytes.TrimRight(b, "\r\n")
}

// idAtEdge looks for our id in what is left of a line that was too long: members come in any order, but an id stands
// before or after the large one. Zero where none is certain to be the message's own: others may stand deeper.
func idAtEdge(l line) uint64 {
	if at := bytes.Index(l.head, idName); at >= 0 && bytes.Count(l.head[:at], []byte("{")) == 1 {
		if id, _ := idIn(l.head, at); id != 0 {
			return id
		}
	}
	id, rest := idIn(l.tail, bytes.LastIndex(l.tail, idName))
	switch string(bytes.Join(bytes.Fields(rest), nil)) {
	case `}`, `,"jsonrpc":"2.0"}`:
		return id
	}
	return 0
}

// kindAtHead tells from the beginning of a message what it is: an answer, or something that the server says or asks on its own
// account (KindRequest for both). Zero where neither is certain.
func kindAtHead(head []byte) wire.Kind {
	head = bytes.TrimLeft(head, " \t")
	depth := 0
	for i := 0; i < len(head); i++ {
		switch head[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			end := endOfString(head, i+1)
			after := bytes.TrimLeft(head[min(end+1, len(head)):], " \t")
			if depth == 1 && head[0] == '{' && bytes.HasPrefix(after, []byte(":")) {
				switch string(head[i+1 : end]) {
				case "method":
					return wire.KindRequest
				case "result", "error":
					return wire.KindResponse
				}
			}
			i = end
		}
	}
	return 0
}

// endOfString finds the quote that ends a string, or the end.
func endOfString(b []byte, from int) int {
	for i := from; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(b)
}

var idName = []byte(`"id"`)

// idIn reads the id whose name stands at that place, and gives what follows it.
func idIn(b []byte, at int) (id uint64, rest []byte) {
	if at < 0 {
		return 0, nil
	}
	b = bytes.TrimLeft(b[at+len(idName):], " \t:")
	end := bytes.IndexAny(b, ",} \t")
	if end < 0 {
		return 0, nil
	}
	id, _ = wire.ParseUpstreamID(b[:end])
	return id, b[end:]
}
