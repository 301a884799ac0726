package life

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// load is what runs when the program is told to stop.
type load struct {
	finish, stay []*testmcp.Pending // calls that end within the grace, and calls that do not
	standing     []*testmcp.Stream
}

// startLoad makes calls of both kinds at every upstream for clients of both eras, and opens standing streams.
func startLoad(t *testing.T, p *testmcp.Proxy, recs map[string]*testmcp.Recorder) *load {
	t.Helper()
	l := &load{}
	for _, era := range stdio.Eras {
		c := p.Client(era)
		if era == testmcp.Legacy {
			for range 10 {
				l.standing = append(l.standing, p.Client(era).Get(""))
			}
		} else {
			l.standing = append(l.standing, c.Listen(`{"toolsListChanged":true}`))
		}
		for id := range recs {
			l.finish = append(l.finish, c.Begin("tools/call", testmcp.ToolParams(id+"__wait", `{"signal":"finish"}`)))
			l.stay = append(l.stay, c.Begin("tools/call", testmcp.ToolParams(id+"__hang", "")))
		}
	}
	for _, rec := range recs {
		rec.WaitN(t, len(stdio.Eras), testmcp.CalledTool("wait"))
		rec.WaitN(t, len(stdio.Eras), testmcp.CalledTool("hang"))
	}
	for _, s := range l.standing {
		if s.Status != http.StatusOK {
			t.Fatalf("a standing stream is answered %d", s.Status)
		}
	}
	return l
}

func TestAStopUnderLoadGivesTheGraceAndTellsTheRest(t *testing.T) {
	t.Parallel()
	recs, entries := map[string]*testmcp.Recorder{}, map[string]string{}
	for _, way := range stdio.Ways {
		recs[way.Name] = testmcp.NewRecorder(t)
		entries[way.Name] = way.Entry(t, recs[way.Name], "plain", nil)
	}
	p := testmcp.StartProxy(t, testmcp.Config(`{"shutdown_grace":"3s","stream_after":"1s"}`, entries))
	l := startLoad(t, p, recs)
	late := testmcp.NewClient(t, p.URL, testmcp.Modern)

	p.Terminate()
	p.WaitLog(`"msg":"stopping"`)
	for _, s := range l.standing {
		if !s.WaitOver() || s.Err() != nil {
			t.Errorf("a standing stream ends with %v", s.Err())
		}
	}
	if status, _ := p.Get("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz is %d while stopping", status)
	}
	if status, _ := p.Get("/healthz"); status != http.StatusOK {
		t.Errorf("/healthz is %d while stopping", status)
	}
	if a := late.Try("tools/list", "{}"); a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
		t.Errorf("a new request is answered %d with Retry-After %q", a.Status, a.Header.Get("Retry-After"))
	}
	for _, rec := range recs {
		rec.Signal("finish")
	}
	for _, call := range l.finish {
		if a := call.Final(); a.Text() != "waited" {
			t.Errorf("a call that ended within the grace gives %.300s %v", a.Raw, a.Error)
		}
	}
	for _, call := range l.stay {
		a := call.Final()
		if a.Err().At("data", "reason").Str() != "uncertain" || string(a.ID) != call.ID || !strings.Contains(a.Err().At("message").Str(), "stopping") {
			t.Errorf("a call beyond the grace gives %.300s %v", a.Raw, a.Error)
		}
	}
	if code := p.WaitExit(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	for _, way := range stdio.Pipes() {
		recs[way.Name].WaitGone(t)
	}
}

// plain is the basic server of an era.
var _ = testmcp.Register("plain", func(args []string) *testmcp.Server {
	s := testmcp.Basic("plain")
	s.Era = stdio.Era(args)
	return s
})
