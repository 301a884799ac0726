package tasks

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// twoTokens lets two principals in.
const twoTokens = `{"auth":{"mode":"tokens","tokens":[{"name":"ann","token":"token-of-ann"},{"name":"bob","token":"token-of-bob"}]}}`

// as makes a client of a principal that knows tasks.
func (s stage) as(t *testing.T, era testmcp.Era, who string) *testmcp.Client {
	t.Helper()
	c := testmcp.NewClient(t, s.URL, era)
	c.Capabilities = knowsTasks
	c.Header.Set("Authorization", "Bearer token-of-"+who)
	c.Answers["elicitation/create"] = func(testmcp.Raw) string { return `{"action":"accept","content":{"who":"Ann"}}` }
	return c.Open()
}

// begun starts a task and gives its id.
func begun(t *testing.T, c *testmcp.Client, tool string) string {
	t.Helper()
	params := testmcp.ToolParams(tool, "")
	if c.Era == testmcp.Legacy {
		params = strings.TrimSuffix(params, "}") + `,"task":{"ttl":60000}}`
	}
	a := c.Call("tools/call", params)
	task := a.Result()
	if c.Era == testmcp.Legacy {
		task = task.At("task")
	}
	id := task.At("taskId").Str()
	if !strings.HasPrefix(id, sealedPrefix) || task.At("status").Str() != "working" {
		t.Fatalf("no task: %s", a.Raw)
	}
	return id
}

func about(id string) string { return `{"taskId":` + testmcp.Quote(id) + `}` }

// finished asks until a task has ended, and gives the answer.
func finished(t *testing.T, c *testmcp.Client, id string) (last testmcp.Answer) {
	t.Helper()
	testmcp.Eventually(t, "end of the task", func() bool {
		last = c.Call("tasks/get", about(id))
		status := last.Result().At("status").Str()
		return status != "working"
	})
	return last
}

func TestATaskIsRelayedBetweenPeersOfOneEra(t *testing.T) {
	t.Parallel()
	s := startAll(t, twoTokens)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			c := s.as(t, k.era, "ann")
			id := begun(t, c, k.tool("slow"))
			got := finished(t, c, id)
			if got.Result().At("taskId").Str() != id || got.Result().At("status").Str() != "completed" {
				t.Errorf("tasks/get: %s", got.Raw)
			}
			const content = `"content":[{"type":"text","text":"done "}], "x":12345678901234567890 }`
			if k.era == testmcp.Modern {
				if !strings.Contains(string(got.Raw), `"result":{`+content) {
					t.Errorf("the result is not the server's: %s", got.Raw)
				}
				return
			}
			result := c.Call("tasks/result", about(id))
			want := `{"_meta":{"` + relatedTask + `":{"taskId":"` + id + `"}},` + content
			if string(result.Result()) != want {
				t.Errorf("tasks/result: %s, want %s", result.Result(), want)
			}
		})
	}
}

// The ids of all servers here are 1, 2 and so on: each id leads to the server that made it, for the principal that it was
// made for, and nobody else learns that there is such a task.
func TestATaskBelongsToItsPrincipalAndServer(t *testing.T) {
	t.Parallel()
	s := startAll(t, twoTokens)
	for _, e := range eras {
		ann, bob := s.as(t, e.era, "ann"), s.as(t, e.era, "bob")
		ids := map[string]string{}
		for _, k := range kinds {
			if k.era == e.era {
				ids[k.name] = begun(t, ann, k.tool("forever"))
			}
		}
		methods := []string{"tasks/get", "tasks/result", "tasks/cancel"}
		if e.era == testmcp.Modern {
			methods = []string{"tasks/get", "tasks/update", "tasks/cancel"}
		}
		for name, id := range ids {
			for _, method := range methods {
				for who, foreign := range map[string]string{"another principal": id, "a server's own id": "1", "a changed id": id[:len(id)-4] + "AAAA", "nonsense": sealedPrefix + "!"} {
					a := bob.Call(method, about(foreign))
					if a.Code() != -32602 || a.Err().At("message").Str() != "unknown task: "+foreign {
						t.Errorf("%s of %s by %s: %s", method, name, who, a.Raw)
					}
				}
			}
			elsewhere := testmcp.NewClient(t, s.Server(name), e.era)
			elsewhere.Capabilities, elsewhere.Header = knowsTasks, ann.Header
			if a := elsewhere.Open().Call("tasks/get", about(id)); a.Code() != -32602 {
				t.Errorf("%s at another endpoint: %s", name, a.Raw)
			}
		}
		for name, id := range ids {
			before := s.recs[name].Count(testmcp.Received("tasks/cancel"))
			if a := ann.Call("tasks/cancel", about(id)); a.Result() == nil {
				t.Errorf("tasks/cancel: %s", a.Raw)
			} else if e.era == testmcp.Legacy && (a.Result().At("taskId").Str() != id || a.Result().At("status").Str() != "cancelled") {
				t.Errorf("tasks/cancel: %s", a.Raw)
			}
			s.recs[name].WaitN(t, before+1, testmcp.Received("tasks/cancel"))
			if n := s.recs[name].Count(testmcp.Received("tasks/cancel")); n != 1 {
				t.Errorf("%s heard of %d cancels", name, n)
			}
			if a := ann.Call("tasks/get", about(id)); a.Result().At("status").Str() != "cancelled" {
				t.Errorf("%s: %s", name, a.Raw)
			}
		}
	}
}

