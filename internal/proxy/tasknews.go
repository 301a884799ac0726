package proxy

import (
	"maps"
	"slices"
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// taskBoard knows who wants to hear of which task: states of tasks, and progress of calls that were answered with one.
// It is best effort, as these notifications are: whoever misses one asks.
type taskBoard struct {
	mu       sync.Mutex
	tasks    map[taskKeyOf]map[*Subscriptions]heardTask
	progress map[progressKey]func(f *wire.Frame)
}

// taskKeyOf names a task of a server.
type taskKeyOf struct {
	up         *upstream.Upstream
	unit       string
	generation uint64
	id         string
}

// progressKey names the request that progress is for by the token that we gave it.
type progressKey struct {
	up *upstream.Upstream
	id uint64
}

// heardTask is how one client hears of a task.
type heardTask struct {
	exposed  string
	progress progressKey // of the call that made it
	watched  bool        // the server has to be asked to tell
	over     bool        // it has ended; the news of that may still come
}

// TaskNews is a notification about a task. A later one of the same key says all that matters.
type TaskNews struct {
	Key   string
	Frame []byte // without the id of a subscription
}

func newTaskBoard() *taskBoard {
	return &taskBoard{tasks: map[taskKeyOf]map[*Subscriptions]heardTask{}, progress: map[progressKey]func(*wire.Frame){}}
}

// HearTasks sets what is told of the tasks of a client. It is called before the subscriptions are used; f must not block.
func (s *Subscriptions) HearTasks(f func(TaskNews)) { s.tellTask = f }

// hearTask lets the client hear of a task, and of the progress of the call that made it.
func (s *Subscriptions) hearTask(key taskKeyOf, exposed string, call progressKey, token []byte) {
	if s.tellTask == nil {
		return
	}
	h := heardTask{exposed: exposed}
	if token != nil && call.up != nil {
		h.progress = call
	}
	if h.progress.up != nil {
		token = slices.Clone(token)
		s.p.board.hearProgress(call, func(f *wire.Frame) {
			var p wire.Patch
			p.Reset(f.Raw)
			p.Replace(f.Body.Get(f.Raw, "progressToken"), token)
			s.exposeNews(&p, f, exposed)
			s.tellTask(TaskNews{Key: "progress " + exposed, Frame: p.Append(nil)})
		})
	}
	if !s.note(key, h) {
		s.p.board.endProgress(h.progress)
	}
}

// WatchTask subscribes a modern client to a task of its own. It is false where there is none, or its server tells nothing.
func (s *Subscriptions) WatchTask(c *Caller, id string) bool {
	ref, err := s.p.taskIDs.open(c, id)
	u := s.p.ups.Get(ref.upstream)
	if err != nil || u == nil || c.Caps&CapTasks == 0 || s.tellTask == nil || !s.p.view(c).has(u) || !u.TellsOfTasks() || u.Bound(c.Headers) != nil {
		return false
	}
	return s.note(taskKeyOf{up: u, generation: ref.place.Generation, id: ref.id}, heardTask{exposed: id, watched: true})
}

// note puts the client on the board; false over the bound. A task that is known already keeps its progress.
func (s *Subscriptions) note(key taskKeyOf, h heardTask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, had := s.tasks[key]; s.closed || !had && len(s.tasks) >= maxSubscriptions && !s.makeRoom() {
		return false
	}
	if s.tasks == nil {
		s.tasks = map[taskKeyOf]heardTask{}
	}
	if before, had := s.tasks[key]; had && h.progress.up == nil {
		h.progress = before.progress
	}
	s.tasks[key] = h
	s.p.board.add(key, s, h)
	return true
}

// makeRoom takes the tasks that have ended off the board; false where there are none. s.mu is held.
func (s *Subscriptions) makeRoom() bool {
	before := len(s.tasks)
	for key, h := range s.tasks {
		if h.over {
			delete(s.tasks, key)
			s.p.board.remove(key, s, h)
		}
	}
	return len(s.tasks) < before
}

// dropTasks takes the client off the board.
func (s *Subscriptions) dropTasks() {
	s.mu.Lock()
	tasks := maps.Clone(s.tasks)
	s.tasks = nil
	s.mu.Unlock()
	for key, h := range tasks {
		s.p.board.remove(key, s, h)
	}
}

func (b *taskBoard) hearProgress(key progressKey, f func(*wire.Frame)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.progress[key] = f
}

func (b *taskBoard) endProgress(key progressKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.progress, key)
}

