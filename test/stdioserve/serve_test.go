package stdioserve

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestListAndCall(t *testing.T) {
	everyWay(t, func(t *testing.T, s stage) {
		names := map[string]bool{}
		for _, tool := range s.Call("tools/list", "").Result().At("tools").Items() {
			names[tool.At("name").Str()] = true
		}
		if !names["one__echo"] || !names["one__wait"] {
			t.Errorf("listed are %v", names)
		}
		wantText(t, "a call", s.CallTool("one__echo", `{"text":"häl\nlo"}`), "häl\nlo")
		if got := s.CallTool("one__nothing", ""); got.Err().At("code").Int() != -32602 {
			t.Errorf("an unknown tool is answered with %s", got.Raw)
		}
		big := s.CallTool("one__big", `{"bytes":300000}`)
		if n := len(text(big)); n != 300_000 {
			t.Errorf("a large answer has %d bytes", n)
		}
		s.leaves(t)
	})
}

func TestCancel(t *testing.T) {
	everyWay(t, func(t *testing.T, s stage) {
		id := s.Start("tools/call", testmcp.ToolParams("one__wait", `{"signal":"never"}`))
		s.rec.Wait(t, testmcp.CalledTool("wait"))
		s.Notify("notifications/cancelled", `{"requestId":`+id+`}`)
		s.rec.Wait(t, testmcp.Is(testmcp.Cancel))
		wantText(t, "the next call", s.CallTool("one__echo", `{"text":"on"}`), "on")
		silent(t, s.PipeClient, id)
		s.leaves(t)
	})
}

func TestProgressComesBeforeTheAnswer(t *testing.T) {
	everyWay(t, func(t *testing.T, s stage) {
		id := s.Start("tools/call", `{"name":"one__progress","arguments":{"steps":3},"_meta":{"progressToken":"tok"}}`)
		s.Final(id)
		var seen []string
		for _, m := range s.Lines() {
			switch {
			case m.Method == "notifications/progress":
				if m.Params.At("progressToken").Str() != "tok" {
					t.Errorf("progress of another token: %s", m.Raw)
				}
				seen = append(seen, m.Params.At("progress").String())
			case string(m.ID) == id:
				seen = append(seen, "answer")
			}
		}
		// Steps that come faster than they are taken may be merged; the order holds.
		if last := len(seen) - 1; last < 1 || seen[last] != "answer" || seen[last-1] != "3" {
			t.Errorf("progress and answer came as %v", seen)
		}
		s.leaves(t)
	})
}

