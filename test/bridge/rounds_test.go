package bridge

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// rounder asks for three things at once, or demands in the manner of the new era what it has no words for in the old one.
var _ = behaviour("rounder", func() *testmcp.Server {
	s := testmcp.Basic("rounder")
	s.Tools = append(s.Tools, testmcp.SimpleTool("ask-at-once", askAtOnce), testmcp.SimpleTool("demand", demand))
	return s
})

func askAtOnce(c *testmcp.Call) {
	var wg sync.WaitGroup
	answers := make([]string, 3)
	for i, q := range []struct{ method, params string }{{elicit, form(c)}, {sample, `{"messages":[],"maxTokens":1}`}, {roots, "{}"}} {
		wg.Go(func() {
			result, err := c.Ask(q.method, q.params)
			if answers[i] = string(result.At("result")); err != nil {
				answers[i] = err.Error()
			}
		})
	}
	wg.Wait()
	c.Text(strings.Join(answers, " "))
}

func demand(c *testmcp.Call) {
	params := c.Params
	if state := params.At("requestState"); state != nil {
		c.Text("back with " + string(state) + " and " + string(params.At("inputResponses")))
		return
	}
	c.Result(`{"content":[],"inputRequests":{"mine":{"method":"` + elicit + `","params":` + form(c) + `}},"requestState":"{\"my\":\"own\"}"}`)
}

// What an old server asks at once comes to a new client in one round, and each answer to its own question.
func TestWhatIsAskedAtOnceComesInOneRound(t *testing.T) {
	t.Parallel()
	for _, k := range oldKinds {
		p, rec := startOne(t, k, "rounder", "")
		c := connect(t, p, testmcp.Modern, nil)
		tool := k.name + "__ask-at-once"
		a := c.CallTool(tool, "")
		answers := map[string]string{
			elicit: `{"action":"accept","content":{"answer":"mine"}}`, sample: `{"role":"assistant","model":"m","content":{"type":"text","text":"sampled"}}`, roots: `{"roots":[]}`,
		}
		var back, asked []string
		for _, key := range []string{"q1", "q2", "q3", "q4"} {
			if method := a.Result().At("inputRequests", key, "method").Str(); method != "" {
				asked = append(asked, method)
				back = append(back, `"`+key+`":`+answers[method])
			}
		}
		slices.Sort(asked)
		equal(t, k.name+": asked", strings.Join(asked, " "), strings.Join([]string{elicit, roots, sample}, " "))
		got := c.Call("tools/call", strings.TrimSuffix(testmcp.ToolParams(tool, ""), "}")+`,"inputResponses":{`+strings.Join(back, ",")+`},"requestState":`+string(a.Result().At("requestState"))+"}")
		equal(t, k.name+": the result", got.Text(), answers[elicit]+" "+answers[sample]+" "+answers[roots])
		equal(t, k.name+": calls at the server", rec.Count(testmcp.Received("tools/call")), 1)
	}
}

// An old server that ends a call by demanding more is called again by a new client, with its own state.
func TestAnOldServerThatDemandsMore(t *testing.T) {
	t.Parallel()
	for _, k := range oldKinds {
		p, rec := startOne(t, k, "rounder", "")
		c := connect(t, p, testmcp.Modern, map[string]string{elicit: `{"action":"accept","content":{"answer":"yes"}}`})
		a := c.CallTool(k.name+"__demand", "")
		equal(t, k.name, a.Text(), `back with "{\"my\":\"own\"}" and {"mine":{"action":"accept","content":{"answer":"yes"}}}`)
		equal(t, k.name+": calls at the server", rec.Count(testmcp.Received("tools/call")), 2)
		old := connect(t, p, testmcp.Legacy, nil).CallTool(k.name+"__demand", "")
		holds(t, k.name+": an old client gets it as it is", string(old.Raw), `"content":[],"inputRequests":{"mine"`, `"requestState":"{\"my\":\"own\"}"`)
	}
}
