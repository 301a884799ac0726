package proxy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// taskDrive follows a task to its end for a client that knows no tasks. To the call it is the exchange that goes on: it
// gives what the server asks and tells meanwhile, and last the result of the task as the answer to the call. The call's
// one goroutine does all of it; only answers of the client come from others.
type taskDrive struct {
	c      *call
	u      *upstream.Upstream
	lease  *upstream.Lease
	peer   *upstream.Peer
	cfg    config.Tasks
	id     string
	ctx    context.Context // of what is sent for the task; ends with the call or when the task has had its time
	cancel context.CancelFunc
	stop   func() bool
	timer  *time.Timer
	call   progressKey
	news   chan *wire.Frame // progress that comes outside any request

	frame   *wire.Frame // that last told of the task
	task    wire.Object // in frame
	looks   int         // how often it was asked for
	failed  int         // looks in a row without an answer
	over    bool
	asked   bool  // what the frame asks for has been asked
	problem error // why the task is not followed at all
	input   taskInput

	mu sync.Mutex
	x  upstream.Exchange // tasks/result under way; legacy only. Answers of the client are sent on it by other goroutines.
}

const (
	// maxFailedLooks is how many looks in a row may fail on the way before the call does.
	maxFailedLooks = 3
	// minPoll keeps a server from being asked without a pause, whatever it wishes.
	minPoll = 20 * time.Millisecond
	// maxTaskNews bounds the progress that waits; over it the rest is dropped.
	maxTaskNews = 32
	// taskCancelTimeout bounds the goodbye to a task.
	taskCancelTimeout = 5 * time.Second
)

// taskBound is a bound of the configuration that a task has reached.
type taskBound struct{ text string }

func (e *taskBound) Error() string { return e.text }

// Unwrap tells that it counts as a call that took too long.
func (e *taskBound) Unwrap() error { return CauseMaxTime }

// newTaskDrive begins to follow the task that a frame tells of.
func newTaskDrive(c *call, f *wire.Frame) *taskDrive {
	d := &taskDrive{c: c, u: c.item.Upstream, lease: c.lease, peer: c.peer, cfg: c.item.Upstream.Config().Tasks,
		call: progressKey{c.item.Upstream, c.upID}, news: make(chan *wire.Frame, maxTaskNews)}
	d.input.signal = make(chan struct{}, 1)
	ctx, cancel := context.WithCancelCause(context.Background())
	d.ctx, d.cancel = ctx, func() { cancel(nil) }
	late := &taskBound{fmt.Sprintf("the task did not end within tasks.timeout (%s); it was cancelled", d.cfg.Timeout)}
	d.timer = time.AfterFunc(d.cfg.Timeout, func() { cancel(late) })
	outer := c.ctx
	d.stop = context.AfterFunc(outer, func() { cancel(context.Cause(outer)) })
	d.tells(f)
	d.id, _ = wire.DecodeString(d.task.Get(d.frame.Raw, "taskId").Of(d.frame.Raw))
	switch {
	case d.id == "":
		d.problem = &upstream.Error{Upstream: c.up, Reason: upstream.ReasonTransport, Err: errors.New("the server answers with a task that has no id")}
	case !d.cfg.Enabled:
		d.problem = errTasksOff
	}
	c.p.board.hearProgress(d.call, d.progressed)
	return d
}

// tells notes what a frame tells of the task.
func (d *taskDrive) tells(f *wire.Frame) {
	d.frame, d.task, d.asked = f, f.Body, false
	if obj, ok := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, taskMember)); ok && d.peer.Era == wire.Legacy && !f.Body.Has(f.Raw, "taskId") {
		d.task = obj
	}
}

func (d *taskDrive) text(member string) string {
	s, _ := wire.DecodeString(d.task.Get(d.frame.Raw, member).Of(d.frame.Raw))
	return s
}

// progressed takes progress that came outside any request. It does not block.
func (d *taskDrive) progressed(f *wire.Frame) {
	select {
	case d.news <- f:
	default:
		d.c.p.count.Drop(count.DropProgress)
	}
}

// Next implements upstream.Exchange.
func (d *taskDrive) Next(ctx context.Context) (*wire.Frame, error) {
	if d.problem != nil {
		return nil, d.problem
	}
	for {
		f, err := d.step()
		switch {
		case f != nil:
			return f, nil
		case err == nil:
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case d.ctx.Err() != nil:
			return nil, context.Cause(d.ctx)
		default:
			return nil, err
		}
	}
}

