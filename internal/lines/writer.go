package lines

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"
)

var (
	// ErrNotRead means that whoever reads has taken nothing for too long while the queue was full.
	ErrNotRead = errors.New("what is written is not read")
	// ErrClosed is returned for what is sent after Close.
	ErrClosed = errors.New("the writer is closed")
)

const (
	// chunk is how much is written at a time. A reader that is slow, but reads, shows it with each chunk.
	chunk = 64 << 10
	// keptBuffer bounds what is kept for the next messages.
	keptBuffer = 1 << 20
)

// Writer writes lines, each whole, in the order in which Send was called. Send may be called by many goroutines.
type Writer struct {
	w        io.Writer
	max      int
	patience time.Duration

	mu      sync.Mutex
	queue   []byte
	writing int // bytes taken out of the queue and not written yet
	closing bool
	err     error
	moved   chan struct{} // closed, and another one made, when there is more room or a reason to look again
	wake    chan struct{} // holds one token while there is something to do
	failed  chan struct{} // closed with the first error
	done    chan struct{} // closed when nothing is written any more
}

// NewWriter makes a writer whose queue holds up to maxQueue bytes, or one message of any size. When the queue is full Send
// waits; when nothing at all has been taken for the time of patience, the writer fails.
func NewWriter(w io.Writer, maxQueue int, patience time.Duration) *Writer {
	return &Writer{w: w, max: maxQueue, patience: patience, moved: make(chan struct{}), wake: make(chan struct{}, 1),
		failed: make(chan struct{}), done: make(chan struct{})}
}

// Start begins to write.
func (w *Writer) Start() { go w.run() }

// Failed is closed once nothing can be written any more; Err then tells why.
func (w *Writer) Failed() <-chan struct{} { return w.failed }

// Err is why nothing can be written any more: ErrNotRead, ErrClosed, or the error of the underlying writer.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Send puts one line, given in parts, into the queue. The parts are copied. Line breaks in them become blanks, since they
// would end the message; valid messages have them only where blanks may stand.
func (w *Writer) Send(parts ...[]byte) error {
	n := 1
	for _, p := range parts {
		n += len(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && w.held() > 0 && w.held()+n > w.max {
		w.await()
	}
	if w.err != nil {
		return w.err
	}
	from := len(w.queue)
	for _, p := range parts {
		w.queue = append(w.queue, p...)
	}
	unbreak(w.queue[from:])
	w.queue = append(w.queue, '\n')
	w.poke()
	return nil
}

func unbreak(line []byte) {
	for _, end := range []byte{'\n', '\r'} {
		rest := line
		for i := bytes.IndexByte(rest, end); i >= 0; i = bytes.IndexByte(rest, end) {
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
}

func (w *Writer) held() int { return len(w.queue) + w.writing }

func (w *Writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// await waits until something has moved. w.mu is held, but for the time of waiting.
func (w *Writer) await() {
	moved := w.moved
	w.mu.Unlock()
	timer := time.NewTimer(w.patience)
	defer timer.Stop()
	late := false
	select {
	case <-moved:
	case <-timer.C:
		late = true
	}
	w.mu.Lock()
	if late && moved == w.moved {
		w.fail(ErrNotRead)
	}
}

// fail ends the writer with its first error. w.mu is held.
func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
		close(w.failed)
		w.move()
		w.poke()
	}
}

// move tells those who wait that something has changed. w.mu is held.
func (w *Writer) move() {
	close(w.moved)
	w.moved = make(chan struct{})
}

// run writes what is in the queue until the writer fails, or is closed and has written everything.
func (w *Writer) run() {
	defer close(w.done)
	var out []byte
	for range w.wake {
		for {
			w.mu.Lock()
			out, w.queue = w.queue, out[:0]
			w.writing = len(out)
			over := w.err != nil && !w.closing || len(out) == 0 && w.closing
			w.mu.Unlock()
			if over {
				return
			}
			if len(out) == 0 {
				break
			}
			if !w.write(out) {
				return
			}
			if cap(out) > keptBuffer {
				out = nil
			}
		}
	}
}

// write writes chunk by chunk and tells of each.
func (w *Writer) write(b []byte) bool {
	for len(b) > 0 {
		n, err := w.w.Write(b[:min(chunk, len(b))])
		w.mu.Lock()
		if err != nil {
			w.closing = false
			w.fail(err)
			w.mu.Unlock()
			return false
		}
		b = b[n:]
		w.writing = len(b)
		w.move()
		w.mu.Unlock()
	}
	return true
}

// Close takes nothing more, and waits until what is in the queue has been written, for so long at most. A Write of the
// underlying writer that never returns cannot be ended; false tells of it.
func (w *Writer) Close(within time.Duration) bool {
	w.mu.Lock()
	if w.err == nil {
		w.closing = true
		w.fail(ErrClosed)
	}
	w.mu.Unlock()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-w.done:
		return true
	case <-timer.C:
		return false
	}
}
