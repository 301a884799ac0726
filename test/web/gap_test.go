package web

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// While a standing stream is broken nobody tells what changes, and most servers do not tell it afterwards: the lists are
// looked at again once the stream is back, and clients hear of what is new.
func TestWhatChangesWhileAStandingStreamIsBrokenIsFound(t *testing.T) {
	t.Parallel()
	h := testmcp.ServeHTTP(t, of(testmcp.Legacy), testmcp.HTTPOptions{})
	p := start(t, "", map[string]string{"web": h.Entry()})
	old, fresh := p.Client(testmcp.Legacy), p.Client(testmcp.Modern)
	h.Rec.Wait(t, isGET)
	for round, name := range []string{"first", "second"} {
		news, listen := old.Get(""), fresh.Listen(`{"toolsListChanged":true}`)
		listen.WaitMethod("notifications/subscriptions/acknowledged")
		h.CutStreams()
		h.Instance().SetTools(testmcp.SimpleTool(name, nil))
		h.Rec.WaitN(t, round+2, isGET)
		for what, s := range map[string]*testmcp.Stream{"GET": news, "listen": listen} {
			s.WaitMethod("notifications/tools/list_changed")
			if names := old.ToolNames(); !slices.Equal(names, []string{"web__" + name}) {
				t.Errorf("after the announcement on %s the tools are %q", what, names)
			}
			s.Close()
		}
	}
	if n := h.Rec.Count(testmcp.Received("initialize")); n != 1 {
		t.Errorf("%d handshakes", n)
	}
}

// The same with the subscription of a modern server, and for connections that break altogether.
func TestWhatChangesWhileASubscriptionIsBrokenIsFound(t *testing.T) {
	t.Parallel()
	for word, era := range eras {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			h := testmcp.ServeHTTP(t, of(era), testmcp.HTTPOptions{})
			relay := testmcp.StartRelay(t, strings.TrimSuffix(strings.TrimPrefix(h.URL, "http://"), "/mcp"), 0)
			p := start(t, "", map[string]string{"web": `{"url":` + testmcp.Quote(relay.Through(h.URL)) + `}`})
			heard := map[testmcp.Era]func(testmcp.Record) bool{testmcp.Legacy: isGET, testmcp.Modern: testmcp.Received("subscriptions/listen")}[era]
			for round, name := range []string{"first", "second"} {
				h.Rec.WaitN(t, round+1, heard)
				relay.Cut()
				h.Instance().SetTools(testmcp.SimpleTool(name, nil))
				for _, era := range eras {
					c := p.Client(era)
					testmcp.Eventually(t, "the new tool", func() bool { return slices.Equal(c.ToolNames(), []string{"web__" + name}) })
				}
			}
			if n := h.Rec.Count(testmcp.Received("initialize")); n > 1 {
				t.Errorf("%d handshakes", n)
			}
		})
	}
}

// A server that has served a standing stream and does not any more is not asked for it again and again. Its lists are looked
// at once more, since nobody tells what is new from then on.
func TestAStandingStreamThatIsServedNoMore(t *testing.T) {
	t.Parallel()
	var refuses atomic.Bool
	h := testmcp.ServeHTTP(t, of(testmcp.Legacy), testmcp.HTTPOptions{Before: func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.Method != http.MethodGet || !refuses.Load() {
			return false
		}
		testmcp.Status(http.StatusMethodNotAllowed, "", "")(w, r)
		return true
	}})
	p := start(t, "", map[string]string{"web": h.Entry()})
	c := p.Client(testmcp.Legacy)
	h.Rec.Wait(t, isGET)
	refuses.Store(true)
	h.CutStreams()
	h.Instance().SetTools(testmcp.SimpleTool("unheard", nil))
	h.Rec.WaitN(t, 2, isGET)
	testmcp.Eventually(t, "the new tool", func() bool { return slices.Equal(c.ToolNames(), []string{"web__unheard"}) })
	if n := h.Rec.Count(isGET); n != 2 {
		t.Errorf("asked for a stream %d times", n)
	}
}
