package proxy

import (
	"errors"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// A server may answer a call with a task that goes on without it. Between peers of one era that know tasks they are
// relayed: the client sees the task, under an id of ours (2025-11-25, basic/utilities/tasks; the tasks extension of
// 2026-07-28). To everybody else no task is ever shown: the proxy follows it to its end, and the call with it.

const (
	methodTaskGet    = "tasks/get"
	methodTaskResult = "tasks/result"
	methodTaskUpdate = "tasks/update"
	methodTaskCancel = "tasks/cancel"
	taskMember       = "task"
	typeTask         = `"task"`
)

// taskMethods are the requests about a task, by era. The legacy era also knows tasks/list, which is not offered: nobody
// keeps what tasks a principal has, and their servers see all principals as one.
var taskMethods = map[wire.Era][]string{
	wire.Legacy: {methodTaskGet, methodTaskResult, methodTaskCancel},
	wire.Modern: {methodTaskGet, methodTaskUpdate, methodTaskCancel},
}

// viewRunsTasks says whether a server of this view runs tasks in the manner of that era, and whether it takes cancels.
func (p *Proxy) viewRunsTasks(viewKey string, era wire.Era) (runs, cancels bool) {
	for _, u := range p.view(&Caller{View: viewKey}).ups {
		if peer := u.Peer(); peer != nil && peer.Era == era && peer.RunsTasks {
			runs = true
			cancels = cancels || peer.Has("tasks", "cancel")
		}
	}
	return runs, cancels
}

// withTasks adds to a capabilities object what a client of that era is told of tasks.
func (p *Proxy) withTasks(caps, viewKey string, era wire.Era) string {
	runs, cancels := p.viewRunsTasks(viewKey, era)
	var text string
	switch {
	case !runs:
		return caps
	case era == wire.Modern:
		text = `"extensions":{"` + upstream.TasksExtension + `":{}}`
	case cancels:
		text = `"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}`
	default:
		text = `"tasks":{"requests":{"tools":{"call":{}}}}`
	}
	if inner := strings.TrimSuffix(caps, "}"); inner != "{" {
		return inner + "," + text + "}"
	}
	return "{" + text + "}"
}

// tasking is what a call has to do with tasks.
type tasking struct {
	// relays says that the client knows tasks and may see one: its request is about one, or may be answered with one.
	relays bool
	about  *taskRef // the task that the request is about
	// declares says that the proxy declares the modern extension itself, and again that the request is to be made anew
	// for that.
	declares, again bool
}

// ofTask answers a request about a task. ok is false for any other.
func (c *call) ofTask() (_ Answer, _ Outcome, ok bool) {
	f, caller := c.req.Frame, c.req.Caller
	if !strings.HasPrefix(c.method, "tasks/") || !isTaskMethod(caller.Era, c.method) {
		return Answer{}, OK, false
	}
	if caller.Era == wire.Modern && caller.Caps&CapTasks == 0 {
		data := []byte(`{"requiredCapabilities":{"extensions":{"` + upstream.TasksExtension + `":{}}}}`)
		return Failure(c.rawID(), wire.CodeMissingCapability, c.method+" is for clients that declare the extension "+upstream.TasksExtension, data), Invalid, true
	}
	c.key = f.Body.Get(f.Raw, "taskId")
	id, isText := wire.DecodeString(c.key.Of(f.Raw))
	if !isText {
		return Failure(c.rawID(), wire.CodeInvalidParams, c.method+": params.taskId must be a string", nil), Invalid, true
	}
	ref, err := c.p.taskIDs.open(caller, id)
	u := c.p.ups.Get(ref.upstream)
	if err != nil || u == nil || !c.p.view(caller).has(u) {
		return c.unknownTask(), Invalid, true
	}
	c.item = &Item{Kind: Tool, Name: id, Wire: ref.id, Upstream: u, offer: noOffer}
	c.up, c.tasks = u.ID, tasking{relays: true, about: &ref}
	c.repeated = true // on another connection there may be another task of that name
	flight := c.p.metrics.flying(c.up)
	flight.Inc()
	defer flight.Dec()
	a, o := c.forward()
	return a, o, true
}

func isTaskMethod(era wire.Era, method string) bool {
	for _, m := range taskMethods[era] {
		if m == method {
			return true
		}
	}
	return false
}

// unknownTask is the answer for a task that is somebody else's, over, or was never there.
func (c *call) unknownTask() Answer {
	f := c.req.Frame
	id, _ := wire.DecodeString(f.Body.Get(f.Raw, "taskId").Of(f.Raw))
	return Failure(c.rawID(), wire.CodeInvalidParams, "unknown task: "+cut(id, 2*maxTaskID), nil)
}

// acquire gets the connection for the call: any that its caller may use, or the one that knows the task it is about.
func (c *call) acquire() (*upstream.Lease, error) {
	if c.tasks.about == nil {
		return c.item.Upstream.Acquire(c.ctx, c.unit())
	}
	return c.item.Upstream.AcquirePlace(c.ctx, c.unit(), c.tasks.about.place)
}

// start sends the request.
func (c *call) start(extra []member) (upstream.Exchange, error) {
	out := c.outgoing(extra)
	if c.tasks.about != nil {
		out.Task = c.tasks.about.id
	}
	if c.method == methodTaskResult {
		c.clock.hold() // it is answered when the task is over, however long that takes
	}
	x, err := c.lease.Start(c.ctx, out)
	if err != nil || !c.tasks.relays {
		return x, err
	}
	return &taskRelay{x: x, c: c}, nil
}

// begin tells how a call is made where its server is known: as a task, or not at all.
func (c *call) begin() (extra []member, _ Answer, _ Outcome, ok bool) {
	if c.tasks.about != nil {
		// The server may have become one of the other era, which has other words for the same.
		if c.peer.Era != c.req.Caller.Era {
			return nil, c.unknownTask(), Invalid, false
		}
		return nil, Answer{}, OK, true
	}
	if c.method != "tools/call" || !c.peer.RunsTasks {
		if c.asksForTask() && c.viewHasTasks() {
			return nil, c.noTask(), Invalid, false
		}
		return nil, Answer{}, OK, true
	}
	if c.peer.Era == wire.Modern {
		if c.asksForTask() && c.viewHasTasks() {
			return nil, c.noTask(), Invalid, false
		}
		c.tasks.relays = c.req.Caller.Era == wire.Modern && c.req.Caller.Caps&CapTasks != 0 && c.mayShowTask()
		return nil, Answer{}, OK, true
	}
	return c.beginLegacy()
}

// beginLegacy is begin for a legacy server, whose client says whether a call becomes a task. A tool may insist on it.
func (c *call) beginLegacy() (extra []member, _ Answer, _ Outcome, ok bool) {
	cfg := c.item.Upstream.Config().Tasks
	switch {
	case c.asksForTask() && c.mayShowTask():
		c.tasks.relays = true
		return nil, Answer{}, OK, true
	case !c.item.offer.taskOnly:
		return nil, Answer{}, OK, true
	case !cfg.Enabled:
		a, o := c.fault(errTasksOff)
		return nil, a, o, false
	}
	// What has not been fetched when the task has run its time is of no use any more.
	ttl := appendInt([]byte(`{"ttl":`), int(cfg.Timeout.Milliseconds()))
	return []member{{taskMember, append(ttl, '}')}}, Answer{}, OK, true
}

// mayShowTask says whether the client may see a task of the server: where its connection outlives the call, and what it
// ends with is not made into something else.
func (c *call) mayShowTask() bool { return !c.lease.Once() && !c.isAgent() }

// asksForTask says whether a legacy client asks for its call to become a task.
func (c *call) asksForTask() bool {
	f := c.req.Frame
	return c.method == "tools/call" && c.req.Caller.Era == wire.Legacy && f.Body.Has(f.Raw, taskMember)
}

// viewHasTasks says whether the client has been told of tasks. One that has not may say what it likes of them: who does
// not declare tasks makes the call as any other.
func (c *call) viewHasTasks() bool {
	runs, _ := c.p.viewRunsTasks(c.req.Caller.View, wire.Legacy)
	return runs
}

// noTask refuses a call that is to become a task of a server that runs none (2025-11-25, tasks, "Tool-Level Negotiation").
func (c *call) noTask() Answer {
	return Failure(c.rawID(), wire.CodeMethodNotFound, "tools/call: the tool "+c.item.Name+" cannot be run as a task; call it without params.task", nil)
}

// dropsTask says whether params.task must not reach the server. A legacy one that runs no tasks makes nothing of it.
func (c *call) dropsTask() bool {
	bothLegacy := c.req.Caller.Era == wire.Legacy && c.peer.Era == wire.Legacy
	return c.method == "tools/call" && !c.tasks.relays && (!bothLegacy || c.peer.RunsTasks)
}

// errTasksOff means that a call needs a task to be followed where the configuration has switched that off.
var errTasksOff = &upstream.Error{Reason: upstream.Reason(Denied), Err: errors.New(
	"the server runs this tool only as a task, which this client cannot take, and following tasks is switched off for this server (tasks.enabled)")}

// taskCaps changes what a modern client declares into what its server may know: that tasks are understood, by the client
// or by the proxy in its place.
func (c *call) taskCaps(p *wire.Patch) {
	f := c.req.Frame
	caps, ok := wire.ObjectAt(f.Raw, f.Meta.Get(f.Raw, wire.MetaClientCapabilities))
	if !ok {
		return
	}
	extensions, some := wire.ObjectAt(f.Raw, caps.Get(f.Raw, "extensions"))
	had, has := some && extensions.Has(f.Raw, upstream.TasksExtension), c.tasks.relays || c.tasks.declares
	switch {
	case had && !has:
		p.Remove(&extensions, upstream.TasksExtension)
	case !had && has && some:
		p.Insert(&extensions, upstream.TasksExtension, []byte("{}"))
	case !had && has:
		p.Insert(&caps, "extensions", []byte(`{"`+upstream.TasksExtension+`":{}}`))
	}
}

// taskMeta changes what of _meta is about tasks.
func (c *call) taskMeta(p *wire.Patch) {
	f := c.req.Frame
	if c.req.Caller.Era == wire.Modern && c.peer.Era == wire.Modern && (c.req.Caller.Caps&CapTasks != 0 || c.tasks.declares) {
		c.taskCaps(p)
	}
	if related, ok := wire.ObjectAt(f.Raw, f.Meta.Get(f.Raw, wire.MetaRelatedTask)); ok {
		at := related.Get(f.Raw, "taskId")
		id, _ := wire.DecodeString(at.Of(f.Raw))
		ref, err := c.p.taskIDs.open(c.req.Caller, id)
		if err != nil || ref.upstream != c.up {
			p.Remove(&f.Meta, wire.MetaRelatedTask)
			return
		}
		p.Replace(at, wire.AppendString(nil, ref.id))
	}
}

// declared is what a modern server is told of a legacy client.
func (c *call) declared() Caps {
	caps := c.relayable() &^ CapTasks
	if c.tasks.declares {
		caps |= CapTasks
	}
	return caps
}

// wantsTask says whether a modern server refuses a call because whoever makes it does not know tasks. Then it is made
// again: the refusal says that it has not run, and the proxy can follow the task.
func (c *call) wantsTask(f *wire.Frame) bool {
	obj, _ := wire.ObjectAt(f.Raw, f.Error)
	if c.method != "tools/call" || c.peer.Era != wire.Modern || c.tasks.declares || c.tasks.relays || string(obj.Get(f.Raw, "code").Of(f.Raw)) != missingCapability {
		return false
	}
	data, _ := wire.ObjectAt(f.Raw, obj.Get(f.Raw, "data"))
	required, _ := wire.ObjectAt(f.Raw, data.Get(f.Raw, "requiredCapabilities"))
	extensions, _ := wire.ObjectAt(f.Raw, required.Get(f.Raw, "extensions"))
	return extensions.Has(f.Raw, upstream.TasksExtension)
}

const missingCapability = "-32021"

// isTaskNow says whether an answer is a task.
func (c *call) isTaskNow(f *wire.Frame) bool {
	if c.method != "tools/call" {
		return false
	}
	if c.peer.Era == wire.Modern {
		return string(f.Body.Get(f.Raw, "resultType").Of(f.Raw)) == typeTask
	}
	if f.Body.Has(f.Raw, "content") {
		return false
	}
	task, ok := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, taskMember))
	return ok && task.Has(f.Raw, "taskId")
}

