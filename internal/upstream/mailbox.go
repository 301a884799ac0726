package upstream

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Budget bounds the bytes of frames that wait in mailboxes, over the whole process.
type Budget struct {
	left atomic.Int64
}

// NewBudget makes a budget of that many bytes.
func NewBudget(bytes int64) *Budget {
	b := &Budget{}
	b.left.Store(bytes)
	return b
}

func (b *Budget) take(n int) bool {
	if b.left.Add(-int64(n)) >= 0 {
		return true
	}
	b.left.Add(int64(n))
	return false
}

func (b *Budget) give(n int) { b.left.Add(int64(n)) }

// mailboxBytes bounds what waits in one mailbox beside the answer.
const mailboxBytes = 1 << 20

// mailbox is where the one reader of a connection leaves the frames of one call, in their order, so that it never waits
// for whoever reads them. Over its bound progress is merged, log messages are dropped and requests are refused; the answer
// always has a place.
type mailbox struct {
	budget *Budget
	count  *count.Counters

	standing bool   // of a request of the proxy's own that asks nothing; never changed
	task     string // that the call asks about; never changed

	mu     sync.Mutex
	frames []*wire.Frame
	bytes  int
	err    error
	signal chan struct{} // holds one token while there is news
}

func newMailbox(b *Budget, c *count.Counters) *mailbox {
	return &mailbox{budget: b, count: c, signal: make(chan struct{}, 1)}
}

// put leaves a frame, and says whether it was kept. It never blocks.
func (m *mailbox) put(f *wire.Frame) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return false
	}
	n := len(f.Raw)
	if isAnswer := f.Kind == wire.KindResponse || f.Kind == wire.KindError; !isAnswer && m.bytes+n > mailboxBytes && !m.makeRoom(f) {
		return false
	}
	if !m.budget.take(n) {
		m.count.Limit(count.LimitBuffered)
		m.fail(&Error{Reason: ReasonOverloaded, Err: errBudget})
		return false
	}
	m.frames = append(m.frames, f)
	m.bytes += n
	m.wake()
	return true
}

// makeRoom merges progress into the newest progress that waits; a request is the caller's to refuse, anything else is
// dropped.
func (m *mailbox) makeRoom(f *wire.Frame) bool {
	m.count.Limit(count.LimitMailbox)
	if f.Kind == wire.KindRequest {
		return false
	}
	if f.Method != "notifications/progress" {
		m.count.Drop(count.DropLog)
		return false
	}
	m.count.Drop(count.DropProgress)
	for i := len(m.frames) - 1; i >= 0; i-- {
		if m.frames[i].Method == f.Method {
			m.release(m.frames[i])
			m.frames = append(m.frames[:i], m.frames[i+1:]...)
			return true
		}
	}
	return false
}

func (m *mailbox) release(f *wire.Frame) {
	m.bytes -= len(f.Raw)
	m.budget.give(len(f.Raw))
}

func (m *mailbox) wake() {
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// close ends the mailbox with an error, which comes after the frames that wait.
func (m *mailbox) close(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail(err)
}

func (m *mailbox) fail(err error) {
	if m.err == nil {
		m.err = err
		m.wake()
	}
}

// take gives the next frame, or the error that ended the mailbox, or the end of ctx.
func (m *mailbox) take(ctx context.Context) (*wire.Frame, error) {
	for {
		if f, err := m.poll(); f != nil || err != nil {
			return f, err
		}
		select {
		case <-m.signal:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (m *mailbox) poll() (*wire.Frame, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.frames) > 0 {
		f := m.frames[0]
		m.frames = m.frames[1:]
		m.release(f)
		return f, nil
	}
	return nil, m.err
}

// drop gives back what still waits.
func (m *mailbox) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.frames {
		m.release(f)
	}
	m.frames = nil
	m.fail(context.Canceled)
}
