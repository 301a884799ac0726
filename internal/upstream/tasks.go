package upstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// ErrPlaceGone means that the connection that something was kept on is not there any more, and what was kept with it.
var ErrPlaceGone = errors.New("the connection is not there any more")

// Place is where a server keeps what one of its answers has named, a task. What a process keeps is known to that process
// only, and the next one may give the same name to something else; what is reached over HTTP is expected to outlive the
// connection. The zero Place is any connection of a server that is reached over HTTP.
type Place struct {
	Unit       string // the unit whose connection it is; empty for everybody's
	Generation uint64 // of the process; zero over HTTP
	Index      int    // of a connection that everybody shares
}

// TaskObserver hears of what belongs to tasks and to no call that is under way: their states, their progress. It is
// called from the goroutines that read and must not block; the frame is its own.
type TaskObserver interface {
	TaskNews(u *Upstream, at Place, f *wire.Frame)
}

// place is where this slot's server keeps things. The upstream's mutex is held.
func (s *slot) place() Place { return Place{Unit: s.key, Generation: s.generation, Index: s.index} }

// newGeneration names a connection of a server that forgets with it; zero for one that is expected not to.
func (u *Upstream) newGeneration() uint64 {
	if !u.isPipe() {
		return 0
	}
	return rand.Uint64() | 1
}

// Place tells where what the server names on this connection is kept.
func (l *Lease) Place() Place {
	l.s.u.mu.Lock()
	defer l.s.u.mu.Unlock()
	return l.s.place()
}

// Once says whether the connection ends with this lease.
func (l *Lease) Once() bool { return l.once }

// Again gives a second lease of the same connection, which is released on its own.
func (l *Lease) Again() *Lease {
	l.s.u.mu.Lock()
	defer l.s.u.mu.Unlock()
	l.s.inflight++
	if l.call {
		l.s.u.use.begin()
	}
	second := *l
	second.pass = nil // the place among those that run is given back once
	l.once = false    // the connection now ends with the second one
	return &second
}

// AcquirePlace gives a connection that leads to what was kept at a place for this unit. It fails with ErrPlaceGone where
// there is none.
func (u *Upstream) AcquirePlace(ctx context.Context, unit Unit, at Place) (*Lease, error) {
	return u.forCall(func() (*Lease, error) { return u.acquirePlace(ctx, unit, at) })
}

func (u *Upstream) acquirePlace(ctx context.Context, unit Unit, at Place) (*Lease, error) {
	if u.cfg.Sharing == config.SharingSession || u.binding(unit) != nil {
		return u.acquireUnit(ctx, unit, at)
	}
	s, err := u.sharedAt(at)
	if err != nil {
		return nil, err
	}
	return u.acquire(ctx, s, false)
}

// acquireUnit gives the connection of a unit, if it is still the one that knows the place.
func (u *Upstream) acquireUnit(ctx context.Context, unit Unit, at Place) (*Lease, error) {
	key, once := u.unitKey(unit)
	if once {
		return nil, ErrPlaceGone
	}
	if at.Generation != 0 {
		u.mu.Lock()
		s := u.keyed[key]
		known := s != nil && s.conn != nil && s.generation == at.Generation
		u.mu.Unlock()
		if !known {
			return nil, ErrPlaceGone
		}
	}
	own, err := u.keyedSlot(key, unit)
	if err != nil {
		return nil, err
	}
	return u.acquire(ctx, own, false)
}

// sharedAt finds the slot of a place: over HTTP the same one, or any where it is down or there are fewer by now.
func (u *Upstream) sharedAt(at Place) (*slot, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if at.Generation != 0 {
		i := slices.IndexFunc(u.shared, func(s *slot) bool { return s.conn != nil && s.generation == at.Generation })
		if i < 0 {
			return nil, ErrPlaceGone
		}
		return u.shared[i], nil
	}
	if u.isPipe() {
		return nil, ErrPlaceGone
	}
	if at.Index < len(u.shared) && u.shared[at.Index].conn != nil {
		return u.shared[at.Index], nil
	}
	return nil, nil
}

// isTaskNews says whether a notification is about a task, or may be: progress of a call that has been answered already.
func isTaskNews(method string) bool {
	return method == "notifications/progress" || method == "notifications/tasks" || method == "notifications/tasks/status"
}

// taskNews passes on what belongs to a task.
func (s *slot) taskNews(f *wire.Frame) {
	if s.u.opts.Tasks == nil {
		s.u.opts.Count.Drop(DropOf(f))
		return
	}
	s.u.mu.Lock()
	at := s.place()
	s.u.mu.Unlock()
	s.u.opts.Tasks.TaskNews(s.u, at, f)
}

// DropOf is what is counted where nobody wants news of a task.
func DropOf(f *wire.Frame) string {
	if f.Method == "notifications/progress" {
		return count.DropProgress
	}
	return count.DropNotification
}

// WatchTasks sets the tasks of which a modern server is asked to tell.
func (u *Upstream) WatchTasks(ids []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if slices.Equal(u.wishes.tasks, ids) {
		return
	}
	u.wishes.tasks = slices.Clone(ids)
	u.heard(len(ids))
	u.wishes.change()
}

// TellsOfTasks says whether the subscription of everybody's first connection is one that news of tasks come on.
func (u *Upstream) TellsOfTasks() bool {
	peer := u.Peer()
	return u.cfg.Sharing == config.SharingShared && u.cfg.Instances <= 1 && peer != nil && peer.Era == wire.Modern && peer.RunsTasks
}

// TasksExtension is the name of the tasks of the modern era among the extensions of a capabilities object.
const TasksExtension = wire.MetaPrefix + "tasks"

// runsTasks reads RunsTasks off the capabilities.
func (p *Peer) runsTasks() bool {
	if p.Era == wire.Modern {
		return p.Has("extensions", TasksExtension)
	}
	return p.Has("tasks", "requests", "tools", "call")
}

// stringArray is a JSON array of strings.
func stringArray(list []string) string {
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, s)
	}
	return string(append(b, ']'))
}
