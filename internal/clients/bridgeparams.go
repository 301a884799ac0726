package clients

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// paramBook knows which arguments of which tools are repeated in headers. It learns from the lists that cross
// (2026-07-28, streamable HTTP, "Custom Headers from Tool Parameters").
type paramBook struct {
	mu    sync.Mutex
	tools map[string][]repeated
}

// repeated is an argument that a header repeats.
type repeated struct {
	header string
	path   []string
}

const (
	// maxRepeating bounds the tools that are kept.
	maxRepeating  = 10_000
	maxParamDepth = 16
)

var annotation = []byte("x-mcp-header")

// learn looks through an answer for tools whose arguments headers repeat.
func (b *bridge) learn(c *crossing, f *wire.Frame) {
	if c.modern && c.frame.Method == "tools/list" && f.Kind == wire.KindResponse {
		b.book.learn(f)
	}
}

func (p *paramBook) learn(f *wire.Frame) {
	found := map[string][]repeated{}
	for _, s := range wire.Elements(f.Raw, f.Body.Get(f.Raw, "tools")) {
		tool, _ := wire.ObjectAt(f.Raw, s)
		if name, ok := wire.DecodeString(tool.Get(f.Raw, "name").Of(f.Raw)); ok {
			found[name] = nil
			if schema := tool.Get(f.Raw, "inputSchema").Of(f.Raw); bytes.Contains(schema, annotation) {
				found[name] = appendRepeated(nil, schema, nil)
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tools == nil {
		p.tools = map[string][]repeated{}
	}
	for name, list := range found {
		delete(p.tools, name)
		if len(list) > 0 && len(p.tools) < maxRepeating {
			p.tools[name] = list
		}
	}
}

// appendRepeated finds the annotated properties of a schema.
func appendRepeated(out []repeated, schema []byte, path []string) []repeated {
	root, ok := wire.ObjectAt(schema, wire.Span{End: len(schema)})
	if !ok || len(path) > maxParamDepth {
		return out
	}
	if name, ok := wire.DecodeString(root.Get(schema, string(annotation)).Of(schema)); ok && len(path) > 0 && isToken(name) {
		out = append(out, repeated{"Mcp-Param-" + name, path})
	}
	props, _ := wire.ObjectAt(schema, root.Get(schema, "properties"))
	for _, m := range props.Members {
		if key, ok := wire.DecodeString(m.Key.Of(schema)); ok {
			out = appendRepeated(out, m.Value.Of(schema), append(slices.Clone(path), key))
		}
	}
	return out
}

// isToken says whether s can be part of a header's name.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// mirror sets the headers that repeat arguments of a call.
func (p *paramBook) mirror(f *wire.Frame, h http.Header) {
	name, _ := wire.DecodeString(f.Body.Get(f.Raw, "name").Of(f.Raw))
	p.mu.Lock()
	list := p.tools[name]
	p.mu.Unlock()
	for _, r := range list {
		if v, ok := r.value(f.Body.Get(f.Raw, "arguments").Of(f.Raw)); ok {
			h.Set(r.header, wire.EncodeHeader(v))
		}
	}
}

// value finds the argument; false where it is absent, null, or no plain value.
func (r repeated) value(v []byte) (string, bool) {
	for _, name := range r.path {
		obj, ok := wire.ObjectAt(v, wire.Span{End: len(v)})
		if !ok {
			return "", false
		}
		v = obj.Get(v, name).Of(v)
	}
	switch {
	case len(v) == 0 || v[0] == '{' || v[0] == '[' || v[0] == 'n':
		return "", false
	case v[0] == '"':
		return wire.DecodeString(v)
	}
	return string(v), true
}

// again repeats a call that was refused because its headers do not repeat it: the tool may have changed, or the client
// has never listed it. Such a refusal proves that the call did not run.
func (b *bridge) again(c *crossing, resp *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	f, err := wire.Parse(bytes.Clone(body), wire.Upstream, wire.Limits{})
	if err != nil || f.Kind != wire.KindError {
		return resp, nil
	}
	refusal, _ := wire.ObjectAt(f.Raw, f.Error)
	if string(refusal.Get(f.Raw, "code").Of(f.Raw)) != "-32020" || !b.relist(c.ctx, c.frame) {
		return resp, nil
	}
	return b.post(c, b.mirror(c))
}

// relist fetches the list of tools for the book, as the client that makes this call. It reads one page: the proxy's lists
// have one.
func (b *bridge) relist(ctx context.Context, f *wire.Frame) bool {
	body := append([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":`), f.Meta.Of(f.Raw)...)
	req, err := b.request(ctx, http.MethodPost, append(body, "}}"...))
	if err != nil {
		return false
	}
	version, _ := wire.DecodeString(f.Meta.Get(f.Raw, wire.MetaProtocolVersion).Of(f.Raw))
	req.Header.Set(headerVersion, wire.EncodeHeader(version))
	req.Header.Set("Mcp-Method", "tools/list")
	resp, err := b.http.Do(req)
	if err != nil {
		return false
	}
	defer closeBody(resp)
	list, err := readAnswer(resp)
	if err != nil || list.Kind != wire.KindResponse {
		return false
	}
	b.book.learn(list)
	return true
}
