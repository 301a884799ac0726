package proxy

import (
	"context"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// taskRelay is the exchange of a client that knows tasks with a server of its era that runs them. The ids of tasks change
// on the way in both directions; the rest passes.
type taskRelay struct {
	x upstream.Exchange
	c *call
}

// Next implements upstream.Exchange.
func (r *taskRelay) Next(ctx context.Context) (*wire.Frame, error) {
	f, err := r.x.Next(ctx)
	if err != nil {
		return nil, err
	}
	var p wire.Patch
	p.Reset(f.Raw)
	if err := r.expose(&p, f); err != nil {
		return nil, err
	}
	if p.Empty() {
		return f, nil
	}
	return reparsed(&p)
}

// reparsed is the frame that a patch makes.
func reparsed(p *wire.Patch) (*wire.Frame, error) {
	return wire.Parse(p.Append(nil), wire.Upstream, wire.Limits{MaxDepth: maxReparsedDepth})
}

// maxReparsedDepth is no bound of its own: what is read again has passed the configured one, and a member or two deeper.
const maxReparsedDepth = 10_000

// expose puts the ids that the client knows in the place of the server's.
func (r *taskRelay) expose(p *wire.Patch, f *wire.Frame) error {
	if err := r.related(p, f, r.sealed); err != nil {
		return err
	}
	switch f.Kind {
	case wire.KindResponse:
		return r.result(p, f)
	case wire.KindRequest:
		// The proxy declares no tasks of clients, so nobody runs the client's answer as one.
		p.Remove(&f.Body, taskMember)
	}
	return nil
}

// related changes the id in the _meta member that says which task a message is for.
func (r *taskRelay) related(p *wire.Patch, f *wire.Frame, change func(id string) (string, error)) error {
	obj, ok := wire.ObjectAt(f.Raw, f.Meta.Get(f.Raw, wire.MetaRelatedTask))
	if !ok {
		return nil
	}
	return replaceID(p, f.Raw, obj.Get(f.Raw, "taskId"), change)
}

func replaceID(p *wire.Patch, raw []byte, at wire.Span, change func(id string) (string, error)) error {
	id, ok := wire.DecodeString(at.Of(raw))
	if !ok {
		return nil
	}
	id, err := change(id)
	if err == nil {
		p.Replace(at, wire.AppendString(nil, id))
	}
	return err
}

// sealed is what the client knows a task by.
func (r *taskRelay) sealed(id string) (string, error) {
	c := r.c
	if c.tasks.about != nil && c.tasks.about.id == id {
		return c.item.Name, nil // as it was asked for
	}
	place := c.lease.Place()
	return c.p.taskIDs.seal(c.req.Caller, taskRef{upstream: c.up, place: place, id: id})
}

// result changes the ids of a result and notes what it says of its task.
func (r *taskRelay) result(p *wire.Patch, f *wire.Frame) error {
	c := r.c
	task := f.Body
	switch {
	case c.method == methodTaskResult:
		c.exposeContent(p, f, f.Body.Get(f.Raw, "content"))
		c.p.board.ended(c.taskKey(c.tasks.about.id))
		return nil
	case c.tasks.about == nil && !c.isTaskNow(f):
		return nil
	case c.tasks.about == nil && c.peer.Era == wire.Legacy:
		task, _ = wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, taskMember))
	}
	if inner, ok := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, "result")); ok {
		c.exposeContent(p, f, inner.Get(f.Raw, "content"))
	}
	at := task.Get(f.Raw, "taskId")
	id, ok := wire.DecodeString(at.Of(f.Raw))
	if !ok {
		return nil // an acknowledgement
	}
	exposed, err := r.sealed(id)
	if err != nil {
		return err
	}
	p.Replace(at, wire.AppendString(nil, exposed))
	status, _ := wire.DecodeString(task.Get(f.Raw, "status").Of(f.Raw))
	c.noteTask(id, exposed, status)
	return nil
}

// noteTask lets the client of a legacy conversation hear of a task that goes on.
func (c *call) noteTask(id, exposed, status string) {
	key := c.taskKey(id)
	switch {
	case terminal(status):
		c.p.board.ended(key)
	case c.req.Subscriptions != nil && c.tasks.about == nil:
		c.req.Subscriptions.hearTask(key, exposed, progressKey{c.item.Upstream, c.upID}, c.token)
	case c.req.Subscriptions != nil:
		c.req.Subscriptions.hearTask(key, exposed, progressKey{}, nil)
	}
}

// terminal says whether a task in this state has ended; the word is the same in both eras.
func terminal(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

func (c *call) taskKey(id string) taskKeyOf {
	place := c.lease.Place()
	return taskKeyOf{up: c.item.Upstream, unit: place.Unit, generation: place.Generation, id: id}
}

// exposeContent is exposeURIs for content that stands elsewhere than in the result of a call.
func (c *call) exposeContent(p *wire.Patch, f *wire.Frame, content wire.Span) {
	if strings.HasPrefix(c.req.Caller.View, ServerView("")) {
		return
	}
	for _, e := range wire.Elements(f.Raw, content) {
		c.exposeBlock(p, f, e)
	}
}

// Respond implements upstream.Exchange: the client's answer names the task as the client knows it.
func (r *taskRelay) Respond(ctx context.Context, frame []byte) error {
	f, err := wire.Parse(frame, wire.Upstream, wire.Limits{MaxDepth: maxReparsedDepth})
	if err != nil {
		return r.x.Respond(ctx, frame)
	}
	var p wire.Patch
	p.Reset(f.Raw)
	err = r.related(&p, f, func(id string) (string, error) {
		ref, err := r.c.p.taskIDs.open(r.c.req.Caller, id)
		return ref.id, err
	})
	if err != nil {
		p.Remove(&f.Meta, wire.MetaRelatedTask)
	}
	return r.x.Respond(ctx, p.Append(nil))
}

// Close implements upstream.Exchange.
func (r *taskRelay) Close(cancelled bool) { r.x.Close(cancelled) }
