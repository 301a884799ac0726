package proxy

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// maxResult is the longest result that this call may have; 0 for no bound.
func (c *call) maxResult() int64 {
	return cmp.Or(c.item.over.MaxResultSize, c.item.Upstream.Config().MaxResultSize)
}

// within gives an answer that is within max_result_size: the one that came, or what is said in its place.
func (c *call) within(f *wire.Frame) *wire.Frame {
	bound := c.maxResult()
	if bound == 0 || int64(len(f.Raw)) <= bound {
		return f
	}
	at, result, ok := c.toolResult(f)
	if !ok || int64(at.End-at.Start) <= bound {
		return f
	}
	c.p.count.Limit(count.LimitResult)
	c.p.log.Info("a result is over its bound", zap.String("upstream", c.up), zap.String("target", c.item.Wire), zap.String("request_id", c.requestID()),
		zap.Int("bytes", at.End-at.Start), zap.Int64("max_result_size", bound))
	var p wire.Patch
	p.Reset(f.Raw)
	p.Replace(at, c.instead(f, at, &result, int(bound)))
	short, err := reparsed(&p)
	if err != nil {
		return f // never: what is put in is ours
	}
	c.shortened = true
	return short
}

// toolResult finds the result of a tool in an answer: it is the answer, or what a task has ended with.
func (c *call) toolResult(f *wire.Frame) (at wire.Span, obj wire.Object, ok bool) {
	switch {
	case c.method == "tools/call" && !c.isTaskNow(f) && string(f.Body.Get(f.Raw, "resultType").Of(f.Raw)) != typeInput, c.method == methodTaskResult:
		return f.Result, f.Body, true
	case c.method == methodTaskGet:
		at = f.Body.Get(f.Raw, "result")
		obj, ok = wire.ObjectAt(f.Raw, at)
		return at, obj, ok && obj.Has(f.Raw, "content")
	}
	return wire.Span{}, wire.Object{}, false
}

// maxMetaKept is how long the _meta of a result may be that stays while the rest of it goes.
const maxMetaKept = 1 << 10

// instead makes the result that takes the place of a longer one.
func (c *call) instead(f *wire.Frame, at wire.Span, result *wire.Object, bound int) []byte {
	failed := string(result.Get(f.Raw, "isError").Of(f.Raw)) == "true"
	b := []byte(`{"content":`)
	kept := (*stashed)(nil)
	if c.item.Upstream.Config().Oversize == config.OversizeResource {
		kept = c.keep(f, at, result, bound)
	}
	if kept == nil {
		b, failed = append(wire.AppendString(append(b, `[{"type":"text","text":`...), c.tooLong(at.End-at.Start, bound)), `}]`...), true
	} else {
		b = append(b, c.beginning(kept, at.End-at.Start, bound)...)
		// Structured content cannot be cut. A result that has none is one that its schema allows only if it is an error
		// (2025-11-25, server/tools, "Output Schema").
		failed = failed || c.promisesStructure()
	}
	if failed {
		b = append(b, `,"isError":true`...)
	}
	for _, name := range []string{"_meta", "resultType"} {
		if v := result.Get(f.Raw, name).Of(f.Raw); len(v) > 0 && len(v) <= maxMetaKept {
			b = append(append(b, `,"`+name+`":`...), v...)
		}
	}
	return append(b, '}')
}

// promisesStructure says whether the client has seen an output schema of this tool.
func (c *call) promisesStructure() bool {
	text := c.item.text[classOf(c.req.Caller.Era)]
	obj, _ := wire.ObjectAt(text, wire.Span{End: len(text)})
	return obj.Has(text, "outputSchema")
}

// toolName names the tool in texts; of a task that was asked for later only its server is known.
func (c *call) toolName() string {
	if c.method != "tools/call" {
		return c.up + "::task"
	}
	return c.up + "::" + cut(c.item.Wire, 64)
}

func (c *call) tooLong(size, bound int) string {
	return fmt.Sprintf("%s: the result has %d bytes, and no more than %d are let through (max_result_size). Ask for less of it, for example with narrower arguments.",
		c.toolName(), size, bound)
}

// keep stashes a result; nil where there is no room.
func (c *call) keep(f *wire.Frame, at wire.Span, result *wire.Object, bound int) *stashed {
	e := &stashed{principal: c.req.Caller.Principal, view: c.req.Caller.View, page: bound, up: c.item.Upstream, creds: c.credentials()}
	switch {
	case e.texts(f, result):
	case e.one(f, result):
	default:
		e.body, e.mime = string(at.Of(f.Raw)), "application/json"
	}
	if !c.p.stash.put(e) {
		return nil
	}
	return e
}