// What a server behind HTTP keeps is found again after a restart of the proxy. What a process kept has ended with it, and
// the id must not lead to a task of the process that came after it.
func TestATaskOutlivesARestartOfTheProxyWhereItsServerDoes(t *testing.T) {
	t.Parallel()
	s := startAll(t, twoTokens)
	ids := map[string]string{}
	for _, k := range kinds {
		ids[k.name] = begun(t, s.as(t, k.era, "ann"), k.tool("forever"))
	}
	s.Restart()
	for _, k := range kinds {
		c := s.as(t, k.era, "ann")
		begun(t, c, k.tool("forever")) // again the first one of its process
		a := c.Call("tasks/get", about(ids[k.name]))
		if k.web && a.Result().At("taskId").Str() != ids[k.name] || !k.web && a.Code() != -32602 {
			t.Errorf("%s: %s", k.name, a.Raw)
		}
	}
}

func TestWhatATaskNeedsIsAskedOfItsClient(t *testing.T) {
	t.Parallel()
	s := startAll(t, twoTokens)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			c := s.as(t, k.era, "ann")
			others := begun(t, c, k.tool("forever"))
			if k.era == testmcp.Legacy {
				// A call beside it, so that only the name of the task tells whom the server asks.
				held := c.Begin("tasks/result", about(others))
				defer c.CancelID(held.ID)
				s.recs[k.name].Wait(t, testmcp.Received("tasks/result"))
			}
			id := begun(t, c, k.tool("needs"))
			got := finished(t, c, id)
			if got.Result().At("status").Str() != "input_required" {
				t.Fatalf("tasks/get: %s", got.Raw)
			}
			if k.era == testmcp.Modern {
				key := got.Result().At("inputRequests", "who", "method").Str()
				a := c.Call("tasks/update", `{"taskId":`+testmcp.Quote(id)+`,"inputResponses":{"who":{"action":"accept","content":{"who":"Ann"}}}}`)
				if key != "elicitation/create" || a.Result() == nil {
					t.Fatalf("%s, %s", key, a.Raw)
				}
				if got := finished(t, c, id); got.Result().At("result", "content", 0, "text").Str() != `done "Ann"` {
					t.Errorf("tasks/get: %s", got.Raw)
				}
				return
			}
			if text := c.Call("tasks/result", about(id)).Text(); text != `done "Ann"` {
				t.Errorf("tasks/result gave %q", text)
			}
			asked := c.Asked()
			if len(asked) != 1 || asked[0].Params.At("_meta", relatedTask, "taskId").Str() != id {
				t.Errorf("the client was asked %v", asked)
			}
		})
	}
}

