package door

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// rash reports progress under tokens that nobody has given, and goes on after the answer.
func rash(args []string) *testmcp.Server {
	s := server(args)
	s.Tools = append(s.Tools, testmcp.SimpleTool("rash", func(c *testmcp.Call) {
		c.Notify("notifications/progress", `{"progressToken":"invented","progress":1}`)
		c.Notify("notifications/progress", `{"progressToken":1,"progress":1}`)
		c.Notify("notifications/progress", `{"progress":1}`)
		c.Progress(1, 2, "mine")
		c.Text("x")
		c.Progress(2, 2, "late")
	}))
	return s
}

var _ = testmcp.Register("rash", rash)

// TestProgressThatBelongsToNobodyReachesNobody: a client sees progress under the token that it gave, in its own spelling,
// and nothing else; one that gave none sees none.
func TestProgressThatBelongsToNobodyReachesNobody(t *testing.T) {
	t.Parallel()
	servers := map[string]string{}
	for _, era := range []string{"legacy", "modern"} {
		servers["child-"+era] = testmcp.NewRecorder(t).Entry("rash", []string{era})
		servers["web-"+era] = testmcp.ServeHTTP(t, rash([]string{era}), testmcp.HTTPOptions{}).Entry()
	}
	p := start(t, "", servers)
	for _, e := range eras {
		c := p.Client(e.era)
		for name := range servers {
			for _, token := range []string{`"tok-1"`, `7`, `0`, `""`, ``} {
				t.Run(e.name+", "+name+", "+token, func(t *testing.T) {
					meta, want := "", 0
					if token != "" {
						meta, want = `,"_meta":{"progressToken":`+token+`}`, 1
					}
					a := c.Call("tools/call", `{"name":"`+name+`__rash","arguments":{}`+meta+`}`)
					wantText(t, a, "x")
					seen := messages(a.Before)
					if len(seen) != want {
						t.Errorf("the client sees %v", seen)
					}
					for _, m := range seen {
						if m.Params.At("message").Str() != "mine" || string(m.Params.At("progressToken")) != token {
							t.Errorf("the client sees %s", m.Raw)
						}
					}
				})
			}
		}
	}
	if n := dropped(p); n == 0 {
		t.Error("what was dropped is not counted")
	}
}

// astray is a server that reports progress of its calls on the standing stream of the session in place of the call's own,
// as many do.
func astray() *testmcp.Server {
	s := server([]string{"legacy"})
	s.Tools = append(s.Tools, testmcp.SimpleTool("astray", func(c *testmcp.Call) {
		for step := range 4 {
			c.Elsewhere(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":%q}}`, c.Token(), step+1, c.Args("text").Str()))
			if !c.Until(fmt.Sprint(c.Args("signal").Str(), step)) {
				return
			}
		}
		c.Text(c.Args("text").Str())
	}))
	return s
}

// TestProgressOnTheStandingStreamReachesItsCaller: the token says whose it is, though everybody shares the stream.
func TestProgressOnTheStandingStreamReachesItsCaller(t *testing.T) {
	t.Parallel()
	h := testmcp.ServeHTTP(t, astray(), testmcp.HTTPOptions{})
	p := start(t, "", map[string]string{"up": h.Entry()})
	h.Rec.Wait(t, func(r testmcp.Record) bool { return r.Kind == testmcp.Request && r.Text == "GET /mcp" })
	running := map[string]*testmcp.Stream{}
	for _, e := range eras {
		for _, n := range []string{"one", "two"} {
			text := e.name + " " + n
			running[text] = p.Client(e.era).Start("tools/call", `{"_meta":{"progressToken":1},"name":"up__astray","arguments":{"text":"`+text+`","signal":"go"}}`)
		}
	}
	for step := range 4 {
		for text, s := range running {
			s.WaitEvent(func(e testmcp.Event) bool {
				m := e.Message()
				return m.Params.At("message").Str() == text && m.Params.At("progress").Int() == step+1
			})
		}
		h.Rec.Signal(fmt.Sprint("go", step))
	}
	for text, s := range running {
		a := s.Final()
		wantText(t, a, text)
		seen := messages(a.Before)
		if len(seen) != 4 {
			t.Errorf("%s sees %d messages", text, len(seen))
		}
		for _, m := range seen {
			if m.Params.At("message").Str() != text || string(m.Params.At("progressToken")) != "1" {
				t.Errorf("%s sees %s", text, m.Raw)
			}
		}
	}
}

// TestProgressOnTheStandingStreamHoldsACallOpen also for clients that ask for none, once the server is known to report there.
func TestProgressOnTheStandingStreamHoldsACallOpen(t *testing.T) {
	t.Parallel()
	const silent = time.Second
	h := testmcp.ServeHTTP(t, astray(), testmcp.HTTPOptions{})
	p := start(t, "", map[string]string{"up": h.Entry(`"call_timeout":"1s"`)})
	h.Rec.Wait(t, func(r testmcp.Record) bool { return r.Kind == testmcp.Request && r.Text == "GET /mcp" })
	for step := range 4 {
		h.Rec.Signal(fmt.Sprint("quick", step))
	}
	for _, e := range eras {
		c := p.Client(e.era)
		wantText(t, c.CallTool("up__astray", `{"text":"x","signal":"quick"}`), "x")
		held := c.Begin("tools/call", testmcp.ToolParams("up__astray", fmt.Sprintf(`{"text":"x","signal":%q}`, e.name)))
		began := time.Now()
		for step := range 4 {
			<-time.After(silent / 2)
			h.Rec.Signal(fmt.Sprint(e.name, step))
		}
		wantText(t, held.Final(), "x")
		if took := time.Since(began); took < silent*3/2 {
			t.Errorf("the call took only %v", took)
		}
		h.ForgetSessions() // another one takes the place of the lost one as for any call
		wantText(t, c.CallTool("up__echo", `{"text":"in a new session"}`), "in a new session")
	}
	if n := h.Rec.Count(testmcp.Received("initialize")); n != 1+len(eras) {
		t.Errorf("%d sessions were opened", n)
	}
}
