package proxy

import (
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

const (
	legacyTaskCaps = `{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}`
	modernTaskCaps = `{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	taskTool       = `{"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`
)

// taskServer is a server that answers by method, each time with the next of its answers; the last one stays.
func taskServer(era wire.Era, answers map[string][]string) *server {
	caps := legacyTaskCaps
	if era == wire.Modern {
		caps = modernTaskCaps
	}
	var mu sync.Mutex
	s := &server{id: "up", era: era, caps: caps}
	s.on = func(f *wire.Frame, _ io.Writer) (string, bool) {
		mu.Lock()
		defer mu.Unlock()
		list := answers[f.Method]
		if len(list) == 0 {
			return "", false
		}
		if len(list) > 1 {
			answers[f.Method] = list[1:]
		}
		return list[0], true
	}
	return s.set(Tool, taskTool)
}

func withTaskSettings(c *config.Server) {
	c.Tasks = config.Tasks{Enabled: true, PollInterval: time.Second, Timeout: 10 * time.Minute}
}

var (
	ownID  = regexp.MustCompile(`("id"|"progressToken"|"requestId"):[0-9]+`)
	sealed = regexp.MustCompile(`mcp-proxy-task\.[A-Za-z0-9_-]+`)
)

func plain(frame string) string {
	return sealed.ReplaceAllString(ownID.ReplaceAllString(frame, "$1:ID"), "TASK")
}

// afterHandshake are the frames that a server was sent for calls.
func (s *server) afterHandshake() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, raw := range s.seen {
		if strings.Contains(raw, `"tools/call"`) || strings.Contains(raw, `"tasks/`) {
			out = append(out, plain(raw))
		}
	}
	return out
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

const plainCall = `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"up__t","arguments":{"a":1}}}`

func modernCall(caps, more string) string {
	return `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` +
		caps + `},"name":"up__t"` + more + `}}`
}

// What goes over the wire when a legacy server's task is followed for a client that asked for none.
func TestALegacyTaskIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := taskServer(wire.Legacy, map[string][]string{
			"tools/call":   {`"result":{"task":{"taskId":"1","status":"working","ttl":1,"pollInterval":3000}}`},
			"tasks/get":    {`"result":{"taskId":"1","status":"working"}`, `"result":{"taskId":"1","status":"completed"}`},
			"tasks/result": {`"result":{"content":[ ],"_meta":{"a":1,"io.modelcontextprotocol/related-task":{"taskId":"1"}},"n":12345678901234567890}`},
		})
		st := newStage(t, Options{}, withTaskSettings, s)
		defer st.stop()
		st.listed(ViewAll, Tool) // the lists are there
		began := time.Now()
		got := st.text(legacyCaller(), plainCall)
		if want := `{"jsonrpc":"2.0","id":"c","result":{"content":[ ],"_meta":{"a":1},"n":12345678901234567890}}`; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		// 3 s as the server wishes, then 1 s as it is configured.
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("it took %v", took)
		}
		same(t, "the server got", s.afterHandshake(), []string{
			`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"_meta":{"progressToken":ID},"task":{"ttl":600000},"name":"t","arguments":{"a":1}}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tasks/get","params":{"taskId":"1"}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tasks/get","params":{"taskId":"1"}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tasks/result","params":{"taskId":"1"}}`,
		})
	})
}