func TestOnlyWhoKnowsTasksIsShownOne(t *testing.T) {
	t.Parallel()
	s := startAll(t, "")
	for _, k := range kinds {
		for _, e := range eras {
			c := s.client(t, e.era, knowsTasks)
			a := c.CallTool(k.tool("slow"), "")
			shown := strings.Contains(string(a.Raw), sealedPrefix)
			if want := e.era == testmcp.Modern && k.era == testmcp.Modern; shown != want {
				t.Errorf("%s of %s: %s", e.name, k.name, a.Raw)
			}
			if !shown && a.Text() != "done " {
				t.Errorf("%s of %s: %s", e.name, k.name, a.Raw)
			}
		}
	}
	legacy := s.client(t, testmcp.Legacy, "{}")
	if a := legacy.Call("tools/call", `{"name":"pipe-new__slow","arguments":{},"task":{}}`); a.Code() != -32601 {
		t.Errorf("a tool of a modern server as a task: %s", a.Raw)
	}
	modern := s.client(t, testmcp.Modern, "{}")
	id := begun(t, s.client(t, testmcp.Modern, knowsTasks), "web-new__forever")
	a := modern.Call("tasks/get", about(id))
	if a.Status != 400 || a.Code() != -32021 || !a.Err().At("data", "requiredCapabilities", "extensions").Has(extension) {
		t.Errorf("HTTP %d %s", a.Status, a.Raw)
	}
	for _, m := range []string{"tasks/list", "tasks/update"} {
		if a := legacy.Call(m, about(id)); a.Code() != -32601 {
			t.Errorf("%s: %s", m, a.Raw)
		}
	}
}

func TestTasksAreDeclaredWhereAServerRunsThem(t *testing.T) {
	t.Parallel()
	s := startAll(t, "")
	for _, k := range kinds {
		legacy := testmcp.Connect(t, s.Server(k.name), testmcp.Legacy).Opened.Result().At("capabilities")
		modern := testmcp.Connect(t, s.Server(k.name), testmcp.Modern).Call("server/discover", "{}").Result().At("capabilities")
		if legacy.Has("tasks") != (k.era == testmcp.Legacy) || modern.Has("extensions", extension) != (k.era == testmcp.Modern) {
			t.Errorf("%s: %s and %s", k.name, legacy, modern)
		}
	}
	legacy := s.client(t, testmcp.Legacy, "{}").Opened.Result().At("capabilities")
	if string(legacy.At("tasks")) != `{"cancel":{},"requests":{"tools":{"call":{}}}}` {
		t.Errorf("the aggregate declares %s", legacy)
	}
	if modern := s.client(t, testmcp.Modern, "{}").Call("server/discover", "{}").Result().At("capabilities"); !modern.Has("extensions", extension) || modern.Has("tasks") {
		t.Errorf("the aggregate declares %s", modern)
	}
}

// A client that starts the proxy itself is shown its tasks as any other, between peers of one era.
func TestATaskIsRelayedOverPipes(t *testing.T) {
	t.Parallel()
	for _, e := range eras {
		word := map[testmcp.Era]string{testmcp.Legacy: "legacy", testmcp.Modern: "modern"}[e.era]
		c := testmcp.StartStdio(t, e.era, testmcp.Config("", map[string]string{"one": testmcp.NewRecorder(t).Entry("tasks", []string{word})}))
		c.Capabilities = knowsTasks
		c.Open()
		params := testmcp.ToolParams("one__slow", "")
		if e.era == testmcp.Legacy {
			params = strings.TrimSuffix(params, "}") + `,"task":{"ttl":60000}}`
		}
		task := c.Call("tools/call", params).Result()
		if e.era == testmcp.Legacy {
			task = task.At("task")
		}
		id := task.At("taskId").Str()
		if !strings.HasPrefix(id, sealedPrefix) {
			t.Fatalf("%s: no task: %s", e.name, task)
		}
		var last testmcp.Message
		testmcp.Eventually(t, "end of the task", func() bool {
			last = c.Call("tasks/get", about(id))
			return last.Result().At("status").Str() != "working"
		})
		result := last.Result().At("result")
		if e.era == testmcp.Legacy {
			result = c.Call("tasks/result", about(id)).Result()
		}
		if last.Result().At("status").Str() != "completed" || result.At("content", 0, "text").Str() != "done " {
			t.Errorf("%s: tasks/get %s, the result %s", e.name, last.Raw, result)
		}
		for _, foreign := range []string{"1", id[:len(id)-4] + "AAAA"} {
			if m := c.Call("tasks/get", about(foreign)); m.Err().At("code").Int() != -32602 {
				t.Errorf("%s: the id %s gives %s", e.name, foreign, m.Raw)
			}
		}
	}
}
