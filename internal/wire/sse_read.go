package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"time"
)

// ErrEventTooLarge is returned once for an event beyond the limit of the reader. The stream goes on after it.
var ErrEventTooLarge = errors.New("event stream: an event is larger than allowed")

// Event is one block of an event stream that set at least one field. Only those with HasData are events by the HTML
// standard; the others matter for their id or retry.
type Event struct {
	ID      string
	HasID   bool // this block set the id, possibly to the empty string
	Name    string
	Data    []byte // the lines of data joined by \n; valid until the next call of Next
	HasData bool
	Retry   time.Duration // zero when not given
}

// EventReader reads an event stream by the rules of the HTML standard (9.2.6). It hands out an event as soon as the
// blank line after it has begun to arrive, and holds no more than the event under way. It is not safe for concurrent
// use.
type EventReader struct {
	r   io.Reader
	max int // bytes of data in one event
	err error

	buf        []byte // what was read and is still needed; the data of the event under way stays in place
	line, scan int    // where the current line begins, and up to where it was searched for its end
	data       Span   // of the event under way; further lines are moved up to the first
	ev         Event  // under way
	begun      bool   // ev has a field
	started    bool   // the byte order mark was looked for
	afterCR    bool   // an LF at the start of the line belongs to the end of the last one
	skipLine   bool   // the start of the current line was thrown away
	skipEvent  bool   // the event under way is too large
	head, tail []byte // the ends of such an event
}

const (
	eventChunk  = 4 << 10  // least room for one read, and the stretch searched for a line end at a time
	eventRetain = 64 << 10 // a buffer above this size is given back when its event is done
	fieldRoom   = len("event: ")
	emptyReads  = 100 // so many reads without bytes or error mean that the reader is broken
	eventEdge   = 512 // bytes that are kept of either end of an event that is too large
)

// NewEventReader reads events with at most maxEvent bytes of data each from r. Any other field is bounded by the
// same size; comments may be of any length.
func NewEventReader(r io.Reader, maxEvent int) *EventReader { return &EventReader{r: r, max: maxEvent} }

// Next returns the next event; ErrEventTooLarge for one beyond the limit, after which the next call goes on; or the
// error of the underlying reader, io.EOF included. An event that the stream ends in is discarded. With ErrEventTooLarge
// come the first bytes of the event, as its Data.
func (r *EventReader) Next() (Event, error) {
	r.giveBack()
	for {
		line, ok := r.nextLine()
		switch {
		case ok && line.Ok():
			if !r.field(line) {
				return Event{Data: r.head}, ErrEventTooLarge
			}
		case ok:
			if ev, done := r.dispatch(); done {
				return ev, nil
			}
		case len(r.buf)-r.line > r.max+fieldRoom:
			r.refuse(r.buf[r.line:])
			return Event{Data: r.head}, ErrEventTooLarge
		case r.err != nil:
			return Event{}, r.err
		default:
			r.fill()
		}
	}
}

// nextLine is the next complete line without its end; the absent span for an empty one. It is false when more input
// is needed. Bytes of lines without interest are thrown away as they come.
func (r *EventReader) nextLine() (Span, bool) {
	if !r.start() {
		return Span{}, false
	}
	for {
		if r.afterCR && r.line < len(r.buf) {
			if r.afterCR = false; r.buf[r.line] == '\n' {
				r.line++
				r.scan = r.line
			}
		}
		end := r.lineEnd()
		if end < 0 {
			if r.skipEvent || r.skipLine || r.line < len(r.buf) && r.buf[r.line] == ':' {
				r.skipLine = r.skipLine || r.line < len(r.buf)
				r.keepTail(r.buf[r.line:])
				r.buf = r.buf[:r.line]
				r.scan = r.line
			}
			return Span{}, false
		}
		line := Span{r.line, end}
		r.afterCR = r.buf[end] == '\r'
		r.line, r.scan = end+1, end+1
		if !r.skipLine {
			return line, true
		}
		r.keepTail(line.Of(r.buf))
		r.skipLine = false
	}
}

// start skips a byte order mark; it is false while there may be one of which only a part has come.
func (r *EventReader) start() bool {
	const bom = "\uFEFF"
	if r.started {
		return true
	}
	if len(r.buf) < len(bom) && strings.HasPrefix(bom, string(r.buf)) {
		return false
	}
	if bytes.HasPrefix(r.buf, []byte(bom)) {
		r.line, r.scan = len(bom), len(bom)
	}
	r.started = true
	return true
}

// lineEnd searches for the first CR or LF, a stretch at a time: a stream that never uses one of the two must not be
// searched for it to the end again with each line.
func (r *EventReader) lineEnd() int {
	for r.scan < len(r.buf) {
		part := r.buf[r.scan:min(r.scan+eventChunk, len(r.buf))]
		end := bytes.IndexByte(part, '\n')
		if end >= 0 {
			part = part[:end]
		}
		if cr := bytes.IndexByte(part, '\r'); cr >= 0 {
			end = cr
		}
		if end >= 0 {
			return r.scan + end
		}
		r.scan += len(part)
	}
	return -1
}