// A modern server is first asked without the extension: it may answer at once. What it insists on is then declared.
func TestAModernTaskIsFollowed(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"mcp-proxy","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	synctest.Test(t, func(t *testing.T) {
		s := taskServer(wire.Modern, map[string][]string{
			"tools/call": {`"error":{"code":-32021,"message":"no","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`,
				`"result":{"resultType":"task","taskId":"1","status":"working","pollIntervalMs":50}`},
			"tasks/get": {`"result":{"resultType":"complete","taskId":"1","status":"completed","result":{"content":[ ],"n":12345678901234567890}}`},
		})
		st := newStage(t, Options{}, withTaskSettings, s)
		defer st.stop()
		synctest.Wait()
		got := st.text(modernCaller(), modernCall("{}", ""))
		if want := `{"jsonrpc":"2.0","id":"c","result":{"resultType":"complete","content":[ ],"n":12345678901234567890}}`; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		const call = `{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"_meta":{"progressToken":ID,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":CAPS},"name":"t"}}`
		same(t, "the server got", s.afterHandshake(), []string{
			strings.Replace(call, "CAPS", "{}", 1),
			strings.Replace(call, "CAPS", `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, 1),
			`{"jsonrpc":"2.0","id":ID,"method":"tasks/get","params":{"taskId":"1",` + meta + `}}`,
		})
	})
}

// How a modern task may end, as a legacy client sees it.
func TestEndsOfAModernTask(t *testing.T) {
	for name, c := range map[string]struct{ get, want string }{
		"a failure":      {`"status":"failed","error":{"code":-5,"message":"m", "data":[1.0]}`, `"error":{"code":-5,"message":"m", "data":[1.0]}`},
		"a tool's error": {`"status":"completed","result":{"isError":true,"content":[]}`, `"result":{"isError":true,"content":[]}`},
		"cancelled":      {`"status":"cancelled","statusMessage":"by hand"`, `"error":{"code":-32603,"message":"up::t: the server has cancelled the task: by hand"}`},
		"no result":      {`"status":"completed"`, `"error":{"code":-32603,"message":"up::t: the server says that the task has ended, and does not say with what"}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := taskServer(wire.Modern, map[string][]string{
				"tools/call": {`"result":{"resultType":"task","taskId":"1","status":"working"}`},
				"tasks/get":  {`"result":{"resultType":"complete","taskId":"1",` + c.get + `}`},
			})
			st := newStage(t, Options{}, withTaskSettings, s)
			defer st.stop()
			synctest.Wait()
			if got, want := st.text(legacyCaller(), plainCall), `{"jsonrpc":"2.0","id":"c",`+c.want+`}`; got != want {
				t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
			}
			synctest.Wait()
			if n := len(s.received("tasks/cancel")); n != 0 {
				t.Errorf("%s: the task was cancelled %d times", name, n)
			}
		})
	}
}

func TestATaskThatIsNotDoneInTimeIsCancelled(t *testing.T) {
	for setting, c := range map[string]struct {
		change func(*config.Tasks)
		took   time.Duration
	}{
		"tasks.timeout":      {func(c *config.Tasks) { c.Timeout = 90*time.Second + 1 }, 90*time.Second + 1}, // not at the moment of a poll
		"tasks.max_attempts": {func(c *config.Tasks) { c.MaxAttempts = 7 }, 7 * time.Second},
	} {
		for _, era := range []wire.Era{wire.Legacy, wire.Modern} {
			synctest.Test(t, func(t *testing.T) {
				s := taskServer(era, map[string][]string{
					"tools/call":   {map[wire.Era]string{wire.Legacy: `"result":{"task":{"taskId":"1","status":"working"}}`, wire.Modern: `"result":{"resultType":"task","taskId":"1","status":"working"}`}[era]},
					"tasks/get":    {`"result":{"taskId":"1","status":"working"}`},
					"tasks/cancel": {`"result":{}`},
				})
				st := newStage(t, Options{}, func(cfg *config.Server) {
					withTaskSettings(cfg)
					cfg.CallTimeout = 500 * time.Millisecond // waiting for a task is not silence
					c.change(&cfg.Tasks)
				}, s)
				defer st.stop()
				st.listed(ViewAll, Tool) // the lists are there
				began := time.Now()
				got := st.text(legacyCaller(), plainCall)
				if took := time.Since(began); took != c.took || !strings.Contains(got, setting) || !strings.Contains(got, `"reason":"timeout"`) {
					t.Errorf("%s, %s: after %v %s", setting, era, took, got)
				}
				synctest.Wait()
				if n := len(s.received("tasks/cancel")); n != 1 {
					t.Errorf("%s, %s: the task was cancelled %d times", setting, era, n)
				}
				if n := len(s.received("notifications/cancelled")); n != 0 {
					t.Errorf("%s, %s: a request that is answered was cancelled", setting, era)
				}
			})
		}
	}
}

