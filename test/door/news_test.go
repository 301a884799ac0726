package door

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

const (
	toolsChanged = "notifications/tools/list_changed"
	acknowledged = "notifications/subscriptions/acknowledged"
	subscription = "io.modelcontextprotocol/subscriptionId"
)

// change lets an upstream add a tool and say so, and waits until the proxy offers it.
func change(t *testing.T, p *testmcp.Proxy, upstream string) {
	t.Helper()
	c := p.Client(testmcp.Modern)
	have := len(c.ToolNames())
	if a := c.CallTool(upstream+"__change", ""); a.Text() != "changed" {
		t.Fatalf("the upstream did not change: %s", a.Raw)
	}
	testmcp.Eventually(t, "longer list", func() bool { return len(c.ToolNames()) > have })
}

// stand opens a standing stream, which owns the news once its headers have come.
func stand(t *testing.T, c *testmcp.Client) *testmcp.Stream {
	t.Helper()
	s := c.Get("")
	wantStreamHeaders(t, s)
	return s
}

// TestOnlyThoseWhoseViewHasChangedAreTold: a tool that a view does not show is no news there.
func TestOnlyThoseWhoseViewHasChangedAreTold(t *testing.T) {
	t.Parallel()
	hidden := testmcp.NewRecorder(t)
	p := start(t, `{"profiles":{"few":{"servers":["b"],"tool_policy":{"deny":["added2"]}}}}`, map[string]string{
		"a":      testmcp.NewRecorder(t).Entry("door", []string{"legacy"}),
		"b":      testmcp.NewRecorder(t).Entry("door", []string{"modern"}),
		"hidden": hidden.Entry("door", []string{"legacy"}, `"tool_policy":{"deny":["added*"]}`),
	})
	want := map[string]int{p.URL: 3, p.Server("a"): 1, p.Server("b"): 2, p.Server("hidden"): 0, p.Profile("few"): 1}
	streams := map[string][]*testmcp.Stream{}
	for url := range want {
		listen := testmcp.Connect(t, url, testmcp.Modern).Listen(`{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`)
		listen.WaitMethod(acknowledged)
		streams[url] = []*testmcp.Stream{stand(t, testmcp.Connect(t, url, testmcp.Legacy)), listen}
	}
	p.Client(testmcp.Legacy).CallTool("hidden__change", "")
	hidden.WaitN(t, 2, testmcp.Received("resources/templates/list")) // the last list of the second look
	for _, upstream := range []string{"a", "b", "b"} {
		change(t, p, upstream)
	}
	for url, n := range want {
		for i, s := range streams[url] {
			testmcp.Eventually(t, "news", func() bool { return countMethod(s, toolsChanged) >= n })
			all := slices.DeleteFunc(messages(s.Events()), func(m testmcp.Message) bool { return m.Method == acknowledged })
			if len(all) != n || countMethod(s, toolsChanged) != n {
				t.Errorf("%s, stream %d: %d messages, %d of them that the tools have changed; want %d: %v", url, i, len(all), countMethod(s, toolsChanged), n, all)
			}
		}
	}
}

// TestNewestStreamOwnsTheNews: each piece goes to one stream, and when the newest is gone the one before takes over.
func TestNewestStreamOwnsTheNews(t *testing.T) {
	t.Parallel()
	p, _ := one(t, "")
	c := p.Client(testmcp.Legacy)
	older := stand(t, c)
	newer := stand(t, c)
	change(t, p, "up")
	newer.WaitMethod(toolsChanged)
	newer.Close()
	testmcp.Eventually(t, "end of the newer stream", func() bool { return p.Metrics().Sum("mcp_proxy_streams", "kind", "get") == 1 })
	if n := countMethod(older, toolsChanged); n != 0 {
		t.Errorf("the older stream was told %d times", n)
	}
	change(t, p, "up")
	older.WaitMethod(toolsChanged)
	if n := countMethod(newer, toolsChanged); n != 1 {
		t.Errorf("the newer stream was told %d times", n)
	}
}

// TestNewsWaitForTheNextStream: however many changes there were, each list is announced once.
func TestNewsWaitForTheNextStream(t *testing.T) {
	t.Parallel()
	p, _ := one(t, "")
	standing, posting := p.Client(testmcp.Legacy), p.Client(testmcp.Legacy)
	change(t, p, "up")
	change(t, p, "up")

	first := stand(t, standing)
	first.WaitMethod(toolsChanged)
	// The stream of a call is as good.
	a := posting.Call("tools/call", `{"_meta":{"progressToken":1},"name":"up__says","arguments":{"text":"x"}}`)
	wantText(t, a, "x")
	if n := len(slices.DeleteFunc(messages(a.Before), func(m testmcp.Message) bool { return m.Method != toolsChanged })); n != 1 {
		t.Errorf("the stream of a call told of the change %d times, want once", n)
	}
	// What was told is not told again.
	second, third := stand(t, standing), stand(t, posting)
	change(t, p, "up")
	second.WaitMethod(toolsChanged)
	third.WaitMethod(toolsChanged)
	for i, s := range []*testmcp.Stream{first, second, third} {
		if n := countMethod(s, toolsChanged); n != 1 {
			t.Errorf("stream %d was told %d times, want once", i, n)
		}
	}
}

