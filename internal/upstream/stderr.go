package upstream

import (
	"bufio"
	"io"
	"slices"
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
	mask    *strings.Replacer
	longest int // secret, in bytes
	limiter *rate.Limiter
	done    chan struct{}

	mu    sync.Mutex
	lines []string
}

// masking replaces secrets wherever they stand, and gives the length of the longest.
func masking(secrets []string) (mask *strings.Replacer, longest int) {
	var pairs []string
	// Longer ones first: one may begin with another.
	for _, s := range slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return len(b) - len(a) }) {
		pairs = append(pairs, s, "<secret>")
		longest = max(longest, len(s))
	}
	return strings.NewReplacer(pairs...), longest
}

func newTailLog(log *zap.Logger, c *count.Counters, secrets []string) *tailLog {
	mask, longest := masking(secrets)
	return &tailLog{log: log, count: c, mask: mask, longest: longest, limiter: rate.NewLimiter(20, 200), done: make(chan struct{})}
}

// drain reads until the end.
func (t *tailLog) drain(r io.Reader) {
	defer close(t.done)
	br := bufio.NewReaderSize(r, 32<<10)
	var part []byte
	most := stderrLine + t.longest
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
	s := strings.TrimSpace(string(text))
	if s == "" {
		return
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	s = t.mask.Replace(s)
	if len(text) == stderrLine+t.longest {
		s = s[:max(0, len(s)-t.longest)] // the line was cut, perhaps within a secret, which the mask does not know then
	}
	s = s[:min(len(s), stderrLine)]
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
