package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func eras(down, up wire.Era) string { return down.String() + " to " + up.String() }

func callerOf(era wire.Era) *Caller {
	if era == wire.Modern {
		return modernCaller()
	}
	return legacyCaller()
}

// relayed sends one request of a client through the proxy. It gives what reached the server, with its id as ID, and
// what the client got.
func relayed(t *testing.T, down, up wire.Era, meta, request, member string) (sent, answer string) {
	t.Helper()
	s := (&server{id: "s", era: up}).tools("t").set(Prompt, `{"name":"p"}`).set(Resource, `{"uri":"a:b","name":"r"}`).set(Template, `{"uriTemplate":"x:{n}","name":"x"}`)
	s.on = func(f *wire.Frame, _ io.Writer) (string, bool) {
		switch f.Method {
		case "tools/call", "prompts/get", "resources/read":
			id := string(f.ID.Of(f.Raw))
			sent = strings.NewReplacer(`"id":`+id, `"id":ID`, `"progressToken":`+id, `"progressToken":ID`).Replace(string(f.Raw))
			return member, true
		}
		return "", false
	}
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, Options{}, func(c *config.Server) {
			if meta != "" {
				c.RequestMeta = json.RawMessage(meta)
			}
		}, s)
		defer st.stop()
		st.t = t
		answer = st.text(callerOf(down), request)
	})
	return sent, answer
}

const (
	protocol = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	caps     = `"io.modelcontextprotocol/clientCapabilities":{}`
	info     = `"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}`
)

// Byte for byte what reaches a server, for each pairing of eras.
func TestWhatReachesAServer(t *testing.T) {
	modernMeta := protocol + `,` + info + `,` + caps + `,"io.modelcontextprotocol/logLevel":"info"`
	ours := `"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"mcp-proxy","version":"1"},` + protocol
	for _, c := range []struct {
		name, request      string
		toLegacy, toModern string // "=" for the request itself but for the id and the name
	}{
		{
			"legacy, no _meta", `{"jsonrpc":"2.0","id":"A","method":"tools/call","params":{"name":"s__t","arguments":{"n":1.10,"big":12345678901234567890,"k":{"name":"s__t"}}}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"_meta":{"progressToken":ID},"name":"t","arguments":{"n":1.10,"big":12345678901234567890,"k":{"name":"s__t"}}}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"_meta":{OURS,"progressToken":ID},"name":"t","arguments":{"n":1.10,"big":12345678901234567890,"k":{"name":"s__t"}}}}`,
		},
		{
			"legacy, a token and more", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__t","_meta":{"progressToken":"mine","x":1},"extra":[1e400]}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":ID,"x":1},"extra":[1e400]}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"t","_meta":{OURS,"progressToken":ID,"x":1},"extra":[1e400]}}`,
		},
		{
			"legacy, a task", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__t","task":{"ttl":1},"arguments":{}}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"_meta":{"progressToken":ID},"name":"t","task":{"ttl":1},"arguments":{}}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"_meta":{OURS,"progressToken":ID},"name":"t","arguments":{}}}`,
		},
		{
			"legacy, a prompt", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"s__p"}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"prompts/get","params":{"name":"p"}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"prompts/get","params":{"_meta":{OURS},"name":"p"}}`,
		},
		{
			"legacy, a resource", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b"}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"resources/read","params":{"uri":"a:b"}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"resources/read","params":{"_meta":{OURS},"uri":"a:b"}}`,
		},
		{
			"legacy, a template", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x:7"}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"resources/read","params":{"uri":"x:7"}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"resources/read","params":{"_meta":{OURS},"uri":"x:7"}}`,
		},
		{
			"modern", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"s__t","arguments":{"a":"\u2028"},"_meta":{` + modernMeta + `,"progressToken":7,"trace":"x"}}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"t","arguments":{"a":"\u2028"},"_meta":{"progressToken":ID,"trace":"x"}}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"t","arguments":{"a":"\u2028"},"_meta":{` + modernMeta + `,"progressToken":ID,"trace":"x"}}}`,
		},
		{
			"modern, without a token", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"s__t","_meta":{` + modernMeta + `}}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":ID}}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":ID,` + modernMeta + `}}}`,
		},
	} {
		for _, up := range []wire.Era{wire.Legacy, wire.Modern} {
			down := wire.Legacy
			if strings.HasPrefix(c.name, "modern") {
				down = wire.Modern
			}
			want := c.toLegacy
			if up == wire.Modern {
				want = strings.Replace(c.toModern, "OURS", ours, 1)
			}
			sent, _ := relayed(t, down, up, "", c.request, `"result":{}`)
			if !sameButForMembersOfMeta(sent, want) {
				t.Errorf("%s, %s:\ngot  %s\nwant %s", c.name, eras(down, up), sent, want)
			}
		}
	}
}

