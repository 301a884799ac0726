package proxy

import (
	"bytes"
	"cmp"
	"strconv"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// modernKeys are what a modern client says in each request, and a legacy upstream must not see.
var modernKeys = []string{wire.MetaProtocolVersion, wire.MetaClientInfo, wire.MetaClientCapabilities, wire.MetaLogLevel}

// member is one to be put into an object.
type member struct {
	name  string
	value []byte
}

// outgoing makes the frame for the upstream. Only the id, the name, the progress token and what differs between the two
// eras is changed; every other byte is the client's.
func (c *call) outgoing(extra []member) *upstream.Outgoing {
	f, it := c.req.Frame, c.item
	c.upID = it.Upstream.NextID()
	c.sentAs = c.upID
	id := wire.AppendUpstreamID(nil, c.upID)
	var p wire.Patch
	p.Reset(f.Raw)
	p.Replace(f.ID, id)
	if name := c.mirrored(); it.Name != it.Wire || c.isAgent() {
		p.Replace(c.key, wire.AppendString(nil, cmp.Or(name, it.Wire)))
	}
	c.rewriteMeta(&p, id)
	c.patchArguments(&p)
	switch {
	case c.theirs != nil:
		c.bringTheirs(&p)
	case c.req.Caller.Era != c.peer.Era:
		// Rounds are made here: a legacy upstream knows none, and a legacy client's are no words of its era.
		p.Remove(&f.Body, answersMember)
		p.Remove(&f.Body, stateMember)
	}
	if c.dropsTask() {
		p.Remove(&f.Body, taskMember)
	}
	for _, m := range extra {
		p.Insert(&f.Body, m.name, m.value)
	}
	args, params := withArguments(f.Body.Get(f.Raw, "arguments").Of(f.Raw), it.over.Arguments), it.offer.params
	if c.isAgent() {
		args, params = it.offer.agent.arguments(c.input), it.offer.agent.params
		p.Replace(f.Body.Get(f.Raw, "arguments"), args)
	}
	out := &upstream.Outgoing{ID: c.upID, Method: f.Method, Name: c.mirrored(), Frame: p.Append(make([]byte, 0, p.Len()+1))}
	out.Pauser, _ = c.req.Sink.(upstream.Pauser)
	out.Progress = len(c.token) > 0
	if c.peer.Era == wire.Modern && len(params) > 0 {
		out.Params = headersFor(params, args)
	}
	if it.Upstream.Config().URL != "" {
		out.Headers = c.forwardedHeaders()
	}
	return out
}

// mirrored is what modern HTTP repeats in the header Mcp-Name, for the methods that have it.
func (c *call) mirrored() string {
	if c.method == "completion/complete" {
		return ""
	}
	if c.isAgent() {
		return c.item.offer.agent.tool
	}
	return c.item.Wire
}

// rewriteMeta changes _meta: the progress token becomes ours, the modern keys come or go with the era, and what the
// configuration adds is added.
func (c *call) rewriteMeta(p *wire.Patch, id []byte) {
	f := c.req.Frame
	var add []member
	c.token = nil
	token := f.Meta.Get(f.Raw, "progressToken")
	switch {
	case token.Ok():
		c.token = bytes.Clone(token.Of(f.Raw))
		p.Replace(token, id)
	case f.Method == "tools/call":
		// A token of our own, so that progress can hold the call open. What comes for it goes no further.
		add = append(add, member{"progressToken", id})
	}
	switch {
	case c.req.Caller.Era == wire.Modern && c.peer.Era == wire.Legacy:
		for _, k := range modernKeys {
			p.Remove(&f.Meta, k)
		}
	case c.req.Caller.Era == wire.Modern && c.item.Upstream.Config().Elicitation.Mode == config.ElicitationDecline:
		if caps, ok := wire.ObjectAt(f.Raw, f.Meta.Get(f.Raw, wire.MetaClientCapabilities)); ok {
			p.Remove(&caps, "elicitation")
		}
	case c.req.Caller.Era == wire.Legacy && c.peer.Era == wire.Modern:
		add = append(add, member{wire.MetaProtocolVersion, wire.AppendString(nil, c.peer.Version)},
			member{wire.MetaClientInfo, []byte(clientInfo)}, member{wire.MetaClientCapabilities, c.declared().modern()})
		if c.req.Caller.LogLevel != "" {
			add = append(add, member{wire.MetaLogLevel, wire.AppendString(nil, c.req.Caller.LogLevel)})
		}
		for _, k := range modernKeys {
			p.Remove(&f.Meta, k)
		}
	}
	c.taskMeta(p)
	add = c.configured(p, c.forwarded(p, add))
	if len(add) == 0 {
		return
	}
	if f.Meta.Ok() {
		for _, m := range add {
			p.Insert(&f.Meta, m.name, m.value)
		}
		return
	}
	obj := []byte{'{'}
	for i, m := range add {
		if i > 0 {
			obj = append(obj, ',')
		}
		obj = append(append(wire.AppendString(obj, m.name), ':'), m.value...)
	}
	p.Insert(&f.Body, "_meta", append(obj, '}'))
}

// relayable is what the client can be asked for by this upstream.
func (c *call) relayable() Caps {
	if c.item.Upstream.Config().Elicitation.Mode == config.ElicitationDecline {
		return c.req.Caller.Caps &^ (CapElicitForm | CapElicitURL)
	}
	return c.req.Caller.Caps
}

// configured adds the members of request_meta, which take the place of the client's.
func (c *call) configured(p *wire.Patch, add []member) []member {
	raw := []byte(c.item.Upstream.Config().RequestMeta)
	if len(raw) == 0 {
		return add
	}
	obj, _ := wire.ObjectAt(raw, wire.Span{End: len(raw)})
	for _, m := range obj.Members {
		if name, ok := wire.DecodeString(m.Key.Of(raw)); ok {
			p.Remove(&c.req.Frame.Meta, name)
			add = append(add, member{name, m.Value.Of(raw)})
		}
	}
	return add
}

// result makes the client's answer of an upstream's.
func (c *call) result(f *wire.Frame) (Answer, Outcome) {
	f = c.within(f)
	outcome := OK
	if c.method == "tools/call" && string(f.Body.Get(f.Raw, "isError").Of(f.Raw)) == "true" {
		outcome = ToolError
	}
	down, up := c.req.Caller.Era, c.peer.Era
	if c.isAgent() && !wantsMore(f) {
		return c.agentResult(f), outcome
	}
	var p wire.Patch
	p.Reset(f.Raw)
	if !c.shortened {
		c.exposeURIs(&p, f)
	}
	if down == wire.Modern && c.demandsInput(f) && !c.labelInputs(&p, f) {
		c.p.metrics.serverRequest(c.up, methodElicit, Denied)
		text := c.up + "::" + c.item.Wire + ": the server asks the person behind the client, which the configuration declines (elicitation.mode)"
		return Failure(c.rawID(), wire.CodeInternal, text, nil), TransportError
	}
	if down == up && p.Empty() {
		// Only the id differs: what stands before and behind it goes out as it came.
		return Answer{parts: [3][]byte{f.Raw[:f.ID.Start], c.rawID(), f.Raw[f.ID.End:]}, frame: f}, outcome
	}
	p.Replace(f.ID, c.rawID())
	switch {
	case down == wire.Modern && up == wire.Legacy:
		c.toModern(&p, f)
	case down == wire.Legacy && up == wire.Modern:
		if kind, ok := wire.DecodeString(f.Body.Get(f.Raw, "resultType").Of(f.Raw)); ok && kind != "complete" {
			text := c.up + "::" + c.item.Wire + ": the server answers with " + kind + ", which a client of this revision cannot take"
			return Failure(c.rawID(), wire.CodeInternal, text, nil), TransportError
		}
		c.toLegacy(&p, f)
	}
	a := Answer{parts: [3][]byte{p.Append(make([]byte, 0, p.Len()))}}
	wire.PutFrame(f)
	return a, outcome
}

// toModern adds what modern results must carry. What a legacy server knows nothing of is not promised to caches.
func (c *call) toModern(p *wire.Patch, f *wire.Frame) {
	if f.Meta.Ok() {
		if !f.Meta.Has(f.Raw, wire.MetaServerInfo) {
			p.Insert(&f.Meta, wire.MetaServerInfo, c.p.set.Load().info)
		}
	} else if !f.Body.Has(f.Raw, "_meta") {
		p.Insert(&f.Body, "_meta", []byte(`{"`+wire.MetaServerInfo+`":`+string(c.p.set.Load().info)+`}`))
	}
	missing := func(name, value string) {
		if !f.Body.Has(f.Raw, name) {
			p.Insert(&f.Body, name, []byte(value))
		}
	}
	if c.demandsInput(f) {
		c.keepTheirs(p, f)
		missing("resultType", typeInput)
		return
	}
	if c.method == "resources/read" {
		missing("cacheScope", `"private"`)
		missing("ttlMs", `0`)
	}
	missing("resultType", `"complete"`)
}

// toLegacy takes away what only modern clients know.
func (c *call) toLegacy(p *wire.Patch, f *wire.Frame) {
	for _, name := range []string{"resultType", "ttlMs", "cacheScope"} {
		p.Remove(&f.Body, name)
	}
	if v := f.Body.Get(f.Raw, "structuredContent").Of(f.Raw); len(v) > 0 && v[0] != '{' {
		p.Remove(&f.Body, "structuredContent")
		c.p.count.Repair(c.up, count.RepairStructured)
	}
	if c.method == "tools/call" && c.req.Caller.Version < wire.Rev20250618 {
		c.olderContent(p, f)
	}
}

// newContent are the content types that came with a revision; a client of an older one fails on them.
var newContent = map[string]string{`"audio"`: wire.Rev20250326, `"resource_link"`: wire.Rev20250618}

// olderContent turns content that is newer than the client's revision into text.
func (c *call) olderContent(p *wire.Patch, f *wire.Frame) {
	for _, e := range wire.Elements(f.Raw, f.Body.Get(f.Raw, "content")) {
		block, _ := wire.ObjectAt(f.Raw, e)
		kind := string(block.Get(f.Raw, "type").Of(f.Raw))
		since, ok := newContent[kind]
		if !ok || c.req.Caller.Version >= since {
			continue
		}
		text := "[" + kind[1:len(kind)-1] + "]"
		if uri, ok := wire.DecodeString(block.Get(f.Raw, "uri").Of(f.Raw)); ok {
			text = uri
		}
		p.Replace(e, append(wire.AppendString([]byte(`{"type":"text","text":`), text), '}'))
		c.p.count.Repair(c.up, count.RepairContent)
	}
}

// errorAnswer passes an upstream's own error on. Codes that the client's era does not know become those it does.
func (c *call) errorAnswer(f *wire.Frame) Answer {
	var p wire.Patch
	p.Reset(f.Raw)
	p.Replace(f.ID, c.rawID())
	obj, _ := wire.ObjectAt(f.Raw, f.Error)
	span := obj.Get(f.Raw, "code")
	code, _ := strconv.Atoi(string(span.Of(f.Raw)))
	if mapped := c.mapCode(code); mapped != code {
		p.Replace(span, strconv.AppendInt(nil, int64(mapped), 10))
		code = mapped
	}
	return Answer{parts: [3][]byte{p.Append(make([]byte, 0, p.Len()))}, Code: code}
}

// mapCode maps error codes where the eras differ. A fault that the upstream finds in what we wrote is not the client's.
func (c *call) mapCode(code int) int {
	down, up := c.req.Caller.Era, c.peer.Era
	switch {
	case down == wire.Modern && code == wire.CodeResourceNotFound:
		return wire.CodeInvalidParams
	case down == wire.Modern && code == wire.CodeURLElicitation:
		return wire.CodeInternal
	case down == wire.Legacy && up == wire.Modern && code <= wire.CodeHeaderMismatch && code >= wire.CodeUnsupportedRevision:
		return wire.CodeInternal
	}
	return code
}
