package tasks

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

const (
	extension    = "io.modelcontextprotocol/tasks"
	relatedTask  = "io.modelcontextprotocol/related-task"
	legacyCaps   = `{"tools":{"listChanged":true},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}`
	modernCaps   = `{"tools":{"listChanged":true},"extensions":{"` + extension + `":{}}}`
	knowsTasks   = `{"elicitation":{"form":{}},"extensions":{"` + extension + `":{}}}`
	knowsNone    = `{"elicitation":{"form":{}}}`
	sealedPrefix = "mcp-proxy-task."
)

// server is a server that runs tools as tasks. The ids of its tasks are 1, 2 and so on, as those of any other are. A task
// is done at the second look at it.
type server struct {
	mu    sync.Mutex
	tasks map[string]*task
}

type task struct {
	tool, status string
	looks        int
	answer       string // what the client has answered
	token        string
}

var _ = testmcp.Register("tasks", func(args []string) *testmcp.Server {
	s := &server{tasks: map[string]*task{}}
	out := &testmcp.Server{Name: "tasks", Era: testmcp.Legacy, Capabilities: legacyCaps, On: map[string]testmcp.Handler{
		"tools/call": s.call, "tasks/get": s.get, "tasks/result": s.result, "tasks/cancel": s.cancel, "tasks/update": s.update,
	}}
	if slices.Contains(args, "modern") {
		out.Era, out.Capabilities = testmcp.Modern, modernCaps
	}
	for _, name := range []string{"slow", "forever", "needs", "breaks", "fails", "told", "wished"} {
		def := `{"name":"` + name + `","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`
		if name == "wished" {
			def = strings.Replace(def, "required", "optional", 1)
		}
		out.Tools = append(out.Tools, testmcp.Tool{Definition: def})
	}
	return out
})

// call makes a task, where the client allows it and the tool needs or wants it.
func (s *server) call(c *testmcp.Call) {
	tool := c.Params.At("name").Str()
	asked := c.Params.Has("task")
	if c.Modern() {
		asked = c.Capabilities().Has("extensions", extension)
	}
	switch {
	case !asked && tool == "wished":
		c.Text("at once")
		return
	case !asked && c.Modern():
		c.Error(-32021, "this tool runs as a task", `{"requiredCapabilities":{"extensions":{"`+extension+`":{}}}}`)
		return
	case !asked:
		c.Error(-32601, "this tool must be run as a task", "")
		return
	}
	s.mu.Lock()
	id := strconv.Itoa(len(s.tasks) + 1)
	t := &task{tool: tool, status: "working", token: string(c.Token())}
	s.tasks[id] = t
	s.mu.Unlock()
	if c.Modern() {
		c.RawResult(`{"resultType":"task",` + s.members(c, id, t) + `}`)
		return
	}
	c.RawResult(`{"task":{` + s.members(c, id, t) + `}}`)
}

// members are those that tell of a task.
func (s *server) members(c *testmcp.Call, id string, t *task) string {
	text := `"taskId":` + testmcp.Quote(id) + `,"status":` + testmcp.Quote(t.status) + `,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z"`
	if c.Modern() {
		return text + `,"ttlMs":60000,"pollIntervalMs":20`
	}
	return text + `,"ttl":60000,"pollInterval":20`
}

func (s *server) find(c *testmcp.Call) (string, *task) {
	id := c.Params.At("taskId").Str()
	t := s.tasks[id]
	if t == nil {
		c.Error(-32602, "no such task", "")
	}
	return id, t
}

func (s *server) get(c *testmcp.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, t := s.find(c)
	if t == nil {
		return
	}
	t.looks++
	if t.status == "working" && t.looks >= 2 {
		s.advance(t)
	}
	if t.looks == 1 && t.token != "" {
		c.Elsewhere(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + t.token + `,"progress":1}}`)
	}
	if t.looks == 1 && t.tool == "told" {
		s.tell(c, id, t)
	}
	more := ""
	switch {
	case !c.Modern():
	case t.status == "completed":
		more = `,"result":` + finalResult(t)
	case t.status == "failed":
		more = `,"error":` + finalError
	case t.status == "input_required":
		more = `,"inputRequests":{"who":{"method":"elicitation/create","params":` + question + `}}`
	}
	c.Result(`{` + s.members(c, id, t) + more + `}`)
}

