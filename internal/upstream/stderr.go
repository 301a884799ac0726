package upstream

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
	stderrKept = 20  // lines kept for errors and status
	stderrLine = 500 // bytes kept of one line
)

// tailLog drains a child's stderr for as long as it lives: a pipe that nobody empties stops the child. Lines go to the
// log at a bounded rate, and the last ones are kept. Known secrets are masked.
type tailLog struct {
	log     *zap.Logger
	count   *count.Counters
	mask    *masker
	limiter *rate.Limiter
	done    chan struct{}

	mu    sync.Mutex
	lines []string
}

func newTailLog(log *zap.Logger, c *count.Counters, mask *masker) *tailLog {
	return &tailLog{log: log, count: c, mask: mask, limiter: rate.NewLimiter(20, 200), done: make(chan struct{})}
}

// drain reads until the end.
func (t *tailLog) drain(r io.Reader) {
	defer close(t.done)
	br := bufio.NewReaderSize(r, 32<<10)
	var part []byte
	most := stderrLine + t.mask.reach()
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

func (t *tailLog) add(text []byte) {
	s := strings.TrimSpace(t.mask.clip(string(text), stderrLine))
	if s == "" {
		return
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	t.mu.Lock()
	if len(t.lines) == stderrKept {
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
func (t *tailLog) settle() {
	select {
	case <-t.done:
	case <-time.After(200 * time.Millisecond):
	}
}

// last gives up to n of the newest lines.
func (t *tailLog) last(n int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.lines[max(0, len(t.lines)-n):]...)
}