// takeTask follows a task that is not for the client's eyes; false for any other answer.
func (c *call) takeTask(f *wire.Frame) bool {
	if c.tasks.relays || !c.isTaskNow(f) {
		return false
	}
	c.x.Close(false)
	c.x = newTaskDrive(c, f)
	c.upID = 0 // the request is answered; the task is cancelled in its own way
	return true
}

// redeclare readies a call to be made again with the extension declared; false where that is not the matter.
func (c *call) redeclare(f *wire.Frame) (_ Answer, _ Outcome, ok bool) {
	if !c.wantsTask(f) {
		return Answer{}, OK, false
	}
	if !c.item.Upstream.Config().Tasks.Enabled {
		a, o := c.fault(errTasksOff)
		return a, o, true
	}
	c.tasks.declares, c.tasks.again = true, true
	return Answer{}, OK, true
}

// taskRequest makes a request about a task.
func taskRequest(u *upstream.Upstream, peer *upstream.Peer, caps Caps, method, id string, extra ...member) *upstream.Outgoing {
	out := &upstream.Outgoing{ID: u.NextID(), Method: method, Name: id, Task: id}
	b := wire.AppendUpstreamID([]byte(`{"jsonrpc":"2.0","id":`), out.ID)
	b = wire.AppendString(append(b, `,"method":"`+method+`","params":{"taskId":`...), id)
	for _, m := range extra {
		b = append(append(b, `,"`+m.name+`":`...), m.value...)
	}
	if meta := metaOf(peer, string((caps | CapTasks).modern()), []byte(u.Config().RequestMeta)); meta != "" {
		b = append(b, `,"_meta":`+meta...)
	}
	out.Frame = append(b, "}}"...)
	return out
}

// followable says whether a call of a client that knows no tasks may become one that the proxy follows.
func (c *call) followable() bool {
	return c.method == "tools/call" && c.peer.Era == wire.Modern && c.peer.RunsTasks && c.item.Upstream.Config().Tasks.Enabled && !c.tasks.relays
}
