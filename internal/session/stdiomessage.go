package session

import (
	"context"
	"errors"
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// take handles one line.
func (c *stdio) take(line []byte) {
	if wire.IsBatch(line) {
		c.batch(line)
		return
	}
	f := wire.GetFrame()
	kept := false
	if err := wire.ParseInto(f, line, wire.Downstream, c.m.limits); err != nil {
		a := c.m.parseFailure(err)
		c.answer(&a)
	} else {
		kept = c.message(f)
	}
	if !kept {
		wire.PutFrame(f)
	}
}

// message handles one message. It is true where the frame is in use by a request that runs.
func (c *stdio) message(f *wire.Frame) (kept bool) {
	switch f.Kind {
	case wire.KindRequest:
		return c.request(f)
	case wire.KindNotification:
		c.notified(f)
	default:
		c.answered(f)
	}
	return false
}

// answered brings an answer of the client to the question that it is for.
func (c *stdio) answered(f *wire.Frame) {
	if !c.questions.deliver(f) {
		c.m.count.Drop(count.DropAnswer)
	}
}

// notified handles a notification of either era. A cancel is the same in both.
func (c *stdio) notified(f *wire.Frame) {
	switch f.Method {
	case "notifications/cancelled":
		if id := f.Body.Get(f.Raw, "requestId").Of(f.Raw); wire.ValidID(id) {
			c.cancelled(wire.IDKey(id))
		}
	case "notifications/initialized":
		if c.legacy != nil && !c.announcing {
			c.announcing = c.spawn(c.announce)
		}
	case "notifications/roots/list_changed":
		if c.legacy != nil {
			c.m.proxy.RootsChanged(c.legacy)
		}
	}
}

func (c *stdio) request(f *wire.Frame) (kept bool) {
	id := f.ID.Of(f.Raw)
	if f.Method == "initialize" && !f.Meta.Has(f.Raw, wire.MetaProtocolVersion) {
		c.initialize(f)
		return false
	}
	caller, e := c.callerOf(f)
	switch {
	case e != nil:
		a := proxy.Failure(id, e.code, e.text, e.data)
		c.answer(&a)
		return false
	case caller.Era == wire.Modern && f.Method == "subscriptions/listen":
		return c.listen(f, caller)
	}
	return c.run(caller, f)
}

// callerOf tells who makes a request: what stands in it, or else whoever has initialized.
func (c *stdio) callerOf(f *wire.Frame) (*proxy.Caller, *fault) {
	if f.Meta.Has(f.Raw, wire.MetaProtocolVersion) {
		v, e := metaVersion(f)
		if e == nil {
			e = checkMeta(f, v)
		}
		if e != nil {
			return nil, e
		}
		caller := modernCaller(f, v, c.view, "")
		caller.Unit = c.unit
		return caller, nil
	}
	switch {
	case c.legacy != nil:
		return c.legacy, nil
	case f.Method == "ping": // may come before initialize (2025-11-25, lifecycle)
		return &proxy.Caller{Era: wire.Legacy, Version: wire.LatestLegacy, View: c.view, Unit: c.unit}, nil
	}
	e := missingMeta(wire.MetaProtocolVersion)
	e.text += "; a client of an older revision sends initialize first"
	return nil, e
}

// initialize makes a legacy client known. It waits for no upstream. One that initializes again starts over.
func (c *stdio) initialize(f *wire.Frame) {
	id := f.ID.Of(f.Raw)
	asked, ok := wire.DecodeString(f.Body.Get(f.Raw, "protocolVersion").Of(f.Raw))
	if !ok {
		c.fail(id, wire.CodeInvalidParams, "initialize: params.protocolVersion must be a string")
		return
	}
	c.legacy = &proxy.Caller{Era: wire.Legacy, Version: negotiate(asked), View: c.view, Unit: c.unit,
		Caps: proxy.ParseCaps(f.Body.Get(f.Raw, "capabilities").Of(f.Raw))}
	if c.stopHeard == nil {
		c.stopHeard = c.m.hear(c.heard)
	}
	c.m.join(c.unit, party{c.state.with(c.legacy), stdioAside{c}})
	a := proxy.Result(id, c.m.initializeResult(c.legacy.Version, c.view))
	c.answer(&a)
}

// batch handles an array of messages, which only the revision 2025-03-26 has. Each meets every check that it would meet
// alone; the answers go out as one array.
func (c *stdio) batch(line []byte) {
	if c.legacy == nil || c.legacy.Version != wire.Rev20250326 {
		c.fail(nil, wire.CodeInvalidRequest, "batches exist only in the revision 2025-03-26")
		return
	}
	parts, err := wire.SplitBatch(line, maxBatch)
	if err != nil {
		c.m.count.Limit(count.LimitBatch)
		a := c.m.parseFailure(err)
		c.answer(&a)
		return
	}
	answers := &batchAnswers{}
	add := func(a proxy.Answer) { answers.add(&a) }
	var calls []*stdioCall
	for _, part := range parts {
		f, err := wire.Parse(part, wire.Downstream, c.m.limits)
		switch {
		case err != nil:
			add(c.m.parseFailure(err))
		case f.Kind != wire.KindRequest:
			c.message(f)
		case f.Method == "initialize":
			add(proxy.Failure(f.ID.Of(f.Raw), wire.CodeInvalidRequest, "initialize must not be part of a batch", nil))
		default:
			call, refusal := c.enter(c.legacy, f)
			if call == nil {
				add(refusal)
				continue
			}
			calls = append(calls, call)
		}
	}
	c.runBatch(calls, answers)
}

// runBatch runs requests side by side, and answers all of them at once. They have been entered.
func (c *stdio) runBatch(calls []*stdioCall, answers *batchAnswers) {
	work := func() {
		var wg sync.WaitGroup
		slots := make(chan struct{}, batchWorkers)
		for _, call := range calls {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				if a := call.handle(); !a.Ended {
					answers.add(&a)
					a.Release()
				}
			})
		}
		wg.Wait()
		if len(answers.array) > 0 {
			c.write([]byte{'['}, answers.array, []byte{']'})
		}
	}
	if !c.spawn(work) {
		for _, call := range calls {
			call.leave()
		}
	}
}

