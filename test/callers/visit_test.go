package callers

import (
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestTheNewsOfAVisitedPageComesOnTheCallersOwnConnection: the server names the page of everybody alike, and the news come
// on the connection of whoever visited it, outside of any call.
func TestTheNewsOfAVisitedPageComesOnTheCallersOwnConnection(t *testing.T) {
	t.Parallel()
	const visited, id = "notifications/elicitation/complete", `"elicitationId":"1"`
	srv := personal(testmcp.Legacy)
	srv.On["tools/call"] = func(c *testmcp.Call) {
		if c.Args("visited").Str() == "" {
			c.Error(-32042, "visit first", `{"elicitations":[{"mode":"url","message":"Sign in.","url":"https://example.org",`+id+`}]}`)
			return
		}
		c.Elsewhere(`{"jsonrpc":"2.0","method":"` + visited + `","params":{` + id + `}}`)
		c.Text("told")
	}
	h := testmcp.ServeHTTP(t, srv, testmcp.HTTPOptions{})
	p := start(t, "", map[string]string{"up": h.Entry(`"forward_caller_auth":true`)})
	a, b := client(t, p.URL, testmcp.Legacy, "Authorization", ann), client(t, p.URL, testmcp.Legacy, "Authorization", bob)
	for _, c := range []*testmcp.Client{a, b} {
		if got := c.CallTool("up__common", "{}"); got.Code() != -32042 {
			t.Fatalf("the call gives %s", got.Raw)
		}
	}
	newsA, newsB := a.Get(""), b.Get("")
	defer newsA.Close()
	defer newsB.Close()
	for c, news := range map[*testmcp.Client]*testmcp.Stream{a: newsA, b: newsB} {
		c.CallTool("up__common", `{"visited":"yes"}`)
		news.WaitMethod(visited)
	}
	for name, news := range map[string]*testmcp.Stream{"Ann": newsA, "Bob": newsB} {
		told := 0
		for _, e := range news.Events() {
			if e.Message().Method == visited {
				told++
			}
		}
		if told != 1 {
			t.Errorf("%s is told %d times", name, told)
		}
	}
}
