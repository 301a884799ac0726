package bridge

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// Old servers that keep sessions, and new ones, serve clients of both eras with everything they have.
func TestEveryCombinationOfErasWorks(t *testing.T) {
	t.Parallel()
	s := startAll(t, kinds, "asker", "")
	for _, e := range eras {
		c := connect(t, s.Proxy, e.era, nil)
		for _, k := range kinds {
			what := e.name + ", " + k.name
			equal(t, what+": tool", c.CallTool(k.name+"__echo", `{"text":"hello"}`).Text(), "hello")
			equal(t, what+": failing tool", c.CallTool(k.name+"__fail", "").IsError(), true)
			refused := c.CallTool(k.name+"__refuse", "")
			equal(t, what+": error", string(refused.Err().At("code"))+refused.Err().At("data").String(), `-32000{"why":"asked"}`)
			prompt := c.Call("prompts/get", `{"name":"`+k.name+`__greet","arguments":{"who":"me"}}`)
			equal(t, what+": prompt", prompt.Result().At("messages", 0, "content", "text").Str(), "prompt greet")
			equal(t, what+": resultType", prompt.Result().Has("resultType"), e.era == testmcp.Modern)
			one := testmcp.Connect(t, s.Server(k.name), e.era)
			resource := one.Call("resources/read", `{"uri":"test://asker/readme"}`).Result()
			equal(t, what+": resource", resource.At("contents", 0, "text").Str(), "readme of asker")
			equal(t, what+": caching hint", resource.Has("ttlMs"), e.era == testmcp.Modern)
		}
	}
	for _, k := range oldKinds {
		equal(t, k.name+": handshakes", s.recs[k.name].Count(testmcp.Received("initialize")), 1)
	}
}

// who says whose header came with a call: over HTTP as a header, over pipes in _meta.
var _ = behaviour("who", func() *testmcp.Server {
	return &testmcp.Server{Name: "who", Tools: []testmcp.Tool{testmcp.SimpleTool("who", func(c *testmcp.Call) {
		if c.Until("go") {
			c.Text(c.Header.Get("X-User") + c.Params.At("_meta", "forwarded_headers", "x-user").Str())
		}
	})}}
})

// Two people whose requests have the same id at the same moment: nothing of the one may reach the other.
func TestRequestsOfTwoPeopleWithTheSameID(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		p, rec := startOne(t, k, "who", "", `"forward_headers":["X-User"]`)
		pending := map[string]*testmcp.Stream{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, e := range eras {
			for _, name := range []string{"ann", "bob"} {
				c := testmcp.NewClient(t, p.Base+"/mcp", e.era)
				c.Header = http.Header{"X-User": {name + " " + e.name}}
				c.Open()
				wg.Go(func() {
					s := c.Send("1", "tools/call", testmcp.ToolParams(k.name+"__who", ""))
					mu.Lock()
					defer mu.Unlock()
					pending[name+" "+e.name] = s
				})
			}
		}
		rec.WaitN(t, 4, testmcp.CalledTool("who"))
		rec.Signal("go")
		wg.Wait()
		for name, s := range pending {
			equal(t, k.name+": whose request it was", s.Final().Text(), name)
		}
	}
}

// The configured URL is used as it stands: path, slash, query and escapes.
func TestURLsAreUsedAsTheyStand(t *testing.T) {
	t.Parallel()
	for _, era := range []testmcp.Era{testmcp.Legacy, testmcp.Modern} {
		for _, path := range []string{"/mcp/", "/mcp", "/a%2Fb/mcp"} {
			s := testmcp.Basic("web")
			s.Era = era
			var wrong sync.Map
			query := "?key=a%2Fb&empty="
			h := testmcp.ServeHTTP(t, s, testmcp.HTTPOptions{Before: func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
				if r.RequestURI != path+query {
					wrong.Store(r.RequestURI, true)
				}
				r.URL.Path = "/mcp"
				return false
			}})
			base := strings.TrimSuffix(h.URL, "/mcp")
			p := start(t, testmcp.Config("", map[string]string{"web": `{"url":` + testmcp.Quote(base+path+query) + `}`}))
			equal(t, path, p.Client(testmcp.Modern).CallTool("web__echo", `{"text":"there"}`).Text(), "there")
			wrong.Range(func(uri, _ any) bool {
				t.Errorf("%s was asked for as %s", path+query, uri)
				return true
			})
		}
	}
}

