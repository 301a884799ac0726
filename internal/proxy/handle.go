package proxy

import (
	"context"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Handle answers one request. It returns when there is an answer, or when ctx ends; cancel ends ctx with a cause and is
// used for the call's own limits. The request's frame is not used after Handle returns.
func (p *Proxy) Handle(ctx context.Context, cancel context.CancelCauseFunc, req *Request) Answer {
	began := time.Now()
	if with := p.personal(req.Caller); with != req.Caller {
		own := *req
		own.Caller, req = with, &own
	}
	c := &call{p: p, req: req, ctx: ctx, cancel: cancel, began: began, up: ourselves, method: req.Frame.Method}
	flight := p.metrics.flying(ourselves)
	defer func() {
		if publish := c.publish; publish != nil {
			c.publish = nil // whoever takes it up must not find it
			publish()
		}
	}()
	if kind, key, ok := c.routed(); ok {
		if a, ok := c.readKept(kind, key); ok {
			return c.finish(a, OK)
		}
		it, refusal := c.route(kind, key)
		if it != nil && it.stand != nil && it.stand.calls {
			it, refusal = c.inner(it)
		}
		if it == nil {
			return c.finish(refusal, refusedAs(refusal))
		}
		if it.stand != nil {
			return c.finish(c.answerSearch(it))
		}
		if name := c.givesFixed(it); name != "" {
			return c.finish(c.invalid("tools/call: the argument "+strconv.Quote(name)+" is given by the proxy itself; leave it out"), Invalid)
		}
		c.item, c.up = it, it.Upstream.ID
		flight = p.metrics.flying(c.up)
		flight.Inc()
		defer flight.Dec()
		if a, o, ok := c.resume(); ok {
			return c.finish(a, o)
		}
		return c.finish(c.forward())
	}
	if a, o, ok := c.ofTask(); ok {
		return c.finish(a, o)
	}
	flight.Inc()
	defer flight.Dec()
	return c.finish(c.own())
}

// finish notes how the request ended: metrics and one line in the log.
func (c *call) finish(a Answer, o Outcome) Answer {
	if c.isAgent() {
		a = c.agentFault(a, o)
	}
	a.Outcome = o
	took := time.Since(c.began)
	c.p.metrics.of(c.up, c.method).record(o, took)
	level := zap.InfoLevel
	if c.up == ourselves {
		level = zap.DebugLevel
	}
	if e := c.p.log.Check(level, "call"); e != nil {
		target := ""
		if c.item != nil {
			target = c.item.Wire
		}
		e.Write(zap.String("request_id", c.requestID()), zap.String("upstream", c.up), zap.String("method", c.method), zap.String("target", target),
			zap.String("outcome", string(o)), zap.Duration("took", took), zap.String("era", c.req.Caller.Era.String()), zap.String("principal", c.req.Caller.Principal))
	}
	return a
}

func (c *call) requestID() string {
	if c.id == "" {
		c.id = c.p.requestID()
	}
	return c.id
}

// rawID is the id of the client's request as it wrote it.
func (c *call) rawID() []byte { return c.req.Frame.ID.Of(c.req.Frame.Raw) }

// refusedAs is the outcome of a request that was not routed.
func refusedAs(a Answer) Outcome {
	if a.Status != 0 {
		return Denied
	}
	return Invalid
}

// routed tells which item a request is about, for the methods that go to an upstream.
func (c *call) routed() (kind Kind, key wire.Span, ok bool) {
	f := c.req.Frame
	switch f.Method {
	case "tools/call":
		return Tool, f.Body.Get(f.Raw, "name"), true
	case "prompts/get":
		return Prompt, f.Body.Get(f.Raw, "name"), true
	case "resources/read":
		return Resource, f.Body.Get(f.Raw, "uri"), true
	case "completion/complete":
		ref, _ := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, "ref"))
		if string(ref.Get(f.Raw, "type").Of(f.Raw)) == `"ref/resource"` {
			return Template, ref.Get(f.Raw, "uri"), true
		}
		return Prompt, ref.Get(f.Raw, "name"), true
	}
	return 0, wire.Span{}, false
}

// route finds the item, or gives the refusal. What is hidden and what was never there is refused alike.
func (c *call) route(kind Kind, key wire.Span) (*Item, Answer) {
	f := c.req.Frame
	c.key = key
	name, ok := wire.DecodeString(key.Of(f.Raw))
	if !ok {
		return nil, Failure(c.rawID(), wire.CodeInvalidParams, f.Method+": params."+kindInfo[kind].id+" must be a string", nil)
	}
	if kind == Tool {
		if args := f.Body.Get(f.Raw, "arguments").Of(f.Raw); len(args) > 0 && args[0] != '{' {
			return nil, Failure(c.rawID(), wire.CodeInvalidParams, "tools/call: params.arguments must be an object", nil)
		}
	}
	it := c.find(kind, name)
	if it == nil {
		// Right after a start the name may belong to an upstream that is still coming.
		c.p.settle(c.ctx)
		it = c.lookup(kind, name)
	}
	if it == nil {
		if a, asks := c.asksForCredential(); asks {
			return nil, a
		}
		return nil, c.unknown(kind, name)
	}
	return it, Answer{}
}

// find is lookup that waits, where what is looked for may be the caller's own, for what is missing of that.
func (c *call) find(kind Kind, name string) *Item {
	it := c.lookup(kind, name)
	if len(c.req.Caller.own) == 0 || it != nil && it.stand == nil && !c.isOwn(it.Upstream) {
		return it
	}
	c.p.overlays.await(c.ctx, c.req.Caller, false)
	return c.lookup(kind, name)
}

