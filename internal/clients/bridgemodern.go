package clients

import (
	"net/http"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// mirror sets the headers that repeat a modern message (2026-07-28, streamable HTTP, "Standard Headers").
func (b *bridge) mirror(c *crossing) func(http.Header) {
	f := c.frame
	return func(h http.Header) {
		version, _ := wire.DecodeString(f.Meta.Get(f.Raw, wire.MetaProtocolVersion).Of(f.Raw))
		h.Set(headerVersion, wire.EncodeHeader(version))
		h.Set("Mcp-Method", wire.EncodeHeader(f.Method))
		if member := namedBy(f.Method); member != "" {
			if name, ok := wire.DecodeString(f.Body.Get(f.Raw, member).Of(f.Raw)); ok {
				h.Set("Mcp-Name", wire.EncodeHeader(name))
			}
		}
		if f.Method == "tools/call" {
			b.book.mirror(f, h)
		}
	}
}

// namedBy is the member of params that the header Mcp-Name repeats.
func namedBy(method string) string {
	switch method {
	case "tools/call", "prompts/get":
		return "name"
	case "resources/read":
		return "uri"
	case "tasks/get", "tasks/update", "tasks/cancel":
		return "taskId"
	}
	return ""
}

// modern lets a message of the modern era cross.
func (b *bridge) modern(c *crossing) {
	resp, err := b.post(c, b.mirror(c))
	if err == nil && resp.StatusCode == http.StatusBadRequest && c.frame.Method == "tools/call" {
		resp, err = b.again(c, resp) //nolint:bodyclose // closed below, as any other
	}
	if err != nil {
		b.unreachable(c, err)
		return
	}
	if !isStream(resp) {
		defer closeBody(resp)
		b.relay(c, resp)
		return
	}
	defer c.closeStream(resp)
	if b.events(c, resp.Body, &mark{}, nil) || !c.isDue() {
		return
	}
	b.unreachable(c, errStreamEnded)
}

// listen keeps a subscription up. When its stream breaks it is opened again; then the client is told that everything may
// have changed that it wants to hear of, and not a second time that it is subscribed.
func (b *bridge) listen(c *crossing) {
	var pauses backoff
	for first := true; ; first = false {
		resp, err := b.post(c, b.mirror(c))
		switch {
		case err != nil && first:
			b.unreachable(c, err)
			return
		case err != nil:
		case isStream(resp):
			pauses.reset()
			filter := missed(c, b)
			if first {
				filter = nil
			}
			answered := b.events(c, resp.Body, &mark{}, filter)
			_ = resp.Body.Close()
			if answered {
				return
			}
		case first || resp.StatusCode < http.StatusInternalServerError:
			defer closeBody(resp)
			b.relay(c, resp)
			return
		default:
			closeBody(resp)
		}
		if !pauses.wait(c.ctx, 0) {
			return
		}
	}
}

// missed turns the acknowledgement of a subscription into announcements of all that it covers.
func missed(c *crossing, b *bridge) func(*wire.Frame) []byte {
	return func(f *wire.Frame) []byte {
		if f.Method != "notifications/subscriptions/acknowledged" {
			return f.Raw
		}
		honoured, _ := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, "notifications"))
		for _, name := range []string{"tools", "prompts", "resources"} {
			if string(honoured.Get(f.Raw, name+"ListChanged").Of(f.Raw)) == "true" {
				b.tell(c, name+"/list_changed", "")
			}
		}
		for _, uri := range wire.Elements(f.Raw, honoured.Get(f.Raw, "resourceSubscriptions")) {
			b.tell(c, "resources/updated", `"uri":`+string(uri.Of(f.Raw))+`,`)
		}
		return nil
	}
}

// tell sends a notification of a subscription, unless the client has cancelled it.
func (b *bridge) tell(c *crossing, what, members string) {
	if c.isDue() {
		b.send([]byte(`{"jsonrpc":"2.0","method":"notifications/` + what + `","params":{` + members + `"_meta":{"` +
			wire.MetaSubscriptionID + `":` + string(c.id) + `}}}`))
	}
}