// texts takes a result that is nothing but text. Structured content beside it that is no longer than the text is the same
// in another form (2025-11-25, server/tools, "Structured Content").
func (e *stashed) texts(f *wire.Frame, result *wire.Object) bool {
	blocks := wire.Elements(f.Raw, result.Get(f.Raw, "content"))
	var parts []string
	n := 0
	for _, at := range blocks {
		block, _ := wire.ObjectAt(f.Raw, at)
		text, ok := wire.DecodeString(block.Get(f.Raw, "text").Of(f.Raw))
		if !ok || string(block.Get(f.Raw, "type").Of(f.Raw)) != `"text"` {
			return false
		}
		parts = append(parts, text)
		n += len(text)
	}
	if n == 0 || len(result.Get(f.Raw, "structuredContent").Of(f.Raw)) > n {
		return false
	}
	e.body, e.mime = strings.Join(parts, "\n"), "text/plain"
	return true
}

// one takes a result that is one image, one sound or one embedded resource.
func (e *stashed) one(f *wire.Frame, result *wire.Object) bool {
	blocks := wire.Elements(f.Raw, result.Get(f.Raw, "content"))
	if len(blocks) != 1 || result.Has(f.Raw, "structuredContent") {
		return false
	}
	block, _ := wire.ObjectAt(f.Raw, blocks[0])
	data := "data"
	if inner, ok := wire.ObjectAt(f.Raw, block.Get(f.Raw, "resource")); ok {
		block, data = inner, "blob"
	}
	mime, _ := wire.DecodeString(block.Get(f.Raw, "mimeType").Of(f.Raw))
	if len(mime) > 128 {
		return false
	}
	if text, ok := wire.DecodeString(block.Get(f.Raw, "text").Of(f.Raw)); ok && data == "blob" {
		e.body, e.mime = text, cmp.Or(mime, "text/plain")
		return text != ""
	}
	coded, _ := wire.DecodeString(block.Get(f.Raw, data).Of(f.Raw))
	plain, err := base64.StdEncoding.DecodeString(coded)
	e.body, e.mime, e.blob = string(plain), cmp.Or(mime, "application/octet-stream"), true
	if err != nil || len(plain) == 0 {
		e.blob = false
		return false
	}
	return true
}

// beginning is the content that takes the place of a result that is kept: as much of it as has room, and where the rest is.
func (c *call) beginning(e *stashed, size, bound int) []byte {
	note := fmt.Sprintf("[%s: the result has %d bytes, and no more than %d are let through (max_result_size). The whole is kept for %s: read the resource %s, whose pages name the next.]",
		c.toolName(), size, bound, c.p.stash.age(), e.uri(0))
	link := c.keptLink(e)
	text := note
	if room := bound - len(link) - len(note) - 64; !e.blob && room > 0 {
		if head := e.body[:fitting(e.body, room)]; head != "" {
			text = head + "\n\n" + note
		}
	}
	b := wire.AppendString([]byte(`[{"type":"text","text":`), text)
	return append(append(append(b, '}'), link...), ']')
}

// keptLink is the block that leads to what is kept, with a comma before it; nothing for clients that know no such block
// (resource links came with 2025-06-18).
func (c *call) keptLink(e *stashed) []byte {
	if c.req.Caller.Era == wire.Legacy && c.req.Caller.Version < wire.Rev20250618 {
		return nil
	}
	b := wire.AppendString([]byte(`,{"type":"resource_link","uri":`), e.uri(0))
	b = wire.AppendString(append(b, `,"name":`...), "result of "+c.toolName())
	b = wire.AppendString(append(b, `,"mimeType":`...), e.mime)
	return append(appendInt(append(b, `,"size":`...), len(e.body)), '}')
}

// fitting tells how much of a text makes no more than room bytes of JSON. It cuts between characters, and takes one at least.
func fitting(s string, room int) int {
	n := 0
	for i, r := range s {
		size := utf8.RuneLen(r)
		switch {
		case r == '"', r == '\\', r == '\n', r == '\r', r == '\t':
			size = 2
		case r < ' ', r == '\u2028', r == '\u2029':
			size = 6
		case size < 0:
			size = 3
		}
		if n += size; n > room && i > 0 {
			return i
		}
	}
	return len(s)
}