func (b *taskBoard) add(key taskKeyOf, s *Subscriptions, h heardTask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tasks[key] == nil {
		b.tasks[key] = map[*Subscriptions]heardTask{}
	}
	b.tasks[key][s] = h
	b.watch(key.up)
}

func (b *taskBoard) remove(key taskKeyOf, s *Subscriptions, h heardTask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.progress, h.progress)
	delete(b.tasks[key], s)
	if len(b.tasks[key]) == 0 {
		delete(b.tasks, key)
	}
	b.watch(key.up)
}

// ended notes that a task has ended. What its server has told of it may still be on its way, on another stream.
func (b *taskBoard) ended(key taskKeyOf) {
	b.mu.Lock()
	told := maps.Clone(b.tasks[key])
	for s, h := range told {
		h.over = true
		b.tasks[key][s] = h
	}
	b.mu.Unlock()
	for s := range told {
		s.mu.Lock()
		if h, ok := s.tasks[key]; ok {
			h.over = true
			s.tasks[key] = h
		}
		s.mu.Unlock()
	}
}

// forget takes a task that has ended, and whose end was told, off the board.
func (b *taskBoard) forget(key taskKeyOf) {
	b.mu.Lock()
	told := b.tasks[key]
	for _, h := range told {
		delete(b.progress, h.progress)
	}
	delete(b.tasks, key)
	if len(told) > 0 {
		b.watch(key.up)
	}
	b.mu.Unlock()
	for s := range told {
		s.mu.Lock()
		delete(s.tasks, key)
		s.mu.Unlock()
	}
}

// watch tells a modern server which tasks it is to tell of. b.mu is held, so that the newest is told last.
func (b *taskBoard) watch(u *upstream.Upstream) {
	var ids []string
	for key, told := range b.tasks {
		for _, h := range told {
			if key.up == u && h.watched {
				ids = append(ids, key.id)
				break
			}
		}
	}
	slices.Sort(ids)
	u.WatchTasks(ids)
}

// TaskNews implements upstream.TaskObserver.
func (r *Relay) TaskNews(u *upstream.Upstream, at upstream.Place, f *wire.Frame) {
	if c := r.to.Load(); c != nil {
		c.onTask(u, at, f)
	}
}

// taskNews brings what a server tells of a task to those who want to hear of it.
func (p *Proxy) taskNews(u *upstream.Upstream, at upstream.Place, f *wire.Frame) {
	if f.Method == "notifications/progress" {
		id, _ := wire.ParseUpstreamID(f.Body.Get(f.Raw, "progressToken").Of(f.Raw))
		p.board.mu.Lock()
		hear := p.board.progress[progressKey{u, id}]
		p.board.mu.Unlock()
		if hear == nil {
			p.count.Drop(upstream.DropOf(f))
			return
		}
		hear(f)
		return
	}
	id, _ := wire.DecodeString(f.Body.Get(f.Raw, "taskId").Of(f.Raw))
	key := taskKeyOf{up: u, unit: at.Unit, generation: at.Generation, id: id}
	p.board.mu.Lock()
	told := maps.Clone(p.board.tasks[key])
	p.board.mu.Unlock()
	if len(told) == 0 {
		p.count.Drop(upstream.DropOf(f))
		return
	}
	for s, h := range told {
		var patch wire.Patch
		patch.Reset(f.Raw)
		patch.Replace(f.Body.Get(f.Raw, "taskId"), wire.AppendString(nil, h.exposed))
		s.exposeNews(&patch, f, h.exposed)
		s.tellTask(TaskNews{Key: h.exposed, Frame: patch.Append(nil)})
	}
	if status, _ := wire.DecodeString(f.Body.Get(f.Raw, "status").Of(f.Raw)); terminal(status) {
		p.board.forget(key)
	}
}

// exposeNews changes the _meta of a notification about a task: the task is named as the client knows it, and the
// subscription was between us and the server.
func (s *Subscriptions) exposeNews(p *wire.Patch, f *wire.Frame, exposed string) {
	p.Remove(&f.Meta, wire.MetaSubscriptionID)
	if related, ok := wire.ObjectAt(f.Raw, f.Meta.Get(f.Raw, wire.MetaRelatedTask)); ok {
		p.Replace(related.Get(f.Raw, "taskId"), wire.AppendString(nil, exposed))
	}
}
