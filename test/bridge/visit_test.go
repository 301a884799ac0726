package bridge

import (
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// A page to be visited: with an id of the server's own for old clients of old servers, one of ours where the server has
// none, and none for new clients.
func TestPagesToVisitReachTheClient(t *testing.T) {
	t.Parallel()
	s := startAll(t, kinds, "asker", "")
	for _, e := range eras {
		c := connect(t, s.Proxy, e.era, map[string]string{elicit: `{"action":"accept"}`})
		for _, k := range kinds {
			before := len(c.Asked())
			equal(t, e.name+", "+k.name, c.CallTool(k.name+"__visit", "").Text(), `{"action":"accept"}`)
			q := c.Asked()[before].Params
			equal(t, e.name+", "+k.name+": url", q.At("url").Str(), "https://example.org/in")
			equal(t, e.name+", "+k.name+": message", q.At("message").Str(), "["+k.name+"] Sign in.")
			id := q.At("elicitationId").Str()
			switch {
			case e.era == testmcp.Modern:
				equal(t, k.name+": id", id, "")
			case k.era == testmcp.Legacy:
				equal(t, k.name+": id", id, "visit-1")
			case id == "":
				t.Errorf("%s: an old client got no id: %s", k.name, q)
			}
		}
	}
}

// Old servers refuse a call until a page has been visited. Old clients get that error as it is; new ones are told what is
// required, and the call is made again when they come back.
func TestCallsThatNeedAPageFirst(t *testing.T) {
	t.Parallel()
	for _, k := range oldKinds {
		for _, e := range eras {
			p, _ := startOne(t, k, "asker", "")
			c := connect(t, p, e.era, map[string]string{elicit: `{"action":"accept"}`})
			tool := k.name + "__visit-first"
			a := c.CallTool(tool, "")
			if e.era == testmcp.Legacy {
				equal(t, k.name+": code", a.Code(), -32042)
				equal(t, k.name+": id", a.Err().At("data", "elicitations", 1, "elicitationId").Str(), "v1")
				a = c.CallTool(tool, "")
			} else {
				q := c.Asked()[0].Params
				equal(t, k.name+": url", q.At("url").Str(), "https://example.org/in")
				equal(t, k.name+": an id", q.Has("elicitationId"), false)
			}
			equal(t, k.name+", "+e.name, a.Text(), "welcome")
		}
	}
}

func TestPagesThatAreNotVisited(t *testing.T) {
	t.Parallel()
	p, rec := startOne(t, webOld, "asker", "")
	declining := connect(t, p, testmcp.Modern, map[string]string{elicit: `{"action":"decline"}`})
	a := declining.CallTool("web-old__visit-first", "")
	equal(t, "declined: code", a.Code(), -32603)
	equal(t, "calls at the server", rec.Count(testmcp.CalledTool("visit-first")), 1)

	p, _ = startOne(t, webOld, "asker", "")
	blind := client(t, p, testmcp.Modern, nil)
	blind.Capabilities = `{"elicitation":{"form":{}}}`
	a = blind.CallTool("web-old__visit-first", "")
	equal(t, "a client without pages: code", a.Code(), -32021)
	equal(t, "a client without pages: HTTP", a.Status, 400)
	equal(t, "what it lacks", a.Err().At("data", "requiredCapabilities").String(), `{"elicitation":{"url":{}}}`)

	p, _ = startOne(t, webOld, "asker", "", `"elicitation":{"mode":"decline"}`)
	a = connect(t, p, testmcp.Modern, map[string]string{elicit: `{"action":"accept"}`}).CallTool("web-old__visit-first", "")
	equal(t, "declined by configuration: code", a.Code(), -32603)
}
