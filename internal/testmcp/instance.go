package testmcp

import (
	"context"
	"slices"
	"sync"
)

// Instance is one running Server: a child process, or one HTTP server in the test's own process.
type Instance struct {
	srv  *Server
	rec  sink
	proc *Process // nil unless this is a child
	ctx  context.Context
	stop context.CancelCauseFunc
	wg   sync.WaitGroup // handlers

	mu       sync.Mutex
	tools    []Tool
	sessions []*session
	listens  []*Call
	values   map[string]int
}

func newInstance(srv *Server, rec sink) *Instance {
	ctx, stop := context.WithCancelCause(context.Background())
	return &Instance{srv: srv, rec: rec, ctx: ctx, stop: stop, tools: slices.Clone(srv.Tools), values: map[string]int{}}
}

// end cancels every call and waits for the handlers.
func (in *Instance) end() {
	in.stop(errServerStopped)
	in.wg.Wait()
}

func (in *Instance) newSession(label string, out func(frame []byte, rel *Call)) *session {
	s := &session{in: in, label: label, out: out, calls: map[string]*Call{}, asks: map[string]chan Raw{}, values: map[string]int{}}
	in.mu.Lock()
	in.sessions = append(in.sessions, s)
	in.mu.Unlock()
	return s
}

func (in *Instance) dropSession(s *session) {
	in.mu.Lock()
	in.sessions = slices.DeleteFunc(in.sessions, func(x *session) bool { return x == s })
	in.mu.Unlock()
}

// SetTools replaces the tools. It notifies nobody; see Notify.
func (in *Instance) SetTools(tools ...Tool) {
	in.mu.Lock()
	in.tools = slices.Clone(tools)
	in.mu.Unlock()
}

func (in *Instance) currentTools() []Tool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.tools
}

// Notify sends a notification that belongs to no request: to each legacy session on its pipe or GET stream, and
// to each modern listener whose filter has it.
func (in *Instance) Notify(method, params string) {
	in.mu.Lock()
	sessions, listens := slices.Clone(in.sessions), slices.Clone(in.listens)
	in.mu.Unlock()
	for _, s := range sessions {
		if s.isLegacy() {
			s.write([]byte(frameOf("", method, params)), nil)
		}
	}
	for _, l := range listens {
		if l.wants(method, Raw(params)) {
			tagged := withMeta(orElse(params, "{}"), Quote(metaSub)+":"+string(l.ID))
			l.session.write([]byte(frameOf("", method, tagged)), l)
		}
	}
}

// Add adds n to a number that the instance keeps under that name, shared by all sessions, and gives the sum.
func (in *Instance) Add(name string, n int) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.values[name] += n
	return in.values[name]
}

func (in *Instance) addListen(c *Call) {
	in.mu.Lock()
	in.listens = append(in.listens, c)
	in.mu.Unlock()
}

func (in *Instance) dropListen(c *Call) {
	in.mu.Lock()
	in.listens = slices.DeleteFunc(in.listens, func(x *Call) bool { return x == c })
	in.mu.Unlock()
}
