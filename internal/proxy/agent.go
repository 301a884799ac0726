package proxy

import (
	"fmt"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// An agent is an upstream that is offered as one tool: it takes {"input": string} and answers with one text. What goes
// wrong in it is a result with isError; only what it is asked wrongly is an error of the protocol.

// agentTool is the tool of the upstream behind an agent.
type agentTool struct {
	tool, argument string
	instructions   string
	params         []paramHeader
}

// agentInput is the argument of every agent.
const agentInput = "input"

// agentOffer makes the one item of an agent from the tools of its upstream. Where that cannot be done it is withheld.
func agentOffer(a *config.Agent, tools []*offer) *offer {
	src, why := agentSource(a, tools)
	at := &agentTool{instructions: a.Instructions}
	if why == "" {
		at.tool, at.params = src.wire, paramHeaders(src.schema())
		if at.argument, why = agentArgument(a, src); a.Kind != config.AgentMCP {
			at.instructions = "" // it is told them where it runs
		}
	}
	text := wire.AppendString([]byte(`{"name":`), a.Name)
	if why == "" {
		text = src.about(text, "title", a.Title)
		text = src.about(text, "description", a.Description)
	}
	text = append(text, `,"inputSchema":`+config.AgentSchema+`}`...)
	o, err := parseOffer(Tool, text)
	if err != nil {
		return &offer{kind: Tool, wire: a.Name, withheld: err.Error()}
	}
	o.agent, o.withheld = at, why
	if src != nil {
		o.taskOnly = src.taskOnly
	}
	return o
}

// fault says why what an upstream offers is not all there; for an agent also that it offers nothing that fits.
func (l *listing) fault(s *config.Server) error {
	if s.Agent == nil || l.partial != nil {
		return l.partial
	}
	if o := agentOffer(s.Agent, l.offers[Tool]); o.withheld != "" {
		return fmt.Errorf("the agent cannot be offered: %s", o.withheld)
	}
	return nil
}

// behind is the name that the upstream calls the tool of an agent.
func (o *offer) behind() string {
	if o.agent == nil {
		return ""
	}
	return o.agent.tool
}

// schema is the input schema of a tool.
func (o *offer) schema() []byte { return o.obj.Get(o.raw, "inputSchema").Of(o.raw) }

// about appends a member of the item that is made of this one: what the configuration says, or what it had.
func (o *offer) about(b []byte, name, configured string) []byte {
	text := configured
	if text == "" {
		text, _ = wire.DecodeString(o.obj.Get(o.raw, name).Of(o.raw))
	}
	if text == "" {
		return b
	}
	return wire.AppendString(append(wire.AppendString(append(b, ','), name), ':'), text)
}

// agentSource finds the tool that the agent is.
func agentSource(a *config.Agent, tools []*offer) (_ *offer, why string) {
	var names []string
	for _, o := range tools {
		if o.wire == a.Tool || a.Tool == "" && len(tools) == 1 {
			return o, ""
		}
		names = append(names, o.wire)
	}
	switch {
	case len(tools) == 0:
		return nil, "its server offers no tool"
	case a.Tool == "":
		return nil, fmt.Sprintf("its server offers %d tools; name one of them as tool: %s", len(tools), cut(strings.Join(names, ", "), 200))
	}
	return nil, fmt.Sprintf("its server offers no tool %q, but %s", a.Tool, cut(strings.Join(names, ", "), 200))
}

// agentArgument finds the argument of the tool that gets the input: the only one that is required and may be a string.
func agentArgument(a *config.Agent, o *offer) (_, why string) {
	schema := o.schema()
	root, _ := wire.ObjectAt(schema, wire.Span{End: len(schema)})
	props, _ := wire.ObjectAt(schema, root.Get(schema, "properties"))
	if a.Argument != "" {
		return a.Argument, ""
	}
	var found []string
	for _, e := range wire.Elements(schema, root.Get(schema, "required")) {
		name, _ := wire.DecodeString(e.Of(schema))
		prop, _ := wire.ObjectAt(schema, props.Get(schema, name))
		if typ := prop.Get(schema, "type"); string(typ.Of(schema)) == `"string"` || arrayHas(schema, typ, `"string"`) {
			found = append(found, name)
		}
	}
	if len(found) != 1 {
		return "", fmt.Sprintf("the tool %q has %d required arguments that are strings; name the one for the input as argument", o.wire, len(found))
	}
	return found[0], ""
}

// arguments are those of the tool behind the agent.
func (t *agentTool) arguments(input string) []byte {
	if t.instructions != "" {
		input = t.instructions + "\n\n" + input
	}
	b := wire.AppendString([]byte{'{'}, t.argument)
	return append(wire.AppendString(append(b, ':'), input), '}')
}

// isAgent says whether the call is one of an agent.
func (c *call) isAgent() bool {
	return c.item != nil && c.item.offer != nil && c.item.offer.agent != nil
}

// takeInput reads the input, or says why there is none.
func (c *call) takeInput() (why string) {
	f := c.req.Frame
	args, _ := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, "arguments"))
	value := args.Get(f.Raw, agentInput)
	text, ok := wire.DecodeString(value.Of(f.Raw))
	switch {
	case !value.Ok():
		return `arguments.input is missing; an agent takes {"input": "a text"}`
	case !ok:
		return "arguments.input must be a string"
	}
	c.input = text
	return ""
}