// step does the next thing: it gives a frame for the call, an error that ends it, or neither where there is more to do.
func (d *taskDrive) step() (*wire.Frame, error) {
	if d.x != nil {
		return d.fromResult()
	}
	if d.input.asking() {
		return d.fromInput()
	}
	switch status := d.text("status"); {
	case d.peer.Era == wire.Legacy && (status == "completed" || status == "failed" || status == "input_required"):
		return nil, d.fetch()
	case status == "cancelled":
		d.over = true
		return d.failure("the server has cancelled the task", d.text("statusMessage"))
	case status == "completed":
		d.over = true
		return d.final("result")
	case status == "failed":
		d.over = true
		return d.final("error")
	case status == "input_required" && !d.asked:
		d.asked = true
		return nil, d.input.ask(d.frame, d.task)
	}
	return d.look()
}

// fetch asks a legacy server for the result of a task. It answers when the task has ended, and asks meanwhile what it
// needs (2025-11-25, tasks, "Input Required Status").
func (d *taskDrive) fetch() error {
	out := taskRequest(d.u, d.peer, 0, methodTaskResult, d.id)
	x, err := d.lease.Start(d.ctx, out)
	if err != nil {
		return err
	}
	d.setResult(x)
	d.c.clock.hold()
	return nil
}

// fromResult gives what comes for tasks/result, without the name of the task, which the client knows nothing of.
func (d *taskDrive) fromResult() (*wire.Frame, error) {
	f, err := d.x.Next(d.ctx)
	if err != nil {
		d.leaveResult(true)
		return nil, err
	}
	if f.Kind == wire.KindResponse || f.Kind == wire.KindError {
		d.over = true
		d.leaveResult(false)
	}
	if !f.Meta.Has(f.Raw, wire.MetaRelatedTask) {
		return f, nil
	}
	var p wire.Patch
	p.Reset(f.Raw)
	if len(f.Meta.Members) == 1 {
		p.Remove(&f.Body, "_meta")
	} else {
		p.Remove(&f.Meta, wire.MetaRelatedTask)
	}
	return reparsed(&p)
}

func (d *taskDrive) leaveResult(cancelled bool) {
	d.x.Close(cancelled)
	d.setResult(nil)
	d.c.clock.free()
}

func (d *taskDrive) setResult(x upstream.Exchange) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.x = x
}

// look waits for as long as the server wishes and asks how the task is. What progress comes meanwhile is given first.
func (d *taskDrive) look() (*wire.Frame, error) {
	if d.cfg.MaxAttempts > 0 && d.looks >= d.cfg.MaxAttempts {
		return nil, &taskBound{fmt.Sprintf("the task did not end within %d looks at it (tasks.max_attempts); it was cancelled", d.cfg.MaxAttempts)}
	}
	d.c.clock.hold()
	pause := time.NewTimer(d.pause())
	defer pause.Stop()
	var f *wire.Frame
	select {
	case f = <-d.news:
	case <-pause.C:
	case <-d.ctx.Done():
	}
	d.c.clock.free()
	switch {
	case f != nil:
		return f, nil
	case d.ctx.Err() != nil:
		return nil, context.Cause(d.ctx)
	}
	d.looks++
	return nil, d.get()
}

// pause is the wait before the next look: what the server says, or else the configuration.
func (d *taskDrive) pause() time.Duration {
	name := "pollInterval"
	if d.peer.Era == wire.Modern {
		name = "pollIntervalMs"
	}
	ms, err := strconv.ParseFloat(string(d.task.Get(d.frame.Raw, name).Of(d.frame.Raw)), 64)
	wait := d.cfg.PollInterval
	if err == nil && ms > 0 {
		wait = time.Duration(min(ms, float64(d.cfg.Timeout.Milliseconds()))) * time.Millisecond
	}
	return max(wait, minPoll)
}