// A task under an id of ours: what both sides see.
func TestARelayedTaskOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := taskServer(wire.Legacy, map[string][]string{
			"tools/call":   {`"result":{"task":{"taskId":"1","status":"working"},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}}`},
			"tasks/get":    {`"result":{"taskId":"1", "status":"working"}`},
			"tasks/result": {`"result":{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}}`},
			"tasks/cancel": {`"error":{"code":-32602,"message":"it has ended"}`},
		})
		st := newStage(t, Options{}, withTaskSettings, s)
		defer st.stop()
		synctest.Wait()
		made := st.text(legacyCaller(), `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"up__t","task":{"ttl":5}}}`)
		id := sealed.FindString(made)
		got := []string{plain(made)}
		for _, m := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			answer := st.text(legacyCaller(), `{"jsonrpc":"2.0","id":"c","method":"`+m+`","params":{"taskId":"`+id+`","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"`+id+`"}}}}`)
			if found := sealed.FindString(answer); found != "" && found != id {
				t.Errorf("%s names the task %s, made as %s", m, found, id)
			}
			got = append(got, plain(answer))
		}
		same(t, "the client got", got, []string{
			`{"jsonrpc":"2.0","id":"c","result":{"task":{"taskId":"TASK","status":"working"},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"TASK"}}}}`,
			`{"jsonrpc":"2.0","id":"c","result":{"taskId":"TASK", "status":"working"}}`,
			`{"jsonrpc":"2.0","id":"c","result":{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"TASK"}}}}`,
			`{"jsonrpc":"2.0","id":"c","error":{"code":-32602,"message":"it has ended"}}`,
		})
		const related = `{"taskId":"1","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}}}`
		same(t, "the server got", s.afterHandshake(), []string{
			`{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"_meta":{"progressToken":ID},"name":"t","task":{"ttl":5}}}`,
			`{"jsonrpc":"2.0","id":ID,"method":"tasks/get","params":` + related,
			`{"jsonrpc":"2.0","id":ID,"method":"tasks/result","params":` + related,
			`{"jsonrpc":"2.0","id":ID,"method":"tasks/cancel","params":` + related,
		})
		if metricOf(t, st.reg, "mcp_proxy_requests_total", "upstream", "up", "method", "tasks/get", "outcome", "ok") != 1 {
			t.Error("the request about the task is not counted")
		}
	})
}

// What a modern client declares is what the server hears, but for what the server does not know or the client cannot do.
func TestTheExtensionIsDeclaredWhereItIsKnown(t *testing.T) {
	const tasks = `"io.modelcontextprotocol/tasks":{}`
	for _, c := range []struct{ name, serverCaps, caps, want string }{
		{"both know it", modernTaskCaps, `{"extensions":{` + tasks + `}}`, `{"extensions":{` + tasks + `}}`},
		{"the server does not", allCaps, `{"extensions":{"x/y":{},` + tasks + `}}`, `{"extensions":{"x/y":{}}}`},
		{"the client does not", modernTaskCaps, `{"extensions":{"x/y":{}}}`, `{"extensions":{"x/y":{}}}`},
		{"nobody does", allCaps, `{}`, `{}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{id: "up", era: wire.Modern, caps: c.serverCaps}
			st := newStage(t, Options{}, withTaskSettings, s.tools("t"))
			defer st.stop()
			synctest.Wait()
			caller := modernCaller()
			caller.Caps = ParseCaps([]byte(c.caps))
			st.text(caller, modernCall(c.caps, ""))
			if got := s.afterHandshake(); len(got) != 1 || !strings.Contains(got[0], `clientCapabilities":`+c.want+`}`) {
				t.Errorf("%s: the server got %s", c.name, got)
			}
		})
	}
}