// The same over HTTP+SSE, whose stream has the configured URL and whose messages the one that it announces.
func TestURLsOfStreamsAreUsedAsTheyStand(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/sse/", "/a%2Fb/sse"} {
		const query = "?key=a%2Fb&empty="
		var seen sync.Map
		h := testmcp.ServeSSE(t, testmcp.Basic("sse"), testmcp.SSEOptions{
			Endpoint: func(_, to string) []string {
				return []string{"event: endpoint\ndata: " + strings.Replace(to, "/messages", "/m%2Fs/", 1) + "&more=a%2Fb\n\n"}
			},
			Before: func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
				seen.Store(r.Method+" "+regexp.MustCompile("sessionId=[a-z0-9]+").ReplaceAllString(r.RequestURI, "sessionId=ID"), true)
				r.URL.Path = map[string]string{http.MethodGet: "/sse", http.MethodPost: "/messages"}[r.Method]
				return false
			},
		})
		p := start(t, testmcp.Config("", map[string]string{"sse": `{"type":"sse","url":` + testmcp.Quote(strings.TrimSuffix(h.URL, "/sse")+path+query) + `}`}))
		equal(t, path, p.Client(testmcp.Legacy).CallTool("sse__echo", `{"text":"there"}`).Text(), "there")
		seen.Range(func(uri, _ any) bool {
			if uri != "GET "+path+query && uri != "POST /m%2Fs/?sessionId=ID&more=a%2Fb" {
				t.Errorf("%s was asked for", uri)
			}
			return true
		})
	}
}

// A server that wants credentials is that server's trouble: the call fails with the remedy, the client is not told that
// it needs credentials itself, and other servers go on.
func TestA401OfAServerNeverBecomesOurs(t *testing.T) {
	t.Parallel()
	for _, era := range []testmcp.Era{testmcp.Legacy, testmcp.Modern} {
		for _, code := range []int{401, 403} {
			s := testmcp.Basic("guarded")
			s.Era = era
			h := testmcp.ServeHTTP(t, s, testmcp.HTTPOptions{Before: func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
				if !strings.Contains(string(body), `"tools/call"`) {
					return false
				}
				w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://example.org/meta"`)
				testmcp.Status(code, "application/json", `{"error":"invalid_token"}`)(w, nil)
				return true
			}})
			open := testmcp.ServeHTTP(t, testmcp.Basic("open"), testmcp.HTTPOptions{})
			p := start(t, testmcp.Config("", map[string]string{"guarded": h.Entry(), "open": open.Entry()}))
			for _, e := range eras {
				c := p.Client(e.era)
				a := c.CallTool("guarded__echo", "")
				equal(t, e.name+": HTTP", a.Status, 200)
				equal(t, e.name+": challenge", a.Header.Get("WWW-Authenticate"), "")
				equal(t, e.name+": reason", a.Err().At("data", "reason").Str(), "unavailable")
				holds(t, e.name, a.Err().At("message").Str(), strconv.Itoa(code), "auth_token")
				equal(t, e.name+": the other", c.CallTool("open__echo", `{"text":"works"}`).Text(), "works")
			}
		}
	}
}

// An answer arrives with all its bytes, or the call fails: never a success that is cut short.
func TestAnswersAreWholeOrErrors(t *testing.T) {
	t.Parallel()
	result := `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 40) + `"}]}}`
	breaks := map[string]func(body string) http.HandlerFunc{
		"declares more than it sends": func(body string) http.HandlerFunc {
			return testmcp.Truncated("application/json", body[:60], len(body))
		},
		"a chunk without its end": func(body string) http.HandlerFunc { return testmcp.CutChunk("application/json", body[:60]) },
		"a stream that is cut":    func(body string) http.HandlerFunc { return testmcp.Events("data: " + body[:60]) },
		"half of it in good form": func(body string) http.HandlerFunc { return testmcp.Status(200, "application/json", body[:60]) },
		"reset":                   func(string) http.HandlerFunc { return testmcp.Reset },
	}
	for _, era := range []testmcp.Era{testmcp.Legacy, testmcp.Modern} {
		s := testmcp.Basic("web")
		s.Era = era
		for name, f := range breaks {
			s.Tools = append(s.Tools, testmcp.SimpleTool(strings.ReplaceAll(name, " ", "-"), func(c *testmcp.Call) {
				c.Respond(f(strings.Replace(result, "ID", c.ID.String(), 1)))
			}))
		}
		h := testmcp.ServeHTTP(t, s, testmcp.HTTPOptions{})
		p := start(t, testmcp.Config(`{"naming":{"mode":"none"}}`, map[string]string{"web": h.Entry()}))
		for _, e := range eras {
			c := p.Client(e.era)
			for name := range breaks {
				a := c.CallTool(strings.ReplaceAll(name, " ", "-"), "")
				if a.Err() == nil || a.Err().At("data", "reason").Str() == "" {
					t.Errorf("%s: %s gave %s", e.name, name, a.Raw)
				}
			}
			if big := c.CallTool("big", `{"bytes":300000}`); len(big.Text()) != 300_000 {
				t.Errorf("%s: a large one gave %.200s", e.name, big.Raw)
			}
		}
	}
}

