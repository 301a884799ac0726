package agents

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// peer is an HTTP server that plays a model or an A2A agent.
type peer struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string // methods of JSON-RPC, or "chat"
	closed int      // requests whose client went before the answer
	open   int
}

// newPeer serves; a play that returns false waits for the end of its request.
func newPeer(t *testing.T, play func(w http.ResponseWriter, method string, input string) (done bool)) *peer {
	t.Helper()
	p := &peer{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var body struct {
			Method   string
			Messages []struct{ Content string }
			Params   struct {
				Message struct{ Parts []struct{ Text string } }
			}
		}
		_ = json.Unmarshal(b, &body)
		method, text := "chat", ""
		if body.Method != "" {
			method = body.Method
		}
		for _, m := range body.Messages {
			text = m.Content
		}
		for _, m := range body.Params.Message.Parts {
			text = m.Text
		}
		p.note(func() { p.asked = append(p.asked, method); p.open++ })
		defer p.note(func() { p.open-- })
		if !play(w, method, text) {
			<-r.Context().Done()
			p.note(func() { p.closed++ })
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *peer) note(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// saw waits until something is true of what the peer has seen.
func (p *peer) saw(t *testing.T, what string, is func() bool) {
	t.Helper()
	testmcp.Eventually(t, what, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return is()
	})
}

func stream(w http.ResponseWriter, datas ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, data := range datas {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
		w.(http.Flusher).Flush()
	}
}

func delta(text string) string {
	return `{"choices":[{"delta":{"content":` + testmcp.Quote(text) + `}}]}`
}

// model answers with the input in pieces; "hang" begins and never ends, "fail" refuses.
func model(w http.ResponseWriter, _, text string) bool {
	switch text {
	case "hang":
		stream(w, delta("well"))
		return false
	case "fail":
		http.Error(w, `{"error":{"message":"your key open-sesame is not valid"}}`, http.StatusUnauthorized)
	default:
		stream(w, delta("you said "), delta(text), `[DONE]`)
	}
	return true
}

// planner does the same as an A2A agent.
func planner(w http.ResponseWriter, method, text string) bool {
	task := func(state, text string) string {
		return `{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"t","status":{"state":"` + state + `"},"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":` + testmcp.Quote(text) + `}]}]}}`
	}
	switch {
	case method == "tasks/cancel":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, task("canceled", ""))
	case text == "hang":
		stream(w, task("working", "well"))
		return false
	case text == "fail":
		stream(w, task("failed", "your key open-sesame is not valid"))
	default:
		stream(w, task("completed", "you said "+text))
	}
	return true
}

var kinds = map[string]struct {
	play  func(w http.ResponseWriter, method, text string) bool
	entry string
}{
	"openai": {model, `{"kind": "openai", "description": "d", "model": "m", "auth_token": "open-sesame", "url": "%s/v1/chat/completions"%s}`},
	"a2a":    {planner, `{"kind": "a2a", "description": "d", "auth_token": "open-sesame", "url": "%s/a2a"%s}`},
}

func TestRemoteAgentsAreTools(t *testing.T) {
	for kind, k := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			remote := newPeer(t, k.play)
			p := start(t, agents{"far away": fmt.Sprintf(k.entry, remote.URL, "")}.config(settings))
			for name, era := range eras {
				t.Run(name, func(t *testing.T) {
					c := p.Client(era)
					wantText(t, c.CallTool("far_away", input("hello")), "you said hello", false)
					wantFault(t, c.CallTool("far_away", input("fail")), "agent run failed")
					if a := c.CallTool("far_away", `{}`); a.Code() != -32602 {
						t.Errorf("without input it answers %s", a.Raw)
					}
					s := c.Start("tools/call", `{"name":"far_away","arguments":{"input":"hang"},"_meta":{"progressToken":"p"}}`)
					if m := s.WaitMethod("notifications/progress"); m.Params.At("progressToken").Str() != "p" || m.Params.At("message").Str() != "well" {
						t.Errorf("the progress is %s", m.Raw)
					}
					c.Cancel(s)
				})
			}
			remote.saw(t, "the end of all requests", func() bool { return remote.open == 0 && remote.closed == 2 })
			if text := strings.Join(p.Log(), "\n") + string(p.Status()); strings.Contains(text, "open-sesame") {
				t.Error("a secret is in the log or the status")
			}
		})
	}
}

func TestTheRequestsOfARunEndWithIt(t *testing.T) {
	ways := map[string]func(t *testing.T, p *testmcp.Proxy, c *testmcp.Client, call *testmcp.Stream){
		"timeout": func(t *testing.T, _ *testmcp.Proxy, _ *testmcp.Client, call *testmcp.Stream) {
			wantFault(t, call.Final(), "agent run timed out after 1s")
		},
		"cancel":     func(_ *testing.T, _ *testmcp.Proxy, c *testmcp.Client, call *testmcp.Stream) { c.Cancel(call) },
		"disconnect": func(_ *testing.T, _ *testmcp.Proxy, _ *testmcp.Client, call *testmcp.Stream) { call.Close() },
		"shutdown":   func(_ *testing.T, p *testmcp.Proxy, _ *testmcp.Client, _ *testmcp.Stream) { p.Terminate() },
	}
	for kind, k := range kinds {
		for how, end := range ways {
			for name, era := range eras {
				t.Run(kind+" "+how+" "+name, func(t *testing.T) {
					t.Parallel()
					remote := newPeer(t, k.play)
					timeout := `, "timeout": "10m"`
					if how == "timeout" {
						timeout = `, "timeout": "1s"`
					}
					p := start(t, agents{"a": fmt.Sprintf(k.entry, remote.URL, timeout)}.config(settings))
					c := p.Client(era)
					call := c.Start("tools/call", testmcp.ToolParams("a", input("hang")))
					remote.saw(t, "the request", func() bool { return remote.open == 1 })
					end(t, p, c, call)
					if how == "shutdown" {
						if code := p.WaitExit(); code != 0 {
							t.Errorf("the program exits with %d", code)
						}
					}
					remote.saw(t, "the end of the request", func() bool { return remote.closed == 1 })
					if kind == "a2a" {
						remote.saw(t, "the cancel of the task", func() bool { return remote.asked[len(remote.asked)-1] == "tasks/cancel" })
					}
				})
			}
		}
	}
}
