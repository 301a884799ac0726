package catalog

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// A server over HTTP may write its messages over several lines.
const (
	spreadTool   = "{\n  \"name\": \"spread\",\n  \"inputSchema\": {\n\t\"type\": \"object\"\n  },\n  \"x\": [\n1.10\n]\n}"
	spreadResult = "{\n  \"content\": [\n    {\"type\": \"text\", \"text\": \"a\\nb\"}\n  ],\n  \"structuredContent\": {\n\"n\":\n1.10 }\n}"
)

var _ = behaviour("spread", func() *testmcp.Server {
	return &testmcp.Server{Tools: []testmcp.Tool{{Definition: spreadTool, Handle: func(c *testmcp.Call) {
		if c.Args("report").Int() == 1 {
			c.Progress(1, 2, "")
		}
		c.RawResult(spreadResult)
	}}}}
})

// eventOfLines writes each line of a frame as a data line of its own.
func eventOfLines(_ string, frame []byte) []byte {
	return []byte("data: " + strings.ReplaceAll(string(frame), "\n", "\ndata: ") + "\n\n")
}

// TestMessagesOfSeveralLinesArriveAsOne sends a result as JSON and in an event stream: the second line of a message must
// not be taken for anything of its own.
func TestMessagesOfSeveralLinesArriveAsOne(t *testing.T) {
	t.Parallel()
	oneLine := func(s string) string { return strings.ReplaceAll(s, "\n", " ") }
	for name, form := range map[string]testmcp.Answers{"as JSON": testmcp.AsNeeded, "as events": testmcp.AsEvents} {
		web := testmcp.ServeHTTP(t, testmcp.Registered("spread", "legacy"), testmcp.HTTPOptions{Answers: form, Event: eventOfLines})
		p := start(t, testmcp.Config("", map[string]string{"web": web.Entry()}))
		c := testmcp.Connect(t, p.Server("web"), testmcp.Legacy)
		same(t, "the tool "+name, string(definitions(c)["spread"]), oneLine(spreadTool))
		for what, params := range map[string]string{
			"alone": `{"name":"spread"}`, "after a report": `{"name":"spread","arguments":{"report":1},"_meta":{"progressToken":1}}`,
		} {
			a := c.Call("tools/call", params)
			if strings.ContainsAny(string(a.Raw), "\r\n") {
				t.Errorf("%s %s: the answer holds a line break: %q", name, what, a.Raw)
			}
			same(t, name+" "+what+": the result", string(a.Result()), oneLine(spreadResult))
		}
	}
}

func TestConfiguredMembersReachTheServerToTheDigit(t *testing.T) {
	t.Parallel()
	const tenant = `{"id":9007199254740993,"f":1.10,"e":1e400}`
	s := startAll(t, "odd", "", `"request_meta":{"example.com/tenant":`+tenant+`,"example.com/n":12345678901234567890}`)
	for _, e := range eras {
		c := s.Client(e.era)
		for _, k := range kinds {
			rec := s.recs[k.name]
			before := rec.Count(testmcp.CalledTool("exact"))
			c.Call("tools/call", `{"name":"`+k.tool("exact")+`","arguments":{},"_meta":{"example.com/n":1,"example.com/mine":2}}`)
			meta := newest(t, rec, before, "exact").Frame.At("params", "_meta")
			for member, want := range map[string]string{"example.com/tenant": tenant, "example.com/n": "12345678901234567890", "example.com/mine": "2"} {
				same(t, e.name+" to "+k.name+": "+member, string(meta.At(member)), want)
			}
			if n := len(meta.Keys()); n != len(meta.Members()) {
				t.Errorf("%s to %s: a member is there twice: %s", e.name, k.name, meta)
			}
			listed := rec.Wait(t, testmcp.Received("tools/list")).Frame.At("params", "_meta")
			same(t, "what comes with a list", string(listed.At("example.com/tenant")), tenant)
		}
	}
}

func TestConfiguredMembersMayHoldVariables(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	entry := rec.Entry("basic", nil, `"request_meta":{"tenant":{"names":["${TENANT}","${NOT:-none}"],"n":1.10}}`)
	p := start(t, testmcp.Config("", map[string]string{"one": entry}), testmcp.WithEnv("TENANT=blue"))
	for _, e := range eras {
		p.Client(e.era).CallTool("one__echo", `{"text":"hi"}`)
	}
	for _, r := range append(rec.WaitN(t, 2, testmcp.CalledTool("echo")), rec.Wait(t, testmcp.Received("tools/list"))) {
		same(t, r.Method, string(r.Frame.At("params", "_meta", "tenant")), `{"names":["blue","none"],"n":1.10}`)
	}
}
