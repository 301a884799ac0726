package process

import (
	"bufio"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
)

const (
	// KeptLines is how many lines are kept for errors and status.
	KeptLines = 20
	// KeptBytes is how much is kept of one line.
	KeptBytes = 500
)

// Tail drains a child's stderr for as long as it lives: a pipe that nobody empties stops the child. Lines go to the
// log at a bounded rate, and the last ones are kept. Known secrets are masked.
type Tail struct {
	log     *zap.Logger
	count   *count.Counters
	mask    Mask
	limiter *rate.Limiter
	done    chan struct{}

	mu    sync.Mutex
	lines []string
}

// NewTail keeps nothing yet.
func NewTail(log *zap.Logger, c *count.Counters, mask Mask) *Tail {
	return &Tail{log: log, count: c, mask: mask, limiter: rate.NewLimiter(20, 200), done: make(chan struct{})}
}

// Drain reads until the end.
func (t *Tail) Drain(r io.Reader) {
	defer close(t.done)
	br := bufio.NewReaderSize(r, 32<<10)
	var part []byte
	most := KeptBytes + t.mask.Reach()
	for {
		b, err := br.ReadByte()
		if err != nil {
			t.add(part)
			return
		}
		// A carriage return ends a line too: progress bars never send anything else.
		if b == '\n' || b == '\r' {
			t.add(part)
			part = part[:0]
			continue
		}
		if len(part) < most {
			part = append(part, b)
		}
	}
}

func (t *Tail) add(text []byte) {
	s := strings.TrimSpace(t.mask.Clip(string(text), KeptBytes))
	if s == "" {
		return
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	t.mu.Lock()
	if len(t.lines) == KeptLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, s)
	t.mu.Unlock()
	if !t.limiter.Allow() {
		t.count.Drop(count.DropStderr)
		return
	}
	t.log.Info("stderr", zap.String("line", s))
}

// settle waits a moment for the end of stderr, so that the last words of a process are there.
func (t *Tail) settle() {
	select {
	case <-t.done:
	case <-time.After(200 * time.Millisecond):
	}
}

// Last gives up to n of the newest lines.
func (t *Tail) Last(n int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.lines[max(0, len(t.lines)-n):]...)
}