// get asks how the task is. A look that fails on the way is made again.
func (d *taskDrive) get() error {
	f, err := answered(d.ctx, d.lease, taskRequest(d.u, d.peer, d.c.relayable(), methodTaskGet, d.id))
	var lost *upstream.Error
	switch {
	case err == nil && f.Kind == wire.KindError:
		d.over = true // a server that answers so does not know it, or not any more
		return &upstream.Error{Upstream: d.u.ID, Reason: upstream.ReasonTransport, Err: fmt.Errorf("the server does not tell how its task is: %s", f.Error.Of(f.Raw))}
	case err == nil:
		d.failed = 0
		d.tells(f)
		d.c.clock.alive()
		return nil
	case errors.As(err, &lost) && lost.Reason == upstream.ReasonTransport && d.failed < maxFailedLooks:
		d.failed++
		return nil
	}
	return err
}

// final makes the answer of a modern task that has ended: its result, or its error.
func (d *taskDrive) final(member string) (*wire.Frame, error) {
	at := d.task.Get(d.frame.Raw, member)
	obj, ok := wire.ObjectAt(d.frame.Raw, at)
	if !ok {
		return d.failure("the server says that the task has ended, and does not say with what", d.text("statusMessage"))
	}
	b := append(wire.AppendUpstreamID([]byte(`{"jsonrpc":"2.0","id":`), d.call.id), `,"`+member+`":`...)
	if member == "result" && !obj.Has(d.frame.Raw, "resultType") {
		var p wire.Patch
		p.Reset(d.frame.Raw[:at.End])
		p.Insert(&obj, "resultType", []byte(`"complete"`))
		b = append(b, p.Append(nil)[at.Start:]...)
	} else {
		b = append(b, at.Of(d.frame.Raw)...)
	}
	return wire.Parse(append(b, '}'), wire.Upstream, wire.Limits{MaxDepth: maxReparsedDepth})
}

// failure makes an error answer of the server's that it has not written itself.
func (d *taskDrive) failure(text, more string) (*wire.Frame, error) {
	if more != "" {
		text += ": " + more
	}
	b := wire.AppendUpstreamID([]byte(`{"jsonrpc":"2.0","id":`), d.call.id)
	b = append(b, `,"error":{"code":`+strconv.Itoa(wire.CodeInternal)+`,"message":`...)
	b = wire.AppendString(b, d.u.ID+"::"+d.c.item.Wire+": "+text)
	return wire.Parse(append(b, "}}"...), wire.Upstream, wire.Limits{MaxDepth: maxReparsedDepth})
}

// Close implements upstream.Exchange. A task that has not ended is cancelled.
func (d *taskDrive) Close(bool) {
	if d.cancel == nil {
		return
	}
	if d.x != nil {
		d.leaveResult(true)
	}
	d.c.p.board.endProgress(d.call)
	d.stop()
	d.timer.Stop()
	d.cancel()
	d.cancel = nil
	if !d.over && d.id != "" {
		d.abandon()
	}
}

// abandon tells the server that nobody waits for the task any more, off everybody's path. The connection is held until
// it has been told.
func (d *taskDrive) abandon() {
	lease := d.lease.Again()
	d.c.p.background.Go(func() {
		defer lease.Release()
		ctx, cancel := context.WithTimeout(context.Background(), taskCancelTimeout)
		defer cancel()
		_, _ = answered(ctx, lease, taskRequest(d.u, d.peer, 0, methodTaskCancel, d.id)) // whoever does not hear it ends the task at its own time
	})
}

// Respond implements upstream.Exchange.
func (d *taskDrive) Respond(ctx context.Context, frame []byte) error {
	f, err := wire.Parse(frame, wire.Upstream, wire.Limits{MaxDepth: maxReparsedDepth})
	if err != nil {
		return err
	}
	if d.peer.Era == wire.Modern {
		d.input.answer(f)
		return nil
	}
	d.mu.Lock()
	x := d.x
	d.mu.Unlock()
	if x == nil {
		return errTaskOver
	}
	if result, ok := wire.ObjectAt(f.Raw, f.Result); ok && !result.Has(f.Raw, "_meta") {
		var p wire.Patch
		p.Reset(f.Raw)
		p.Insert(&result, "_meta", append(wire.AppendString([]byte(`{"`+wire.MetaRelatedTask+`":{"taskId":`), d.id), "}}"...))
		return x.Respond(ctx, p.Append(nil))
	}
	return x.Respond(ctx, frame)
}

var errTaskOver = errors.New("the task does not wait for this answer any more")
