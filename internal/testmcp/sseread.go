package testmcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"time"
)

// readEvents reads an event stream to its end and hands each event and comment line out. Lines end with LF, CRLF
// or CR. An unfinished event at the end is dropped, as the format wants it.
func readEvents(r io.Reader, event func(Event), comment func()) error {
	in := bufio.NewReaderSize(r, 64<<10)
	if bom, err := in.Peek(3); err == nil && string(bom) == ByteOrderMark {
		_, _ = in.Discard(3)
	}
	var e eventReader
	lines := lineReader{in: in}
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case len(line) == 0:
			if done, ok := e.take(); ok {
				event(done)
			}
		case line[0] == ':':
			comment()
		default:
			e.field(line)
		}
	}
}

// lineReader reads lines that end with LF, CRLF or CR. A line ends at its CR, without waiting to see whether an
// LF follows: that one is passed over when the next line is read, however late it comes.
type lineReader struct {
	in     *bufio.Reader
	skipLF bool
}

func (l *lineReader) next() ([]byte, error) {
	var line []byte
	for {
		b, err := l.in.ReadByte()
		if err != nil {
			return nil, err
		}
		skip := l.skipLF && b == '\n'
		l.skipLF = b == '\r'
		switch {
		case skip:
		case b == '\n' || b == '\r':
			return line, nil
		default:
			line = append(line, b)
		}
	}
}

// eventReader gathers the fields of one event.
type eventReader struct {
	e    Event
	data [][]byte
	any  bool
}

func (r *eventReader) field(line []byte) {
	name, value, _ := strings.Cut(string(line), ":")
	value = strings.TrimPrefix(value, " ")
	r.any = true
	switch name {
	case "event":
		r.e.Name = value
	case "id":
		r.e.ID, r.e.HasID = value, true
	case "retry":
		r.e.Retry = value
	case "data":
		r.data = append(r.data, []byte(value))
	}
}

func (r *eventReader) take() (Event, bool) {
	e, ok := r.e, r.any
	e.Data, e.HasData, e.At = Raw(bytes.Join(r.data, []byte("\n"))), len(r.data) > 0, time.Now()
	*r = eventReader{}
	return e, ok
}