func TestListChanged(t *testing.T) {
	const changed = "notifications/tools/list_changed"
	for _, w := range ways {
		rec := testmcp.NewRecorder(t)
		t.Run(w.name+", old client", func(t *testing.T) {
			c := w.open(t, testmcp.Legacy, one(rec, "")).Open()
			c.CallTool("one__change", "")
			c.Wait("announcement", method(changed))
			leaves(t, c)
		})
		t.Run(w.name+", new client", func(t *testing.T) {
			c := w.open(t, testmcp.Modern, one(testmcp.NewRecorder(t), "")).Open()
			c.Call("tools/list", "")
			first := c.Start("subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`)
			of := func(id string) func(testmcp.Message) bool {
				return func(m testmcp.Message) bool {
					return m.Method == changed && m.Params.At("_meta", "io.modelcontextprotocol/subscriptionId").String() == id
				}
			}
			ack := c.Wait("acknowledgement", method("notifications/subscriptions/acknowledged"))
			if ack.Params.At("notifications").String() != `{"toolsListChanged":true}` {
				t.Errorf("acknowledged is %s", ack.Raw)
			}
			c.CallTool("one__change", "")
			c.Wait("tagged announcement", of(first))
			c.Notify("notifications/cancelled", `{"requestId":`+first+`}`)
			second := c.Start("subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`)
			c.Wait("second acknowledgement", func(m testmcp.Message) bool {
				return m.Method == "notifications/subscriptions/acknowledged" && m.Params.At("_meta", "io.modelcontextprotocol/subscriptionId").String() == second
			})
			c.CallTool("one__change", "")
			c.Wait("announcement of the second", of(second))
			silent(t, c, first)
			leaves(t, c)
		})
	}
}

func TestEqualLookingIDsAreDifferent(t *testing.T) {
	everyWay(t, func(t *testing.T, s stage) {
		h := testmcp.Client{Era: s.era, Version: s.Version, Capabilities: "{}"}
		for _, id := range []string{`1000`, `"1000"`} {
			signal := "number"
			if strings.HasPrefix(id, `"`) {
				signal = "text"
			}
			s.Write(h.Body(id, "tools/call", testmcp.ToolParams("one__wait", `{"signal":"`+signal+`"}`)) + "\n")
		}
		s.rec.WaitN(t, 2, testmcp.CalledTool("wait"))
		s.Notify("notifications/cancelled", `{"requestId":"1000"}`)
		s.rec.Wait(t, testmcp.Is(testmcp.Cancel))
		s.rec.Signal("number")
		wantText(t, "the call with the number", s.Final(`1000`), "waited")
		silent(t, s.PipeClient, `"1000"`)
		s.leaves(t)
	})
}

func TestManyCallsAtOnce(t *testing.T) {
	everyWay(t, func(t *testing.T, s stage) {
		const n = 50
		first := s.Start("tools/call", testmcp.ToolParams("one__wait", `{"signal":"go"}`))
		var ids []string
		for i := range n {
			ids = append(ids, s.Start("tools/call", testmcp.ToolParams("one__echo", fmt.Sprintf(`{"text":"%d"}`, i))))
		}
		for i, id := range ids {
			wantText(t, "a call beside others", s.Final(id), fmt.Sprint(i))
		}
		s.rec.Signal("go") // the first is answered last
		wantText(t, "the first call", s.Final(first), "waited")
		s.leaves(t)
	})
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	everyWay(t, func(t *testing.T, s stage) {
		s.Write("\n \t\r\n\ufeff\nthis is no message\n")
		s.Wait("error without an id", func(m testmcp.Message) bool {
			return string(m.ID) == "null" && m.Err().At("code").Int() == -32700
		})
		s.Write(`{"jsonrpc":"2.0","id":"odd","method":7}` + "\n")
		if m := s.Final(`"odd"`); m.Err().At("code").Int() != -32600 {
			t.Errorf("a method that is no string is answered with %s", m.Raw)
		}
		h := testmcp.Client{Era: s.era, Version: s.Version, Capabilities: "{}"}
		s.Write("\ufeff" + h.Body("800", "tools/call", testmcp.ToolParams("one__echo", `{"text":"after a mark"}`)) + "\r\n")
		wantText(t, "a call after a byte order mark", s.Final("800"), "after a mark")
		errors := 0
		for _, m := range s.Lines() {
			if string(m.ID) == "null" {
				errors++
			}
		}
		if errors != 1 {
			t.Errorf("%d errors without an id, want one: blank lines are no messages", errors)
		}
		s.leaves(t)
	})
}

func TestMessagesOverTheBound(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			c := w.open(t, testmcp.Legacy, one(testmcp.NewRecorder(t), `{"limits":{"max_body_bytes":10000}}`)).Open()
			id := c.Start("tools/call", testmcp.ToolParams("one__echo", `{"text":"`+strings.Repeat("x", 20_000)+`"}`))
			c.Wait("refusal", func(m testmcp.Message) bool {
				return (string(m.ID) == "null" || string(m.ID) == id) && strings.Contains(m.Err().At("message").Str(), "max_body_bytes")
			})
			wantText(t, "the next call", c.CallTool("one__echo", `{"text":"on"}`), "on")
			leaves(t, c)
		})
	}
}

func TestTheEndOfStdinEndsWhatRuns(t *testing.T) {
	everyWay(t, func(t *testing.T, s stage) {
		id := s.Start("tools/call", testmcp.ToolParams("one__hang", ""))
		s.rec.Wait(t, testmcp.CalledTool("hang"))
		s.leaves(t)
		if s.way == "bridge" { // the server lives on
			s.rec.Wait(t, testmcp.Is(testmcp.Cancel))
		}
		silent(t, s.PipeClient, id)
	})
}

