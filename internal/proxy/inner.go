package proxy

import "github.com/mcp-proxy/mcp-proxy/internal/wire"

// inner makes the call that a call of call_tool is about the request of this call. From here on it is as if the client had
// called the tool by its name.
func (c *call) inner(outer *Item) (*Item, Answer) {
	f := c.req.Frame
	span := f.Body.Get(f.Raw, "arguments")
	args, _ := wire.ObjectAt(f.Raw, span)
	named, given := args.Get(f.Raw, "name"), args.Get(f.Raw, "arguments").Of(f.Raw)
	name, ok := wire.DecodeString(named.Of(f.Raw))
	switch {
	case !ok || name == "":
		return nil, c.invalid(outer.Name + ": the argument name must be the name of a tool")
	case len(given) > 0 && given[0] != '{':
		return nil, c.invalid(outer.Name + ": the argument arguments must be an object")
	case len(given) == 0:
		given = []byte("{}")
	}
	it := c.lookup(Tool, name)
	if it == nil || it.stand == nil && !outer.stand.covers(it.Upstream) || it.stand != nil && it.stand.calls {
		return nil, c.unknown(Tool, name)
	}
	var p wire.Patch
	p.Reset(f.Raw)
	p.Replace(c.key, named.Of(f.Raw))
	p.Replace(span, given)
	frame, err := wire.Parse(p.Append(nil), wire.Downstream, wire.Limits{})
	if err != nil {
		return nil, c.invalid(outer.Name + ": " + err.Error())
	}
	req := *c.req
	req.Frame, req.Param = frame, nil // the headers repeat what was called
	c.req, c.key = &req, frame.Body.Get(frame.Raw, "name")
	return it, Answer{}
}

func (c *call) invalid(text string) Answer {
	return Failure(c.rawID(), wire.CodeInvalidParams, text, nil)
}