// field takes in one line; it is false when that makes the event too large.
func (r *EventReader) field(line Span) bool {
	text := line.Of(r.buf)
	if r.skipEvent || text[0] == ':' {
		r.keepTail(text)
		return true
	}
	if len(text) > r.max+fieldRoom {
		return r.refuse(text)
	}
	name, value, _ := bytes.Cut(text, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		return r.addData(Span{line.End - len(value), line.End})
	case "event":
		r.ev.Name, r.begun = eventName(value), true
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			r.ev.ID, r.ev.HasID, r.begun = string(value), true, true
		}
	case "retry":
		if d, ok := retryTime(value); ok {
			r.ev.Retry, r.begun = d, true
		}
	}
	return true
}

// addData joins a line to those before it. There is always room: the field name in front of the value is longer than
// the line feed between them.
func (r *EventReader) addData(value Span) bool {
	if r.ev.HasData {
		r.buf[r.data.End] = '\n'
		r.data.End += 1 + copy(r.buf[r.data.End+1:], r.buf[value.Start:value.End])
	} else {
		r.data = value
	}
	r.ev.HasData, r.begun = true, true
	return r.data.len() <= r.max || r.refuse(r.data.Of(r.buf))
}

// refuse drops the event under way, of which this has come, and the rest of it that is still to come.
func (r *EventReader) refuse(text []byte) bool {
	if r.ev.HasData {
		r.head = bytes.Clone(r.buf[r.data.Start:min(r.data.End, r.data.Start+eventEdge)])
	} else {
		r.head = bytes.Clone(text[:min(len(text), eventEdge)])
	}
	r.ev, r.begun, r.skipEvent, r.tail = Event{}, false, true, nil
	r.keepTail(text)
	return false
}

// keepTail notes what is thrown away of an event that is too large.
func (r *EventReader) keepTail(text []byte) {
	if !r.skipEvent {
		return
	}
	r.tail = append(r.tail, text[max(0, len(text)-eventEdge):]...)
	if n := len(r.tail) - eventEdge; n > 0 {
		r.tail = append(r.tail[:0], r.tail[n:]...)
	}
}

// Skip reads on to the end of the event for which Next has returned ErrEventTooLarge, and gives the last bytes of its
// data. Afterwards the stream goes on.
func (r *EventReader) Skip() (tail []byte, err error) {
	for r.skipEvent {
		line, ok := r.nextLine()
		switch {
		case ok && line.Ok():
			r.keepTail(line.Of(r.buf))
		case ok:
			r.dispatch()
		case r.err != nil:
			return r.tail, r.err
		default:
			r.fill()
		}
	}
	return r.tail, nil
}

// dispatch ends the event under way, if there is one.
func (r *EventReader) dispatch() (Event, bool) {
	ev, begun := r.ev, r.begun
	if ev.HasData {
		ev.Data = r.buf[r.data.Start:r.data.End:r.data.End]
	}
	r.ev, r.begun, r.skipEvent = Event{}, false, false
	return ev, begun
}

// fill reads once, after making room.
func (r *EventReader) fill() {
	if cap(r.buf)-len(r.buf) < eventChunk {
		live := len(r.buf) - r.line
		if r.ev.HasData {
			live += r.data.len()
		}
		if size := cap(r.buf); live > size/2 || size < 2*eventChunk {
			r.moveTo(make([]byte, 0, 2*max(live, eventChunk)))
		} else {
			r.moveTo(r.buf[:0])
		}
	}
	for range emptyReads {
		n, err := r.r.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf, r.err = r.buf[:len(r.buf)+n], err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// moveTo moves what is needed, the data so far and the current line, to the start of a buffer, which may be the same.
func (r *EventReader) moveTo(buf []byte) {
	searched := r.scan - r.line
	rest := r.buf[r.line:]
	if r.ev.HasData {
		buf = append(buf, r.buf[r.data.Start:r.data.End]...)
		r.data = Span{0, len(buf)}
	}
	r.line = len(buf)
	r.scan = r.line + searched
	r.buf = append(buf, rest...)
}

// giveBack lets go of a buffer that a large event has left behind.
func (r *EventReader) giveBack() {
	if live := len(r.buf) - r.line; cap(r.buf) > eventRetain && !r.begun && live <= eventRetain-eventChunk {
		r.moveTo(make([]byte, 0, eventRetain))
	}
}

// eventName spares an allocation for the name that nearly all events have.
func eventName(b []byte) string {
	if string(b) == "message" {
		return "message"
	}
	return string(b)
}

// retryTime reads milliseconds, of ASCII digits only; what exceeds a day is taken as one.
func retryTime(b []byte) (time.Duration, bool) {
	const most = 24 * time.Hour
	var d time.Duration
	for _, c := range b {
		if !isDigit(c) {
			return 0, false
		}
		d = min(d*10+time.Duration(c-'0')*time.Millisecond, most)
	}
	return d, len(b) > 0
}