// sameButForMembersOfMeta compares two frames byte for byte, but for the order of the members of _meta, which says
// nothing.
func sameButForMembersOfMeta(a, b string) bool {
	order := func(s string) (rest, meta string) {
		f, err := wire.Parse([]byte(strings.NewReplacer(`"id":ID`, `"id":1`, `:ID`, `:1`).Replace(s)), wire.Upstream, wire.Limits{})
		if err != nil {
			return s, err.Error()
		}
		span := f.Body.Get(f.Raw, "_meta")
		var m map[string]json.RawMessage
		_ = json.Unmarshal(span.Of(f.Raw), &m)
		return string(f.Raw[:span.Start]) + string(f.Raw[span.End:]), fmt.Sprintf("%s", m)
	}
	restA, metaA := order(a)
	restB, metaB := order(b)
	return restA == restB && metaA == metaB
}

// request_meta takes the place of what the client says, in both eras.
func TestConfiguredMeta(t *testing.T) {
	sent, _ := relayed(t, wire.Legacy, wire.Legacy, `{"tenant":"t1","deep":{"a":[1]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__t","_meta":{"tenant":"stolen","keep":1}}}`, `"result":{}`)
	want := `{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":ID,"tenant":"t1","deep":{"a":[1]},"keep":1}}}`
	if !sameButForMembersOfMeta(sent, want) {
		t.Errorf("got  %s\nwant %s", sent, want)
	}
}