// A request over the limit is refused with the name of the limit, and the client goes on.
func TestRequestsOverTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	p, rec := startOne(t, webOld, "asker", `{"limits":{"max_body_bytes":100000}}`)
	for _, e := range eras {
		c := connect(t, p, e.era, nil)
		a := c.Try("tools/call", testmcp.ToolParams("web-old__echo", `{"text":"`+strings.Repeat("x", 200_000)+`"}`))
		equal(t, e.name+": HTTP", a.Status, http.StatusRequestEntityTooLarge)
		holds(t, e.name, string(a.Body), "max_body_bytes")
		equal(t, e.name+": afterwards", c.CallTool("web-old__echo", `{"text":"fine"}`).Text(), "fine")
	}
	equal(t, "calls at the server", rec.Count(testmcp.CalledTool("echo")), 2)
}

// A stateless server tells its news only to who listens: the proxy does, and listens again when that ends.
func TestChangesOfModernServersArriveAlsoAfterTheirStreamEnds(t *testing.T) {
	t.Parallel()
	s := testmcp.Basic("web")
	s.Era = testmcp.Modern
	h := testmcp.ServeHTTP(t, s, testmcp.HTTPOptions{})
	p := start(t, testmcp.Config("", map[string]string{"web": h.Entry()}))
	c := p.Client(testmcp.Legacy)
	news := c.Get("")
	change := func(name string) {
		h.Instance().SetTools(testmcp.SimpleTool(name, nil))
		h.Instance().Notify("notifications/tools/list_changed", "")
		testmcp.Eventually(t, name, func() bool { names := c.ToolNames(); return len(names) == 1 && names[0] == "web__"+name })
	}
	h.Rec.Wait(t, testmcp.Received("subscriptions/listen"))
	change("first")
	news.WaitMethod("notifications/tools/list_changed")
	h.Rec.Signal(testmcp.EndListens)
	h.Instance().SetTools(testmcp.SimpleTool("missed", nil)) // nobody listens: the lists are looked at again
	testmcp.Eventually(t, "what was missed", func() bool { names := c.ToolNames(); return len(names) == 1 && names[0] == "web__missed" })
}

// forgets ends its subscriptions when its tool is called, and has another tool then.
var _ = testmcp.Register("forgets", func([]string) *testmcp.Server {
	s := testmcp.Basic("forgets")
	s.Era = testmcp.Modern
	s.On = map[string]testmcp.Handler{"subscriptions/listen": func(c *testmcp.Call) {
		c.Instance().Add("listens", 1)
		c.Notify("notifications/subscriptions/acknowledged", `{"_meta":{"io.modelcontextprotocol/subscriptionId":`+string(c.ID)+`},"notifications":{"toolsListChanged":true}}`)
		if c.Until(fmt.Sprintf("forget %d", c.Instance().Add("listens", 0))) {
			c.Result(`{"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(c.ID) + `}}`)
		}
	}}
	s.Tools = append(s.Tools, testmcp.SimpleTool("learn", func(c *testmcp.Call) {
		c.Instance().SetTools(append(s.Tools, testmcp.SimpleTool(c.Args("name").Str(), nil))...)
		c.Text("learnt")
	}))
	return s
})

// The same over a pipe, where a subscription ends with its answer.
func TestChangesOfModernProgramsArriveAlsoAfterTheirSubscriptionEnds(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := start(t, testmcp.Config("", map[string]string{"one": rec.Entry("forgets", nil)}))
	c := p.Client(testmcp.Legacy)
	for round, name := range []string{"first", "second"} {
		rec.WaitN(t, round+1, testmcp.Received("subscriptions/listen"))
		equal(t, name, c.CallTool("one__learn", `{"name":"`+name+`"}`).Text(), "learnt")
		rec.Signal(fmt.Sprintf("forget %d", round+1))
		testmcp.Eventually(t, name, func() bool { return slices.Contains(c.ToolNames(), "one__"+name) })
	}
	equal(t, "starts", rec.Count(testmcp.Is(testmcp.Start)), 1)
}

// A modern server may announce what its list does not show, such as another tool behind the same words. Modern clients
// that listen are told, those of the old era only when their list is another.
func TestAnAnnouncementThatTheListDoesNotExplain(t *testing.T) {
	t.Parallel()
	const changed = "notifications/tools/list_changed"
	for _, era := range []testmcp.Era{testmcp.Legacy, testmcp.Modern} {
		s := testmcp.Basic("web")
		s.Era = era
		h := testmcp.ServeHTTP(t, s, testmcp.HTTPOptions{})
		p := start(t, testmcp.Config("", map[string]string{"web": h.Entry()}))
		old, listener := p.Client(testmcp.Legacy), p.Client(testmcp.Modern)
		news, listen, prompts := old.Get(""), listener.Listen(`{"toolsListChanged":true}`), listener.Listen(`{"promptsListChanged":true}`)
		hears := testmcp.Received("subscriptions/listen")
		if era == testmcp.Legacy {
			hears = func(r testmcp.Record) bool { return r.Kind == testmcp.Request && strings.HasPrefix(r.Text, "GET") }
		}
		h.Rec.Wait(t, hears)
		listen.WaitMethod("notifications/subscriptions/acknowledged")
		prompts.WaitMethod("notifications/subscriptions/acknowledged")
		before := len(news.Events())
		h.Instance().Notify(changed, "")
		listen.WaitMethod(changed)

		h.Instance().SetTools(testmcp.SimpleTool("other", nil))
		h.Instance().Notify(changed, "")
		news.WaitMethod(changed)
		testmcp.Eventually(t, "the second announcement", func() bool { return len(listen.Events()) == 3 })
		equal(t, "told to an old client", len(news.Events())-before, 1)
		equal(t, "told to who listens for prompts", len(prompts.Events()), 1)
	}
}

// The loss and the return of a server are told to sessions that are open, without a new connection of theirs.
func TestSessionsHearOfServersThatComeBack(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{pipeOld, pipeNew} {
		rec := testmcp.NewRecorder(t)
		word := map[kind]string{pipeOld: "legacy", pipeNew: "modern"}[k]
		file := filepath.Join(t.TempDir(), "grown")
		p := start(t, testmcp.Config("", map[string]string{"one": rec.Entry("grows", []string{word, file}, `"restart":{"initial_delay":"10ms"}`)}))
		c, listener := p.Client(testmcp.Legacy), p.Client(testmcp.Modern)
		news, listen := c.Get(""), listener.Listen(`{"toolsListChanged":true}`)
		listen.WaitMethod("notifications/subscriptions/acknowledged")
		equal(t, k.name+": at first", len(c.ToolNames()), 1)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c.CallTool("one__crash", "")
		news.WaitMethod("notifications/tools/list_changed")
		listen.WaitMethod("notifications/tools/list_changed")
		equal(t, k.name+": afterwards", strings.Join(c.ToolNames(), " "), "one__crash one__grown")
		equal(t, k.name+": the new tool", c.CallTool("one__grown", "").Text(), "grown")
	}
}

// grows has another tool in each process that finds the file of its last argument.
var _ = testmcp.Register("grows", func(args []string) *testmcp.Server {
	s := &testmcp.Server{Name: "grows", Era: testmcp.Legacy}
	if args[0] == "modern" {
		s.Era = testmcp.Modern
	}
	s.Tools = []testmcp.Tool{testmcp.SimpleTool("crash", func(c *testmcp.Call) { c.Process().Crash() })}
	if _, err := os.Stat(args[1]); err == nil {
		s.Tools = append(s.Tools, testmcp.SimpleTool("grown", func(c *testmcp.Call) { c.Text("grown") }))
	}
	return s
})
