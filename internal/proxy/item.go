package proxy

import (
	"errors"
	"fmt"
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy/search"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Kind is a kind of thing that upstreams offer.
type Kind uint8

// The kinds.
const (
	Tool Kind = iota
	Prompt
	Resource
	Template
	kinds
)

// kindInfo is what the protocol calls a kind.
var kindInfo = [kinds]struct {
	word, method, list, id, capability, changed string
}{
	Tool:     {"tool", "tools/list", "tools", "name", "tools", "notifications/tools/list_changed"},
	Prompt:   {"prompt", "prompts/list", "prompts", "name", "prompts", "notifications/prompts/list_changed"},
	Resource: {"resource", "resources/list", "resources", "uri", "resources", "notifications/resources/list_changed"},
	Template: {"template", "resources/templates/list", "resourceTemplates", "uriTemplate", "resources", "notifications/resources/list_changed"},
}

func (k Kind) String() string { return kindInfo[k].word }

// offer is one item as an upstream lists it: its bytes, and what is read of them.
type offer struct {
	kind Kind
	raw  []byte      // as it came
	obj  wire.Object // its members, in raw
	wire string      // its name or URI
	id   wire.Span   // the token of that, in raw

	// fixed is raw with the repairs that clients need; nil where none are needed.
	fixed []byte
	// withheld says why the item is not offered on aggregate endpoints; empty where it is.
	withheld string
	// structuredAny says that outputSchema is no object schema, which only modern clients accept.
	structuredAny bool
	// readOnly and idempotent are the server's claims about a tool.
	readOnly, idempotent bool
	// taskOnly says that a legacy server runs the tool only as a task.
	taskOnly bool
	params   []paramHeader
	agent    *agentTool // what is behind it; nil for what is no agent

	once sync.Once    // guards what follows
	desc *search.Text // the description; made when it is searched
}

var errNotAnItem = errors.New("not an object with a usable name")

// parseOffer reads one element of a list.
func parseOffer(kind Kind, raw []byte) (*offer, error) {
	obj, ok := wire.ObjectAt(raw, wire.Span{End: len(raw)})
	if !ok {
		return nil, errNotAnItem
	}
	o := &offer{kind: kind, raw: raw, obj: obj, id: obj.Get(raw, kindInfo[kind].id)}
	if o.wire, ok = wire.DecodeString(o.id.Of(raw)); !ok || o.wire == "" {
		return nil, errNotAnItem
	}
	if hints, ok := wire.ObjectAt(raw, obj.Get(raw, "annotations")); ok {
		o.readOnly = string(hints.Get(raw, "readOnlyHint").Of(raw)) == "true"
		o.idempotent = string(hints.Get(raw, "idempotentHint").Of(raw)) == "true"
	}
	return o, nil
}

// wantTypes are the types of members that a client's decoder insists on: one wrong one costs it the whole list.
var wantTypes = []struct {
	name  string
	first string // the first bytes that a value of the type may have
}{
	{"title", `"`}, {"description", `"`}, {"annotations", "{"}, {"_meta", "{"}, {"execution", "{"},
	{"icons", "["}, {"arguments", "["}, {"mimeType", `"`},
}

// mend repairs what no client accepts, each repair counted, or withholds the item.
func (o *offer) mend(c *count.Counters, up string) {
	var p wire.Patch
	p.Reset(o.raw)
	changed := false
	for _, w := range wantTypes {
		v := o.obj.Get(o.raw, w.name).Of(o.raw)
		switch {
		case len(v) == 0 || v[0] == w.first[0]:
		case string(v) == "null":
			p.Remove(&o.obj, w.name)
			c.Repair(up, count.RepairNullMember)
			changed = true
		default:
			o.withhold(c, up, fmt.Sprintf("its member %q has the wrong type", w.name))
		}
	}
	if name := o.obj.Get(o.raw, "name").Of(o.raw); o.kind >= Resource && (len(name) == 0 || name[0] != '"') {
		o.withhold(c, up, "it has no name")
	}
	if o.kind == Tool {
		changed = o.mendSchema(&p, c, up) || changed
		if o.structuredAny = !isObjectSchema(o.obj.Get(o.raw, "outputSchema").Of(o.raw)); o.structuredAny {
			c.Repair(up, count.RepairOutputSchema)
		}
		execution, _ := wire.ObjectAt(o.raw, o.obj.Get(o.raw, "execution"))
		o.taskOnly = string(execution.Get(o.raw, "taskSupport").Of(o.raw)) == `"required"`
		o.params = paramHeaders(o.obj.Get(o.raw, "inputSchema").Of(o.raw))
	}
	if changed && o.withheld == "" {
		o.fixed = p.Append(nil)
	}
}

func (o *offer) withhold(c *count.Counters, up, why string) {
	if o.withheld == "" {
		o.withheld = why
		c.Repair(up, count.RepairToolLeftOut)
	}
}

// mendSchema makes an input schema that clients accept: its root must be an object schema.
func (o *offer) mendSchema(p *wire.Patch, c *count.Counters, up string) (changed bool) {
	span := o.obj.Get(o.raw, "inputSchema")
	v := span.Of(o.raw)
	const plain = `{"type":"object"}`
	switch {
	case len(v) == 0:
		p.Insert(&o.obj, "inputSchema", []byte(plain))
	case string(v) == "null", string(v) == "true":
		p.Replace(span, []byte(plain))
	case v[0] != '{':
		o.withhold(c, up, "its inputSchema is no object")
		return false
	default:
		root, _ := wire.ObjectAt(o.raw, span)
		typ := root.Get(o.raw, "type")
		switch t := string(typ.Of(o.raw)); {
		case t == `"object"`:
			return false
		case t == "":
			p.Insert(&root, "type", []byte(`"object"`))
		case t[0] == '[' && arrayHas(o.raw, typ, `"object"`):
			p.Replace(typ, []byte(`"object"`))
		default:
			o.withhold(c, up, "its inputSchema is not for an object")
			return false
		}
	}
	c.Repair(up, count.RepairInputSchema)
	return true
}

func arrayHas(raw []byte, arr wire.Span, want string) bool {
	for _, e := range wire.Elements(raw, arr) {
		if string(e.Of(raw)) == want {
			return true
		}
	}
	return false
}

func isObjectSchema(schema []byte) bool {
	if len(schema) == 0 {
		return true
	}
	root, ok := wire.ObjectAt(schema, wire.Span{End: len(schema)})
	return ok && string(root.Get(schema, "type").Of(schema)) == `"object"`
}

// Item is one thing of the catalog under its exposed name. It is immutable.
type Item struct {
	Kind     Kind
	Name     string // exposed; for resources and templates the URI
	Wire     string
	Upstream *upstream.Upstream
	Why      string // why the name is not the plain one

	offer *offer
	over  config.ToolOverride
	raw   bool   // as the upstream has it, but for the arguments that are given here
	shown []byte // the offer with what over changes of it; nil where that is nothing
	// params are the arguments that clients repeat in headers.
	params []paramHeader
	// stand is set for a tool of our own; find is what it searches.
	stand *stand
	find  *index
	// unlisted says that it is not listed, though it is there.
	unlisted bool
	text     [classes][]byte // rendered
	linked   bool            // its text names a resource by its qualified form
	sum      uint64          // of the texts
}