// TestSubscriptionsAreAcknowledgedFirst: with what is honoured of the filter, and with the id of the subscription as
// the client wrote it.
func TestSubscriptionsAreAcknowledgedFirst(t *testing.T) {
	t.Parallel()
	p, _ := one(t, "")
	tests := []struct{ id, filter, honoured string }{
		{`"L1"`, `{"toolsListChanged":true}`, `{"toolsListChanged":true}`},
		{`7`, `{"toolsListChanged":true}`, `{"toolsListChanged":true}`},
		{`"7"`, `{"toolsListChanged":true,"promptsListChanged":false}`, `{"toolsListChanged":true}`},
		{`0`, `{"promptsListChanged":true,"madeUpChanged":true}`, `{"promptsListChanged":true}`},
		{`"🦀"`, `{}`, `{}`},
	}
	var streams []*testmcp.Stream
	for _, tt := range tests {
		params := `{"notifications":` + tt.filter + `}`
		s := p.Client(testmcp.Modern).Send(tt.id, "subscriptions/listen", params)
		e, _ := s.Next()
		m := e.Message()
		if m.Method != acknowledged || string(m.Params.At("_meta", subscription)) != tt.id || string(m.Params.At("notifications")) != tt.honoured {
			t.Errorf("the first event of subscription %s is %s; want it to honour %s", tt.id, e.Data, tt.honoured)
		}
		streams = append(streams, s)
	}
	change(t, p, "up")
	for i, tt := range tests {
		if !strings.Contains(tt.honoured, "tools") {
			continue
		}
		if m := streams[i].WaitMethod(toolsChanged); string(m.Params.At("_meta", subscription)) != tt.id {
			t.Errorf("subscription %s was told %s", tt.id, m.Raw)
		}
	}
	for i, tt := range tests {
		if n := countMethod(streams[i], toolsChanged); !strings.Contains(tt.honoured, "tools") && n != 0 {
			t.Errorf("subscription %s was told %d times of what it has not asked for", tt.id, n)
		}
	}
}

// TestStandingStreamsEndInOrderWhenTheProxyStops: a subscription is answered, a GET stream ends.
func TestStandingStreamsEndInOrderWhenTheProxyStops(t *testing.T) {
	t.Parallel()
	p, _ := one(t, "")
	listen := p.Client(testmcp.Modern).Send(`"L1"`, "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`)
	listen.WaitMethod(acknowledged)
	get := stand(t, p.Client(testmcp.Legacy))
	p.Terminate()
	a := listen.Final()
	if string(a.ID) != `"L1"` || a.Result() == nil || string(a.Result().At("_meta", subscription)) != `"L1"` || a.Result().At("resultType").Str() != "complete" {
		t.Errorf("the subscription ended with %s (%v)", a.Raw, a.Error)
	}
	for name, s := range map[string]*testmcp.Stream{"listen": listen, "GET": get} {
		if !s.WaitOver() || s.Err() != nil {
			t.Errorf("%s: the stream did not end in good order: %v", name, s.Err())
		}
	}
	if code := p.WaitExit(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
}

// TestSubscriptionsThatAreRefused at once, without a stream.
func TestSubscriptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	p, _ := one(t, "")
	modern, legacy := p.Client(testmcp.Modern), p.Client(testmcp.Legacy)
	for name, params := range map[string]string{"no filter": `{}`, "filter of a wrong type": `{"notifications":["toolsListChanged"]}`} {
		t.Run(name, func(t *testing.T) {
			if a := modern.Try("subscriptions/listen", params); a.Code() != codeInvalidParams {
				t.Errorf("HTTP %d %s", a.Status, a.Body)
			}
		})
	}
	t.Run("legacy session", func(t *testing.T) {
		if a := legacy.Try("subscriptions/listen", `{"notifications":{}}`); a.Code() != codeNoMethod {
			t.Errorf("HTTP %d %s", a.Status, a.Body)
		}
	})
	t.Run("only JSON", func(t *testing.T) {
		modern.Header.Set("Accept", "application/json")
		a := modern.Send("1", "subscriptions/listen", `{"notifications":{}}`).Final()
		wantRefusal(t, a, 406, codeInvalidRequest, "1")
	})
}