// tell ends a task and says so, outside any request.
func (s *server) tell(c *testmcp.Call, id string, t *task) {
	t.status = "completed"
	if c.Modern() {
		c.Instance().Notify("notifications/tasks", `{`+s.members(c, id, t)+`,"result":`+finalResult(t)+`}`)
		return
	}
	c.Elsewhere(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{` + s.members(c, id, t) + `}}`)
}

const (
	question   = `{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"who":{"type":"string"}}}}`
	finalError = `{"code":-32000,"message":"broken as asked","data":{"big":12345678901234567890}}`
)

// advance brings a task on.
func (s *server) advance(t *task) {
	switch {
	case t.tool == "forever":
	case t.tool == "needs" && t.answer == "":
		t.status = "input_required"
	case t.tool == "breaks":
		t.status = "failed"
	default:
		t.status = "completed"
	}
}

// finalResult is spelt in a way of its own, to be found again byte for byte.
func finalResult(t *task) string {
	if t.tool == "fails" {
		return `{"content":[{"type":"text","text":"failed as asked"}],"isError":true}`
	}
	return `{"content":[{"type":"text","text":` + testmcp.Quote("done "+t.answer) + `}], "x":12345678901234567890 }`
}

// result answers when the task has ended, and asks what it needs meanwhile.
func (s *server) result(c *testmcp.Call) {
	s.mu.Lock()
	id, t := s.find(c)
	s.mu.Unlock()
	if t == nil {
		return
	}
	s.mu.Lock()
	status := t.status
	s.mu.Unlock()
	meta := `"_meta":{"` + relatedTask + `":{"taskId":` + testmcp.Quote(id) + `}}`
	switch status {
	case "input_required":
		answer, err := c.Ask("elicitation/create", strings.Replace(question, "{", "{"+meta+",", 1))
		if err != nil {
			return
		}
		s.mu.Lock()
		t.answer = string(answer.At("result", "content", "who"))
		if answer.At("result", "action").Str() != "accept" {
			t.answer = answer.At("result", "action").Str()
		}
		s.mu.Unlock()
		c.Note("named " + answer.At("result", "_meta", relatedTask, "taskId").Str())
	case "working":
		c.Hang()
		return
	}
	if t.tool == "breaks" {
		c.RawError(finalError)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.RawResult("{" + meta + "," + strings.TrimPrefix(finalResult(t), "{"))
}

func (s *server) update(c *testmcp.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, t := s.find(c)
	if t == nil {
		return
	}
	t.answer = string(c.Params.At("inputResponses", "who", "content", "who"))
	if a := c.Params.At("inputResponses", "who", "action").Str(); a != "accept" {
		t.answer = a
	}
	t.status = "working"
	c.Result("{}")
}

func (s *server) cancel(c *testmcp.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, t := s.find(c)
	if t == nil {
		return
	}
	t.status = "cancelled"
	if c.Modern() {
		c.Result("{}")
		return
	}
	c.Result(`{` + s.members(c, id, t) + `}`)
}

// kind is one way to be a server.
type kind struct {
	name string
	era  testmcp.Era
	web  bool
}

var kinds = []kind{
	{"pipe-old", testmcp.Legacy, false}, {"web-old", testmcp.Legacy, true},
	{"pipe-new", testmcp.Modern, false}, {"web-new", testmcp.Modern, true},
	{"sse", testmcp.Legacy, true},
}

var eras = []struct {
	name string
	era  testmcp.Era
}{{"old client", testmcp.Legacy}, {"new client", testmcp.Modern}}

// stage is a running proxy with one server of each kind.
type stage struct {
	*testmcp.Proxy
	recs map[string]*testmcp.Recorder
}

func startAll(t *testing.T, settings string, more ...string) stage {
	t.Helper()
	s := stage{recs: map[string]*testmcp.Recorder{}}
	servers := map[string]string{}
	for _, k := range kinds {
		args := []string{"legacy"}
		if k.era == testmcp.Modern {
			args = []string{"modern"}
		}
		if k.name == "sse" {
			h := testmcp.ServeSSE(t, testmcp.Registered("tasks", args...), testmcp.SSEOptions{})
			servers[k.name], s.recs[k.name] = h.Entry(append(more, `"type":"sse"`)...), h.Rec
			continue
		}
		if k.web {
			h := testmcp.ServeHTTP(t, testmcp.Registered("tasks", args...), testmcp.HTTPOptions{})
			servers[k.name], s.recs[k.name] = h.Entry(more...), h.Rec
			continue
		}
		rec := testmcp.NewRecorder(t)
		servers[k.name], s.recs[k.name] = rec.Entry("tasks", args, more...), rec
	}
	s.Proxy = testmcp.StartProxy(t, testmcp.Config(settings, servers), testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))
	return s
}

// client makes a client that declares this and answers questions with its name.
func (s stage) client(t *testing.T, era testmcp.Era, capabilities string) *testmcp.Client {
	t.Helper()
	c := testmcp.NewClient(t, s.URL, era)
	c.Capabilities = capabilities
	c.Answers["elicitation/create"] = func(testmcp.Raw) string { return `{"action":"accept","content":{"who":"Ann"}}` }
	return c.Open()
}

func (k kind) tool(name string) string { return k.name + "__" + name }
