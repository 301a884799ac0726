package session

import (
	"container/list"
	"crypto/rand"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
)

// shelf holds the tapes of all sessions within their bounds: bytes of one session, bytes of all, and age. It is safe
// for concurrent use; its lock is a leaf.
type shelf struct {
	window     time.Duration
	perSession int64
	whole      int64
	count      *count.Counters

	mu    sync.Mutex
	used  int64
	spare list.List // *tape whose client has probably had everything; the first to go
	owed  list.List // *tape with an answer that its client has not had
	timer *time.Timer
	over  bool
}

// shareOfBuffers is the part of limits.max_buffered_bytes that tapes may use.
const shareOfBuffers = 4

func newShelf(s config.Sessions, l config.Limits, c *count.Counters) *shelf {
	return &shelf{window: s.ResumeWindow, perSession: s.ResumeBufferBytes, whole: l.MaxBufferedBytes / shareOfBuffers, count: c}
}

// open begins the tape of a stream; nil where nothing is kept. call is nil for a standing stream.
func (h *shelf) open(of *tapes, call *exchange, stand *standing) *tape {
	if h.window <= 0 || h.perSession <= 0 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t := &tape{shelf: h, of: of, call: call, stand: stand, kind: streamPost}
	if call == nil {
		t.kind = streamGet
	}
	if of.over || h.over || !h.makeRoom(t, tapeCost) {
		return nil
	}
	if of.byNo == nil {
		of.byNo, of.epoch = map[uint64]*tape{}, rand.Text()[:8]
	}
	of.last++
	t.no = of.last
	t.name = of.epoch + "-" + strconv.FormatUint(t.no, 36) + "-"
	of.byNo[t.no] = t
	t.charge(tapeCost)
	return t
}

// find gives the tape that an event id is of, and the number of the event.
func (h *shelf) find(of *tapes, eventID string) (*tape, uint64, bool) {
	epoch, no, seq, ok := parseEventID(eventID)
	if !ok {
		return nil, 0, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t := of.byNo[no]
	if t == nil || epoch != of.epoch || seq > t.last {
		return nil, 0, false
	}
	return t, seq, true
}

// makeRoom makes room for n more bytes on a tape: first goes what its clients have probably had, then the oldest events
// of the tape itself. h.mu is held.
func (h *shelf) makeRoom(t *tape, n int64) bool {
	if n > h.perSession || n > h.whole {
		return false
	}
	for t.of.used+n > h.perSession {
		if !h.dropSpareOf(t.of) && !t.giveWay() {
			return false
		}
	}
	for h.used+n > h.whole {
		if front := h.spare.Front(); front != nil {
			h.remove(front.Value.(*tape))
		} else if !t.giveWay() {
			return false
		}
	}
	return true
}

// giveWay drops the oldest event of a tape for a newer one. The lock is held.
func (t *tape) giveWay() bool {
	if !t.dropOldest() {
		return false
	}
	t.shelf.count.Limit(count.LimitResume)
	return true
}

// dropSpareOf drops the oldest tape of a session whose client has probably had everything. h.mu is held.
func (h *shelf) dropSpareOf(of *tapes) bool {
	var oldest *tape
	for _, t := range of.byNo {
		if t.on == &h.spare && (oldest == nil || t.until.Before(oldest.until)) {
			oldest = t
		}
	}
	if oldest == nil {
		return false
	}
	h.remove(oldest)
	return true
}

// rest puts a tape on a list, from which it goes when its time is over. h.mu is held.
func (h *shelf) rest(t *tape, on *list.List) {
	if t.of.byNo[t.no] != t {
		return
	}
	h.wake(t)
	t.until = time.Now().Add(h.window)
	t.on, t.resting = on, on.PushBack(t)
	if h.timer == nil && !h.over {
		h.timer = time.AfterFunc(h.window, h.expire)
	}
}

// wake takes a tape off its list. h.mu is held.
func (h *shelf) wake(t *tape) {
	if t.resting != nil {
		t.on.Remove(t.resting)
		t.on, t.resting = nil, nil
	}
}

// expire drops what has rested for long enough. Both lists are in the order of time.
func (h *shelf) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	var next time.Time
	for _, on := range []*list.List{&h.spare, &h.owed} {
		for front := on.Front(); front != nil; front = on.Front() {
			t := front.Value.(*tape)
			if t.until.After(now) {
				if next.IsZero() || t.until.Before(next) {
					next = t.until
				}
				break
			}
			h.remove(t)
		}
	}
	if next.IsZero() || h.over {
		h.timer = nil
		return
	}
	h.timer.Reset(next.Sub(now))
}

// remove forgets a tape. h.mu is held.
func (h *shelf) remove(t *tape) {
	if t.of.byNo[t.no] != t {
		return
	}
	h.wake(t)
	delete(t.of.byNo, t.no)
	t.of.used -= t.used
	h.used -= t.used
	t.used, t.events = 0, nil
}

// forget drops all tapes of a session that is over, and lets no more begin.
func (h *shelf) forget(of *tapes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of.over = true
	for _, t := range of.byNo {
		h.remove(t)
	}
}

// bytes says how much is kept.
func (h *shelf) bytes() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.used
}

// stop ends the keeping of time.
func (h *shelf) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	if h.timer != nil {
		h.timer.Stop()
	}
}