func TestTerminate(t *testing.T) {
	everyWay(t, func(t *testing.T, s stage) {
		s.Start("tools/call", testmcp.ToolParams("one__hang", ""))
		s.rec.Wait(t, testmcp.CalledTool("hang"))
		if err := syscall.Kill(s.PID(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		testmcp.Eventually(t, "end of the program", func() bool { _, err := s.ExitCode(); return err == nil })
		if code, _ := s.ExitCode(); code != 0 {
			t.Errorf("exit code %d after SIGTERM; stderr: %s", code, s.Stderr())
		}
		if s.way == "own servers" {
			s.rec.WaitGone(t)
		}
	})
}

func TestBatch(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			c := w.open(t, testmcp.Legacy, one(testmcp.NewRecorder(t), ""))
			c.Version = testmcp.Rev2503
			c.Open()
			c.Write(`[{"jsonrpc":"2.0","id":700,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/none"},` +
				`{"jsonrpc":"2.0","id":"700","method":"tools/call","params":{"name":"one__echo","arguments":{"text":"in a batch"}}}]` + "\n")
			m := c.Wait("answer to a batch", func(m testmcp.Message) bool { return len(m.Raw.Items()) > 0 })
			if n := len(m.Raw.Items()); n != 2 || !strings.Contains(m.Raw.String(), "in a batch") {
				t.Errorf("a batch of two requests is answered with %s", m.Raw)
			}
			leaves(t, c)
		})
	}
}

func TestEachMessageTellsItsEra(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			c := w.open(t, testmcp.Legacy, one(testmcp.NewRecorder(t), "")).Open()
			modern := testmcp.Client{Era: testmcp.Modern, Version: testmcp.Rev2607, Capabilities: "{}"}
			ask := func(id, method, params string) testmcp.Message {
				c.Write(modern.Body(id, method, params) + "\n")
				return c.Final(id)
			}
			if m := ask(`"d"`, "server/discover", ""); m.Result().At("resultType").Str() != "complete" {
				t.Errorf("server/discover among legacy messages: %s", m.Raw)
			}
			if m := ask(`"c"`, "tools/call", testmcp.ToolParams("one__echo", `{"text":"x"}`)); m.Result().At("resultType").Str() != "complete" {
				t.Errorf("a modern call: %s", m.Raw)
			}
			if m := c.CallTool("one__echo", `{"text":"x"}`); m.Result() == nil || m.Result().Has("resultType") {
				t.Errorf("a legacy call: %s", m.Raw)
			}
			modern.Version = "2999-01-01"
			if m := ask(`"v"`, "tools/list", ""); m.Err().At("code").Int() != -32022 || len(m.Err().At("data", "supported").Items()) == 0 {
				t.Errorf("a revision from the future: %s", m.Raw)
			}
			c.Write(`{"jsonrpc":"2.0","id":"m","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}` + "\n")
			if m := c.Final(`"m"`); m.Err().At("code").Int() != -32602 {
				t.Errorf("without capabilities: %s", m.Raw)
			}
			leaves(t, c)
		})
	}
}

func TestAServerAsksTheClient(t *testing.T) {
	for _, w := range ways {
		for _, protocol := range []string{"legacy", "modern"} {
			t.Run(w.name+", "+protocol+" server", func(t *testing.T) {
				config := testmcp.Config("", map[string]string{"one": testmcp.NewRecorder(t).Entry("basic", nil, `"protocol":"`+protocol+`"`)})
				c := w.open(t, testmcp.Legacy, config)
				c.Capabilities = `{"elicitation":{}}`
				c.Answers["elicitation/create"] = func(testmcp.Raw) string {
					return `{"action":"accept","content":{"which":"this"}}`
				}
				c.Open()
				if m := c.CallTool("one__elicit", ""); !strings.Contains(text(m), "this") {
					t.Errorf("a call that asks is answered with %s", m.Raw)
				}
				modern := testmcp.Client{Era: testmcp.Modern, Version: testmcp.Rev2607, Capabilities: c.Capabilities}
				call := func(id, params string) testmcp.Message {
					c.Write(modern.Body(id, "tools/call", params) + "\n")
					return c.Final(id)
				}
				asked := call(`"asks"`, testmcp.ToolParams("one__elicit", "")).Result()
				keys := asked.At("inputRequests").Keys()
				if asked.At("resultType").Str() != "input_required" || len(keys) != 1 {
					t.Fatalf("a modern call that asks is answered with %s", asked)
				}
				m := call(`"back"`, strings.TrimSuffix(testmcp.ToolParams("one__elicit", ""), "}")+`,"requestState":`+asked.At("requestState").String()+
					`,"inputResponses":{`+testmcp.Quote(keys[0])+`:{"action":"accept","content":{"which":"that"}}}}`)
				if !strings.Contains(text(m), "that") {
					t.Errorf("the call of a client that comes back is answered with %s", m.Raw)
				}
				leaves(t, c)
			})
		}
	}
}