// Byte for byte what a client gets, for each pairing of eras.
func TestWhatReachesAClient(t *testing.T) {
	const serverInfo = `"io.modelcontextprotocol/serverInfo":{"name":"proxy","version":"1"}`
	const call = `{"jsonrpc":"2.0","id":"A","method":"tools/call","params":{"name":"s__t"}}`
	const read = `{"jsonrpc":"2.0","id":"A","method":"resources/read","params":{"uri":"a:b"}}`
	for _, c := range []struct {
		name     string
		down, up wire.Era
		request  string
		member   string
		want     string // members of the answer; "=" for the server's
	}{
		{"same era", wire.Legacy, wire.Legacy, call, `"result":{"content":[{"type":"unknown","x":1.10}],"y":12345678901234567890}`, "="},
		{"same era, modern", wire.Modern, wire.Modern, call, `"result":{"resultType":"complete","content":[],"y":1e400}`, "="},
		{"modern client", wire.Modern, wire.Legacy, call, `"result":{"content":[],"y":1.10}`, `"result":{"resultType":"complete","_meta":{` + serverInfo + `},"content":[],"y":1.10}`},
		{"modern client, with _meta", wire.Modern, wire.Legacy, call, `"result":{"content":[],"_meta":{"x":1}}`, `"result":{"resultType":"complete","content":[],"_meta":{` + serverInfo + `,"x":1}}`},
		{"modern client, a resource", wire.Modern, wire.Legacy, read, `"result":{"contents":[]}`, `"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{` + serverInfo + `},"contents":[]}`},
		{"legacy client", wire.Legacy, wire.Modern, call, `"result":{"resultType":"complete","content":[],"structuredContent":{"a":1},"ttlMs":5}`, `"result":{"content":[],"structuredContent":{"a":1}}`},
		{"legacy client, odd structure", wire.Legacy, wire.Modern, call, `"result":{"content":[],"structuredContent":[1],"resultType":"complete"}`, `"result":{"content":[]}`},
		{"legacy client, a resource", wire.Legacy, wire.Modern, read, `"result":{"contents":[],"ttlMs":5,"cacheScope":"public","resultType":"complete"}`, `"result":{"contents":[]}`},
		{"an error", wire.Legacy, wire.Legacy, call, `"error":{"code":-32000,"message":"m","data":{"x":1.10}}`, "="},
		{"an error across", wire.Modern, wire.Legacy, call, `"error":{"code":-32000,"message":"m"}`, "="},
		{"not found, to a modern client", wire.Modern, wire.Legacy, read, `"error":{"code":-32002,"message":"m"}`, `"error":{"code":-32602,"message":"m"}`},
		{"not found, to a legacy client", wire.Legacy, wire.Legacy, read, `"error":{"code":-32002,"message":"m"}`, "="},
		{"a fault in our headers", wire.Legacy, wire.Modern, call, `"error":{"code":-32020,"message":"m"}`, `"error":{"code":-32603,"message":"m"}`},
		{"a revision of ours", wire.Legacy, wire.Modern, call, `"error":{"code":-32022,"message":"m"}`, `"error":{"code":-32603,"message":"m"}`},
		{"a code nearby", wire.Legacy, wire.Modern, call, `"error":{"code":-32023,"message":"m"}`, "="},
	} {
		_, got := relayed(t, c.down, c.up, "", c.request, c.member)
		want := c.want
		if want == "=" {
			want = c.member
		}
		if want = `{"jsonrpc":"2.0","id":"A",` + want + `}`; !sameMembers(got, want) {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, want)
		}
	}
}

// sameMembers compares two answers, numbers by their digits, but for the order of members.
func sameMembers(a, b string) bool {
	canonical := func(s string) string {
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			return s
		}
		out, _ := json.Marshal(v)
		return string(out)
	}
	return canonical(a) == canonical(b)
}

// Content that came with a newer revision becomes text for clients of an older one.
func TestContentThatIsTooNew(t *testing.T) {
	const member = `"result":{"resultType":"complete","content":[{"type":"text","text":"a"},{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"resource_link","uri":"file:///x","name":"x"},{"type":"image","data":"AA==","mimeType":"image/png"}]}`
	for version, want := range map[string]string{
		wire.Rev20241105: `[{"type":"text","text":"a"},{"type":"text","text":"[audio]"},{"type":"text","text":"file:///x"},{"type":"image","data":"AA==","mimeType":"image/png"}]`,
		wire.Rev20250326: `[{"type":"text","text":"a"},{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"text","text":"file:///x"},{"type":"image","data":"AA==","mimeType":"image/png"}]`,
		wire.Rev20250618: `[{"type":"text","text":"a"},{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"resource_link","uri":"file:///x","name":"x"},{"type":"image","data":"AA==","mimeType":"image/png"}]`,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := (&server{id: "s", era: wire.Modern}).tools("t")
			s.on = func(f *wire.Frame, _ io.Writer) (string, bool) { return member, f.Method == "tools/call" }
			st := newStage(t, Options{}, nil, s)
			defer st.stop()
			c := legacyCaller()
			c.Version = version
			got := st.text(c, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__t"}}`)
			if want = `{"jsonrpc":"2.0","id":1,"result":{"content":` + want + `}}`; got != want {
				t.Errorf("%s:\ngot  %s\nwant %s", version, got, want)
			}
		})
	}
}
