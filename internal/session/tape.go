package session

import (
	"container/list"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
)

// kept is one event that can be said again.
type kept struct {
	seq   uint64
	frame []byte
	at    time.Time
}

// What an event and a tape cost beside the bytes of their frames.
const (
	eventCost = 96
	tapeCost  = 512
)

func (k kept) cost() int64 { return int64(len(k.frame)) + eventCost }

// tapes are the streams of one session that its client can come back to. The shelf's lock guards them.
type tapes struct {
	epoch string // tells the streams of this live state from those of another, whose numbers may be the same
	last  uint64
	used  int64
	byNo  map[uint64]*tape
	over  bool
}

// tape is what has been said on one stream of a session (2025-11-25, transports, "Resumability and Redelivery"). The
// shelf's lock guards it. A nil *tape keeps nothing.
type tape struct {
	shelf *shelf
	of    *tapes
	no    uint64
	name  string    // what event ids of this stream begin with
	call  *exchange // whose stream it is; nil for a standing stream, and once the call is over
	stand *standing // that is being written now; nil for the stream of a call, and where nobody listens
	kind  int       // streamPost or streamGet

	events []kept
	used   int64
	last   uint64

	resting *list.Element // on one of the shelf's lists; nil while the stream goes on
	on      *list.List
	until   time.Time // when a resting tape is dropped
}

// next gives the number of the next event.
func (t *tape) next() uint64 {
	t.shelf.mu.Lock()
	defer t.shelf.mu.Unlock()
	t.last++
	return t.last
}

// id is the event id with that number.
func (t *tape) id(seq uint64) string { return t.name + strconv.FormatUint(seq, 36) }

// keep keeps an event; false where there is no room for it. away says that the client is not there.
func (t *tape) keep(seq uint64, frame []byte, away bool) bool {
	k := kept{seq: seq, frame: append([]byte(nil), frame...), at: time.Now()}
	t.shelf.mu.Lock()
	defer t.shelf.mu.Unlock()
	return t.add(k, away)
}

// add adds an event. What is older than a client may be away goes for good, unless the client is away. The lock is held.
func (t *tape) add(k kept, away bool) bool {
	if t.of.byNo[t.no] != t {
		return false
	}
	for !away && len(t.events) > 0 && k.at.Sub(t.events[0].at) > t.shelf.window {
		t.dropOldest()
	}
	if !t.shelf.makeRoom(t, k.cost()) {
		t.shelf.count.Limit(count.LimitResume)
		return false
	}
	t.put(k)
	return true
}

// insist keeps a small event in place of one for which there was no room.
func (t *tape) insist(seq uint64, frame []byte) {
	t.shelf.mu.Lock()
	defer t.shelf.mu.Unlock()
	if t.of.byNo[t.no] == t {
		t.put(kept{seq: seq, frame: frame, at: time.Now()})
	}
}

// put puts an event at the end. The lock is held.
func (t *tape) put(k kept) {
	t.events = append(t.events, k)
	t.charge(k.cost())
}

// charge counts bytes in, or out where n is negative. The lock is held.
func (t *tape) charge(n int64) {
	t.used += n
	t.of.used += n
	t.shelf.used += n
}

// dropOldest drops one event; false where there is none. The lock is held.
func (t *tape) dropOldest() bool {
	if len(t.events) == 0 {
		return false
	}
	t.charge(-t.events[0].cost())
	t.events[0] = kept{}
	t.events = t.events[1:]
	return true
}

// say gives a notification of a standing stream its event id. It fails where another response has taken the stream
// over: that one must say it.
func (t *tape) say(st *standing, frame []byte) (id string, ok bool) {
	if t == nil {
		return "", true
	}
	k := kept{frame: append([]byte(nil), frame...), at: time.Now()}
	t.shelf.mu.Lock()
	defer t.shelf.mu.Unlock()
	if t.stand != st {
		return "", false
	}
	t.last++
	k.seq = t.last
	t.add(k, false)
	return t.id(k.seq), true
}

// after gives the events that came after that number.
func (t *tape) after(seq uint64) []kept {
	t.shelf.mu.Lock()
	defer t.shelf.mu.Unlock()
	i := 0
	for i < len(t.events) && t.events[i].seq <= seq {
		i++
	}
	return append([]kept(nil), t.events[i:]...)
}

// finish notes that the stream has had its last event. What was delivered is kept for a while all the same, as nobody
// knows whether it arrived, but goes first where room is needed.
func (t *tape) finish(delivered bool) {
	if t == nil {
		return
	}
	t.shelf.mu.Lock()
	defer t.shelf.mu.Unlock()
	t.call = nil
	if delivered {
		t.shelf.rest(t, &t.shelf.spare)
		return
	}
	t.shelf.rest(t, &t.shelf.owed)
}

// take makes st the response that a standing stream is written to, and gives the one before, if it is still there.
func (t *tape) take(st *standing) (before *standing, ok bool) {
	t.shelf.mu.Lock()
	defer t.shelf.mu.Unlock()
	if t.of.byNo[t.no] != t {
		return nil, false
	}
	t.shelf.wake(t)
	before, t.stand = t.stand, st
	return before, true
}

// leave notes that the client of a standing stream has gone.
func (t *tape) leave(st *standing) {
	if t == nil {
		return
	}
	t.shelf.mu.Lock()
	defer t.shelf.mu.Unlock()
	if t.stand == st {
		t.stand = nil
		t.shelf.rest(t, &t.shelf.spare)
	}
}

// drop forgets the stream.
func (t *tape) drop() {
	if t == nil {
		return
	}
	t.shelf.mu.Lock()
	defer t.shelf.mu.Unlock()
	t.shelf.remove(t)
}

// going tells whose call the stream belongs to; nil where the call is over, or it never was a call's.
func (t *tape) going() *exchange {
	t.shelf.mu.Lock()
	defer t.shelf.mu.Unlock()
	return t.call
}

// parseEventID takes an event id apart.
func parseEventID(id string) (epoch string, no, seq uint64, ok bool) {
	if len(id) > 64 {
		return "", 0, 0, false
	}
	epoch, rest, _ := strings.Cut(id, "-")
	first, second, _ := strings.Cut(rest, "-")
	no, err := strconv.ParseUint(first, 36, 64)
	if err != nil {
		return "", 0, 0, false
	}
	seq, err = strconv.ParseUint(second, 36, 64)
	return epoch, no, seq, err == nil
}