// announce tells a legacy client of changes, once each until it is told.
func (c *stdio) announce() {
	for {
		select {
		case <-c.heard.news.signal:
			for _, a := range announcements(c.heard.take(), "") {
				c.write(a)
			}
		case <-c.ctx.Done():
			return
		case <-c.m.drained:
			return
		}
	}
}

// listen serves subscriptions/listen. All subscriptions share the channel, and are told apart by their ids
// (2026-07-28, subscriptions).
func (c *stdio) listen(f *wire.Frame, caller *proxy.Caller) (kept bool) {
	id := append([]byte(nil), f.ID.Of(f.Raw)...)
	filter, ok := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, "notifications"))
	if !ok {
		c.fail(id, wire.CodeInvalidParams, "subscriptions/listen: params.notifications must be an object")
		return false
	}
	if c.m.streams.Add(1) > int64(c.m.bounds.Load().MaxStreams) {
		c.m.streams.Add(-1)
		c.m.count.Limit(count.LimitStreams)
		c.fail(id, wire.CodeInternal, "too many streams are open (limits.max_streams)")
		return false
	}
	c.m.open[streamListen].Add(1)
	ctx, cancel := context.WithCancelCause(c.ctx)
	key := wire.IDKey(id)
	r := c.note(key, cancel)
	over := func() {
		c.forget(key, r)
		cancel(nil)
		c.m.closeStream(streamListen)
	}
	kept = c.spawn(func() {
		defer over()
		// It may wait for an upstream, which the reader of messages must not.
		l := c.m.newListen(ctx, f, &filter, caller)
		defer l.subs.Close()
		wire.PutFrame(f)
		c.subscribed(ctx, l, id)
	})
	if !kept {
		over()
	}
	return kept
}

// subscribed tells a subscription of changes until it is cancelled, which is answered with nothing, or until we stop.
func (c *stdio) subscribed(ctx context.Context, l *listen, id []byte) {
	defer c.m.hear(l)()
	meta := subscriptionMeta(id)
	c.write(l.acknowledged(meta))
	for {
		select {
		case <-l.news.signal:
			for _, a := range announcements(l.take(), meta) {
				c.write(a)
			}
			continue
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), proxy.CauseShutdown) {
				return
			}
		case <-c.m.drained:
		}
		a := complete(id, meta)
		c.answer(&a)
		return
	}
}