// wantsMore says whether a result is none that ends the call.
func wantsMore(f *wire.Frame) bool {
	kind := f.Body.Get(f.Raw, "resultType")
	return kind.Ok() && string(kind.Of(f.Raw)) != `"complete"`
}

// agentResult makes the answer of an agent of a result of its tool: its text, in one block.
func (c *call) agentResult(f *wire.Frame) Answer {
	text, failed := finalText(f), string(f.Body.Get(f.Raw, "isError").Of(f.Raw)) == "true"
	if most := c.item.Upstream.Config().Agent.MaxAnswerBytes; int64(len(text)) > most {
		text, failed = "agent run failed: the answer is longer than max_answer_bytes", true
	}
	wire.PutFrame(f)
	return c.agentText(text, failed)
}

func (c *call) agentText(text string, failed bool) Answer {
	result := append(wire.AppendString([]byte(`{"content":[{"type":"text","text":`), text), "}]"...)
	if failed {
		result = append(result, `,"isError":true`...)
	}
	return Result(c.rawID(), c.p.eraResult(append(result, '}'), c.req.Caller.Era))
}

// finalText is what a tool has said: its texts, or its structured content where there are none.
func finalText(f *wire.Frame) string {
	var texts []string
	for _, e := range wire.Elements(f.Raw, f.Body.Get(f.Raw, "content")) {
		block, _ := wire.ObjectAt(f.Raw, e)
		if text, ok := wire.DecodeString(block.Get(f.Raw, "text").Of(f.Raw)); ok {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return string(f.Body.Get(f.Raw, "structuredContent").Of(f.Raw))
	}
	return strings.Join(texts, "\n")
}

// agentFault makes a result of an error that is not about what was asked. What asks the client for something stays.
func (c *call) agentFault(a Answer, o Outcome) Answer {
	switch {
	case a.Ended, a.Code == 0, o == Invalid, o == Denied, a.Code == wire.CodeURLElicitation, a.Code == wire.CodeMissingCapability:
		return a
	case o == Timeout:
		a.Release()
		return c.agentText(fmt.Sprintf("agent run timed out after %s", c.item.Upstream.Config().Agent.Timeout), true)
	}
	text := errorMessage(a.Bytes())
	a.Release()
	return c.agentText("agent run failed: "+strings.TrimPrefix(text, c.up+"::"+c.item.Wire+": "), true)
}

// errorMessage is the message of an error answer.
func errorMessage(frame []byte) string {
	root, _ := wire.ObjectAt(frame, wire.Span{End: len(frame)})
	e, _ := wire.ObjectAt(frame, root.Get(frame, "error"))
	text, _ := wire.DecodeString(e.Get(frame, "message").Of(frame))
	return text
}