// isOwn says whether what an upstream offers depends on this caller.
func (c *call) isOwn(u *upstream.Upstream) bool {
	_, ok := c.req.Caller.ownOf(u)
	return ok
}

// settle waits for upstreams that have just been started, within the grace.
func (p *Proxy) settle(ctx context.Context) {
	select {
	case <-p.catalog.settled:
	case <-ctx.Done():
	}
}

func (p *Proxy) view(c *Caller) *view {
	s := p.snapshot(c)
	if v := s.views[c.View]; v != nil {
		return v
	}
	return emptyView
}

var emptyView = func() *view {
	v := newView(selection{})
	v.seal(func(*view, Kind) []byte { return modernTail(0, []byte(`{"name":"mcp-proxy","version":"1"}`)) }, true)
	return v
}()

func (c *call) lookup(kind Kind, name string) *Item {
	switch kind {
	case Resource:
		return c.p.resolveURI(c.req.Caller, name)
	case Template:
		if it := c.p.view(c.req.Caller).find(Template, name); it != nil {
			return it
		}
		return c.p.resolveURI(c.req.Caller, name) // some clients complete on a URI
	}
	return c.p.view(c.req.Caller).find(kind, name)
}

// unknown is the answer for what is hidden or was never there.
func (c *call) unknown(kind Kind, name string) Answer {
	text, code, data := "unknown "+kind.String()+": "+name, wire.CodeInvalidParams, []byte(nil)
	if kind == Resource {
		data = resourceData(name)
		if c.req.Caller.Era == wire.Legacy {
			code = wire.CodeResourceNotFound
		}
	}
	a := Failure(c.rawID(), code, text, data)
	a.Unknown = true
	return a
}

// answerSearch runs a search tool.
func (c *call) answerSearch(it *Item) (Answer, Outcome) {
	f := c.req.Frame
	result, complaint := it.search(f.Body.Get(f.Raw, "arguments").Of(f.Raw))
	if complaint != "" {
		return c.invalid(complaint), Invalid
	}
	return Result(c.rawID(), c.p.eraResult(result, c.req.Caller.Era)), OK
}

// eraResult adds to a result of our own what its era demands.
func (p *Proxy) eraResult(result []byte, era wire.Era) []byte {
	if era != wire.Modern {
		return result
	}
	obj, _ := wire.ObjectAt(result, wire.Span{End: len(result)})
	var patch wire.Patch
	patch.Reset(result)
	patch.Insert(&obj, "_meta", []byte(`{"`+wire.MetaServerInfo+`":`+string(p.set.Load().info)+`}`))
	patch.Insert(&obj, "resultType", []byte(`"complete"`))
	return patch.Append(nil)
}

// own answers what the proxy answers itself.
func (c *call) own() (Answer, Outcome) {
	caller, m := c.req.Caller, c.req.Frame.Method
	for k := range kinds {
		if kindInfo[k].method == m {
			return c.list(k)
		}
	}
	switch {
	case m == "ping" && caller.Era == wire.Legacy:
		return Result(c.rawID(), []byte("{}")), OK
	case m == "server/discover" && caller.Era == wire.Modern:
		c.p.settleLists(c.ctx)
		if a, asks := c.asksForCredential(); asks {
			return a, Denied
		}
		return Result(c.rawID(), c.p.discover(caller)), OK
	case m == "logging/setLevel" && caller.Era == wire.Legacy:
		return c.setLevel()
	case (m == "resources/subscribe" || m == "resources/unsubscribe") && caller.Era == wire.Legacy && c.req.Subscriptions != nil:
		return c.subscription()
	}
	return Failure(c.rawID(), wire.CodeMethodNotFound, "method not found: "+m, nil), Invalid
}

// list serves a list from the snapshot; nearly always it is one page, which is there already.
func (c *call) list(k Kind) (Answer, Outcome) {
	f, caller := c.req.Frame, c.req.Caller
	c.p.settleLists(c.ctx)
	c.p.overlays.await(c.ctx, caller, true)
	if a, asks := c.asksForCredential(); asks {
		return a, Denied
	}
	if c.req.Subscriptions != nil && len(caller.own) > 0 {
		c.req.Subscriptions.hears(caller)
	}
	snap, offset := c.p.snapshot(caller), 0
	if cursor := f.Body.Get(f.Raw, "cursor"); cursor.Ok() {
		text, _ := wire.DecodeString(cursor.Of(f.Raw))
		var ok bool
		if snap, offset, ok = c.p.pages.open(text, caller, k); !ok {
			return Failure(c.rawID(), wire.CodeInvalidParams, f.Method+": params.cursor is none that is valid now; list from the beginning", nil), Invalid
		}
	}
	v := snap.views[caller.View]
	if v == nil {
		v = emptyView
	}
	if offset == 0 && len(v.listed[k]) <= pageItems && v.lists[k][classOf(caller.Era)] != nil {
		return Result(c.rawID(), v.lists[k][classOf(caller.Era)]), OK
	}
	next := ""
	end := min(offset+pageItems, len(v.listed[k]))
	if end < len(v.listed[k]) {
		next = c.p.pages.cursor(caller, k, c.p.pages.keep(snap), end)
	}
	return Result(c.rawID(), renderList(k, classOf(caller.Era), v.listed[k][min(offset, end):end], v.tails[k], next)), OK
}

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }
