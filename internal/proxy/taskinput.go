package proxy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// taskInput are the questions of a modern task, which stand in what the server tells of it. They are given to the call
// one by one, as if the server had asked them; the client's answers come from other goroutines.
type taskInput struct {
	rounds int
	known  map[string]bool // keys of all that was ever asked: a server repeats itself until it has seen the answer
	queue  []*wire.Frame   // that have not been given to the call

	mu      sync.Mutex
	open    map[string]question // by id, those without an answer
	answers []byte              // members of inputResponses
	refused error
	signal  chan struct{} // holds one token while there is news
}

type question struct {
	key    []byte // as it stands in the frame
	method string
}

// ask takes over the questions of a frame that have not been asked yet.
func (t *taskInput) ask(f *wire.Frame, task wire.Object) error {
	requests, _ := wire.ObjectAt(f.Raw, task.Get(f.Raw, "inputRequests"))
	var fresh []wire.Member
	for _, m := range requests.Members {
		if !t.known[string(m.Key.Of(f.Raw))] {
			fresh = append(fresh, m)
		}
	}
	switch {
	case len(fresh) == 0:
		return nil
	case len(fresh) > maxAsks:
		return fmt.Errorf("the server asks for %d things at once; %d is the most", len(fresh), maxAsks)
	case t.rounds >= maxRounds:
		return errTooManyRounds
	}
	t.rounds++
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known, t.open = map[string]bool{}, map[string]question{}
	}
	for _, m := range fresh {
		q, _ := wire.ObjectAt(f.Raw, m.Value)
		id := `"task-` + strconv.Itoa(len(t.known)+1) + `"`
		b := append([]byte(`{"jsonrpc":"2.0","id":`+id+`,"method":`), q.Get(f.Raw, "method").Of(f.Raw)...)
		if params := q.Get(f.Raw, "params"); params.Ok() {
			b = append(append(b, `,"params":`...), params.Of(f.Raw)...)
		}
		asked, err := wire.Parse(append(b, '}'), wire.Upstream, wire.Limits{MaxDepth: maxReparsedDepth})
		if err != nil {
			return fmt.Errorf("a question of the server is not understood: %w", err)
		}
		key := append([]byte(nil), m.Key.Of(f.Raw)...)
		t.known[string(key)] = true
		t.open[wire.IDKey([]byte(id))] = question{key, asked.Method}
		t.queue = append(t.queue, asked)
	}
	return nil
}

// asking says whether there are questions, or answers that the server does not have yet.
func (t *taskInput) asking() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.queue) > 0 || len(t.open) > 0 || len(t.answers) > 0 || t.refused != nil
}

// answer takes an answer of the client. In this era there is no place for an error: it ends the call.
func (t *taskInput) answer(f *wire.Frame) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := wire.IDKey(f.ID.Of(f.Raw))
	q, ok := t.open[id]
	if !ok {
		return
	}
	delete(t.open, id)
	if f.Kind == wire.KindError {
		t.refused = fmt.Errorf("the server needs %s for its task, and the client cannot answer that: %s", q.method, f.Error.Of(f.Raw))
	} else {
		if len(t.answers) > 0 {
			t.answers = append(t.answers, ',')
		}
		t.answers = append(append(append(t.answers, q.key...), ':'), f.Result.Of(f.Raw)...)
	}
	select {
	case t.signal <- struct{}{}:
	default:
	}
}

// ready gives the answers once all are there, or why there will be none.
func (t *taskInput) ready() (answers []byte, refused error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refused != nil || len(t.open) > 0 {
		return nil, t.refused
	}
	answers, t.answers = append(append([]byte{'{'}, t.answers...), '}'), nil
	return answers, nil
}

// hasQuestion says whether Next gives a question at once.
func (d *taskDrive) hasQuestion() bool { return len(d.input.queue) > 0 }

// fromInput gives the next question, or waits for the answers and brings them to the server.
func (d *taskDrive) fromInput() (*wire.Frame, error) {
	t := &d.input
	if len(t.queue) > 0 {
		f := t.queue[0]
		t.queue = t.queue[1:]
		return f, nil
	}
	answers, refused := t.ready()
	switch {
	case refused != nil:
		return d.failure(refused.Error(), "")
	case answers != nil:
		return nil, d.update(answers)
	}
	select {
	case <-t.signal:
	case f := <-d.news:
		return f, nil
	case <-d.ctx.Done():
		return nil, context.Cause(d.ctx)
	}
	return nil, nil
}

// update brings what the client has answered to the server (2026-07-28, tasks extension, "tasks/update").
func (d *taskDrive) update(answers []byte) error {
	out := taskRequest(d.u, d.peer, d.c.relayable(), methodTaskUpdate, d.id, member{answersMember, answers})
	f, err := answered(d.ctx, d.lease, out)
	if err == nil && f.Kind == wire.KindError {
		return &upstream.Error{Upstream: d.u.ID, Reason: upstream.ReasonTransport, Err: errors.New("the server does not take what it has asked for: " + string(f.Error.Of(f.Raw)))}
	}
	return err
}
