package callers

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestACredentialGoesWhereItIsToGoAndNowhereElse: three servers note what they get; only the one that is to get the client's
// own credential does, with all that is asked for that client, and nobody gets cookies or the credential of the proxy.
func TestACredentialGoesWhereItIsToGoAndNowhereElse(t *testing.T) {
	t.Parallel()
	gets, getsSeen := serve(t, testmcp.Legacy, testmcp.HTTPOptions{})
	none, noneSeen := serve(t, testmcp.Legacy, testmcp.HTTPOptions{})
	far, farSeen := serve(t, testmcp.Legacy, testmcp.HTTPOptions{})
	recs := []*testmcp.Recorder{gets.Rec, none.Rec, far.Rec}
	away, _ := serve(t, testmcp.Legacy, testmcp.HTTPOptions{Before: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if testmcp.Raw(body).At("method").Str() != "tools/call" {
			return false
		}
		testmcp.Redirect(http.StatusTemporaryRedirect, far.URL)(w, r)
		return true
	}})
	p := start(t, `{"auth":{"header":"X-Proxy-Token","tokens":[{"name":"ann","token":"admits-ann"},{"name":"bob","token":"admits-bob"}]}}`, map[string]string{
		"gets": gets.Entry(`"forward_caller_auth":true`), "none": none.Entry(), "away": away.Entry(`"forward_caller_auth":true`),
	})
	for _, e := range eras {
		a := client(t, p.URL, e.era, "Authorization", ann, "X-Proxy-Token", "admits-ann", "Cookie", "s=1", "X-Api-Key", "k")
		own(t, a, "gets__of-ann")
		for _, tool := range []string{"gets__of-ann", "none__common"} {
			want := "ann"
			if tool == "none__common" {
				want = ""
			}
			if got, _ := caller(a.CallTool(tool, "{}")); got != want {
				t.Errorf("%s client: %s is called by %q", e.name, tool, got)
			}
		}
		if moved := a.CallTool("away__common", "{}"); moved.Err() == nil || strings.Contains(string(moved.Raw), "token-of") {
			t.Errorf("%s client: a call that is led away gives %s", e.name, moved.Raw)
		}
	}
	for _, rec := range recs {
		leaked := rec.Find(func(r testmcp.Record) bool {
			return r.Header.Get("X-Proxy-Token")+r.Header.Get("Cookie")+r.Header.Get("X-Api-Key") != ""
		})
		if len(leaked) > 0 {
			t.Errorf("a server got %v", leaked[0].Header)
		}
	}
	for name, w := range map[string]*watch{"none": noneSeen, "far": farSeen} {
		w.mu.Lock()
		if len(w.verbs[ann]) > 0 {
			t.Errorf("%s got the client's own credential with %v", name, w.verbs[ann])
		}
		w.mu.Unlock()
	}
	getsSeen.wantUnmixed(t)
	for _, what := range []string{"POST initialize", "POST notifications/initialized", "POST tools/list", "POST tools/call", "GET "} {
		gets.Rec.WaitFor(t, what+" with the credential", func() bool { return getsSeen.with(ann, what) })
	}
	wantUnsaid(t, p, "token-of-ann", "admits-ann")
	p.Stop()
	if !getsSeen.with(ann, "DELETE ") {
		t.Error("the session was ended without the credential")
	}
}

// wantUnsaid checks that no page, metric or line of the log holds these words.
func wantUnsaid(t *testing.T, p *testmcp.Proxy, words ...string) {
	t.Helper()
	texts := map[string]string{"log": strings.Join(p.Log(), "\n")}
	for _, path := range []string{"/metrics", "/readyz", "/api/v1/status", "/"} {
		req, _ := http.NewRequest(http.MethodGet, p.Base+path, http.NoBody)
		req.Header.Set("X-Proxy-Token", "admits-ann")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		_ = resp.Write(&b)
		_ = resp.Body.Close()
		texts[path] = b.String()
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for where, text := range texts {
		for _, w := range words {
			if strings.Contains(text, w) {
				t.Errorf("%s holds %q", where, w)
			}
		}
	}
}

// TestUpdatesOfResourcesComeOnTheCallersOwnConnection: the server is asked with the credential, and what it tells goes to
// those who have that credential.
func TestUpdatesOfResourcesComeOnTheCallersOwnConnection(t *testing.T) {
	t.Parallel()
	for _, up := range eras {
		t.Run(up.name+" server", func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			asked := map[string]*testmcp.Call{} // by who asks, to answer on the connection that asked
			srv := personal(up.era)
			hold := func(c *testmcp.Call) {
				mu.Lock()
				asked[who(c.Header.Get("Authorization"))] = c
				mu.Unlock()
			}
			srv.On["resources/subscribe"] = func(c *testmcp.Call) {
				hold(c)
				c.Note("subscribed " + who(c.Header.Get("Authorization")))
				c.Result("{}")
			}
			srv.On["resources/unsubscribe"] = func(c *testmcp.Call) { c.Result("{}") }
			h := testmcp.ServeHTTP(t, srv, testmcp.HTTPOptions{})
			p := start(t, "", map[string]string{"up": h.Entry(`"forward_caller_auth":true`)})
			for _, e := range eras {
				a, b := client(t, p.URL, e.era, "Authorization", ann), client(t, p.URL, e.era, "Authorization", bob)
				own(t, a, "up__of-ann")
				own(t, b, "up__of-bob")
				newsA, newsB := subscribed(t, a, "note://of-ann"), subscribed(t, b, "note://of-bob")
				h.Instance().Notify("notifications/resources/updated", `{"uri":"note://of-ann"}`)
				newsA.WaitMethod("notifications/resources/updated")
				h.Instance().Notify("notifications/resources/updated", `{"uri":"note://of-bob"}`)
				if got := newsB.WaitMethod("notifications/resources/updated").Params.At("uri").Str(); got != "note://of-bob" {
					t.Errorf("%s client: Bob is told of %q", e.name, got)
				}
				if other := b.Try("resources/read", `{"uri":"note://of-ann"}`); other.Err() == nil {
					t.Errorf("%s client: Bob reads %s", e.name, other.Raw)
				}
				newsA.Close()
				newsB.Close()
			}
			if up.era == testmcp.Legacy {
				mu.Lock()
				if asked["ann"] == nil || asked["bob"] == nil || asked[""] != nil {
					t.Errorf("subscriptions came with %v", asked)
				}
				mu.Unlock()
			}
		})
	}
}

// subscribed subscribes to a resource and opens the stream on which its updates come.
func subscribed(t *testing.T, c *testmcp.Client, uri string) *testmcp.Stream {
	t.Helper()
	if c.Era == testmcp.Modern {
		s := c.Listen(`{"resourceSubscriptions":["` + uri + `"]}`)
		if ack := s.WaitMethod("notifications/subscriptions/acknowledged"); !strings.Contains(string(ack.Raw), uri) {
			t.Errorf("the subscription is acknowledged as %s", ack.Raw)
		}
		return s
	}
	s := c.Get("")
	if a := c.Call("resources/subscribe", `{"uri":"`+uri+`"}`); a.Result() == nil {
		t.Errorf("resources/subscribe: %s", a.Raw)
	}
	return s
}
