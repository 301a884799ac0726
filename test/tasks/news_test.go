package tasks

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// A client of the older era hears of its tasks on its standing stream: of their states, and of progress under its own
// token.
func TestALegacyClientHearsOfItsTasks(t *testing.T) {
	t.Parallel()
	s := startAll(t, "")
	for _, k := range kinds {
		if k.era != testmcp.Legacy {
			continue
		}
		c, other := s.client(t, testmcp.Legacy, knowsTasks), s.client(t, testmcp.Legacy, knowsTasks)
		s.recs[k.name].Wait(t, testmcp.Received("tools/list"))
		if k.web { // what belongs to no request comes on a stream of its own
			s.recs[k.name].Wait(t, func(r testmcp.Record) bool { return r.Kind == testmcp.Request && strings.HasPrefix(r.Text, "GET") })
		}
		news, silence := c.Get(""), other.Get("")
		a := c.Call("tools/call", `{"_meta":{"progressToken":"mine"},"name":"`+k.tool("told")+`","arguments":{},"task":{}}`)
		id := a.Result().At("task", "taskId").Str()
		c.Call("tasks/get", about(id))
		if m := news.WaitMethod("notifications/progress"); m.Params.At("progressToken").Str() != "mine" {
			t.Errorf("%s: %s", k.name, m.Raw)
		}
		if m := news.WaitMethod("notifications/tasks/status"); m.Params.At("taskId").Str() != id || m.Params.At("status").Str() != "completed" {
			t.Errorf("%s: %s", k.name, m.Raw)
		}
		for _, e := range silence.Events() {
			if len(e.Data) > 0 {
				t.Errorf("%s: another session hears %s", k.name, e.Data)
			}
		}
		news.Close()
		silence.Close()
	}
}

// A client of the newer era names the tasks that it wants to hear of.
func TestAModernClientHearsOfTheTasksThatItNames(t *testing.T) {
	t.Parallel()
	s := startAll(t, "")
	for _, k := range kinds {
		if k.era != testmcp.Modern {
			continue
		}
		c := s.client(t, testmcp.Modern, knowsTasks)
		id := begun(t, c, k.tool("told"))
		news := c.Listen(`{"taskIds":[` + testmcp.Quote(id) + `,"1"]}`)
		ack := news.WaitMethod("notifications/subscriptions/acknowledged").Params.At("notifications")
		if string(ack) != `{"taskIds":[`+testmcp.Quote(id)+`]}` {
			t.Errorf("%s: %s is acknowledged", k.name, ack)
		}
		s.recs[k.name].Wait(t, func(r testmcp.Record) bool {
			return r.Kind == testmcp.Out && r.Method == "notifications/subscriptions/acknowledged" && r.Frame.Has("params", "notifications", "taskIds")
		})
		c.Call("tasks/get", about(id))
		m := news.WaitMethod("notifications/tasks")
		if m.Params.At("taskId").Str() != id || m.Params.At("result", "content", 0, "text").Str() != "done " ||
			string(m.Params.At("_meta", "io.modelcontextprotocol/subscriptionId")) != news.ID {
			t.Errorf("%s: %s", k.name, m.Raw)
		}
		news.Close()
	}
}
