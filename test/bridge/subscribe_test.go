package bridge

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// The server of these tests reports an update when its tool is called.
var _ = behaviour("reporter", func() *testmcp.Server {
	s := testmcp.Basic("reporter")
	s.Resources = []testmcp.Resource{
		{Definition: `{"uri":"file:///x","name":"x"}`}, {Definition: `{"uri":"file:///y","name":"y"}`},
	}
	s.Tools = append(s.Tools, testmcp.SimpleTool("report", func(c *testmcp.Call) {
		c.Instance().Notify("notifications/resources/updated", `{"uri":`+testmcp.Quote(c.Args("uri").Str())+`}`)
		c.Text("reported")
	}))
	return s
})

// watching is a client that hears of updates, in the manner of its era.
type watching struct {
	*testmcp.Client
	news *testmcp.Stream
}

// watch subscribes to resources. For modern clients the rest of their filter may be more than that.
func watch(t *testing.T, p *testmcp.Proxy, era testmcp.Era, uris ...string) watching {
	t.Helper()
	w := watching{Client: testmcp.Connect(t, p.Base+"/mcp", era)}
	if era == testmcp.Modern {
		var list []string
		for _, u := range uris {
			list = append(list, testmcp.Quote(u))
		}
		w.news = w.Listen(`{"resourceSubscriptions":[` + strings.Join(list, ",") + `]}`)
		ack := w.news.WaitMethod("notifications/subscriptions/acknowledged")
		equal(t, "acknowledged", len(ack.Params.At("notifications", "resourceSubscriptions").Items()), len(uris))
		return w
	}
	w.news = w.Get("")
	for _, u := range uris {
		equal(t, "subscribed", w.Call("resources/subscribe", `{"uri":`+testmcp.Quote(u)+`}`).Result().String(), "{}")
	}
	return w
}

// end ends the interest in one resource.
func (w watching) end(uri string) {
	if w.Era == testmcp.Modern {
		w.news.Close()
		return
	}
	w.Call("resources/unsubscribe", `{"uri":`+testmcp.Quote(uri)+`}`)
}

// report lets a server report an update until those who watch have heard of it: a server that has just been asked may
// miss the first.
func report(t *testing.T, c *testmcp.Client, k kind, uri string, to ...watching) {
	t.Helper()
	testmcp.Eventually(t, "update of "+uri, func() bool {
		c.CallTool(k.name+"__report", `{"uri":"`+uri+`"}`)
		for _, w := range to {
			if !slices.Contains(w.updates(), uri) {
				return false
			}
		}
		return true
	})
}

// updates gives the URIs that came so far.
func (w watching) updates() (uris []string) {
	for _, e := range w.news.Events() {
		if m := e.Message(); m.Method == "notifications/resources/updated" {
			uris = append(uris, m.Params.At("uri").Str())
		}
	}
	return uris
}

// watched says which resources a server has been asked to watch, now.
func watched(rec *testmcp.Recorder, uri string) (now bool, subscribes int) {
	for _, r := range rec.All() {
		switch {
		case r.Kind != testmcp.In:
		case r.Method == "resources/subscribe" && r.Frame.At("params", "uri").Str() == uri:
			now = true
			subscribes++
		case r.Method == "resources/unsubscribe" && r.Frame.At("params", "uri").Str() == uri:
			now = false
		case r.Method == "subscriptions/listen": // each replaces the one before
			now = strings.Contains(string(r.Frame), testmcp.Quote(uri))
		}
	}
	return now, subscribes
}

func waitWatched(t *testing.T, rec *testmcp.Recorder, uri string, want bool) {
	t.Helper()
	rec.WaitFor(t, "change of what is watched", func() bool { now, _ := watched(rec, uri); return now == want })
}

// Updates go to exactly those who subscribed, by the URI that they know. The server is asked once, and told once that
// nobody is left, whether the last client says so or only ends.
func TestUpdatesGoToTheSubscribers(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		p, rec := startOne(t, k, "reporter", "")
		for _, e := range eras {
			t.Run(k.name+", "+e.name, func(t *testing.T) {
				reporter := p.Client(testmcp.Modern)
				_, before := watched(rec, "file:///x")
				a, b := watch(t, p, e.era, "file:///x"), watch(t, p, e.era, "file:///x")
				other := watch(t, p, e.era, "file:///y")
				waitWatched(t, rec, "file:///x", true)
				waitWatched(t, rec, "file:///y", true)
				report(t, reporter, k, "file:///x", a, b)
				report(t, reporter, k, "file:///y", other)
				a.end("file:///x")
				report(t, reporter, k, "file:///x/part", b) // of a part of it
				equal(t, "updates for who has left", slices.Contains(a.updates(), "file:///x/part"), false)
				equal(t, "updates for others", strings.Contains(strings.Join(other.updates(), " "), "file:///x"), false)
				if e.era == testmcp.Legacy {
					b.Delete()
				} else {
					b.news.Close()
				}
				waitWatched(t, rec, "file:///x", false)
				if k.era == testmcp.Legacy {
					_, after := watched(rec, "file:///x")
					equal(t, "subscribe requests", after-before, 1)
				}
				other.end("file:///y")
				waitWatched(t, rec, "file:///y", false)
			})
		}
	}
}

// A server that comes back, as a process, with a new session or after a while, is asked again.
func TestWhatIsWatchedIsWatchedAgainAfterAReconnect(t *testing.T) {
	t.Parallel()
	for _, era := range []testmcp.Era{testmcp.Legacy, testmcp.Modern} {
		for name, renew := range map[string]func(h *testmcp.HTTPServer, c *testmcp.Client){
			"restarted": func(h *testmcp.HTTPServer, _ *testmcp.Client) { h.Restart() },
			"session lost, by a call": func(h *testmcp.HTTPServer, c *testmcp.Client) {
				h.ForgetSessions()
				c.CallTool("web__echo", `{"text":"x"}`)
			},
		} {
			if era == testmcp.Modern && name != "restarted" {
				continue // it has no sessions
			}
			h := testmcp.ServeHTTP(t, testmcp.Registered("reporter", map[testmcp.Era]string{testmcp.Modern: "modern", testmcp.Legacy: "legacy"}[era]), testmcp.HTTPOptions{})
			p := start(t, testmcp.Config("", map[string]string{"web": h.Entry()}))
			w := watch(t, p, testmcp.Legacy, "file:///x")
			waitWatched(t, h.Rec, "file:///x", true)
			method := map[testmcp.Era]string{testmcp.Modern: "subscriptions/listen", testmcp.Legacy: "resources/subscribe"}[era]
			before := h.Rec.Count(testmcp.Received(method))
			renew(h, p.Client(testmcp.Modern))
			h.Rec.WaitFor(t, name+": another request", func() bool { return h.Rec.Count(testmcp.Received(method)) > before })
			testmcp.Eventually(t, name+": an update", func() bool {
				h.Instance().Notify("notifications/resources/updated", `{"uri":"file:///x"}`)
				return len(w.updates()) > 0
			})
		}
	}
	for _, k := range []kind{pipeOld, pipeNew} {
		p, rec := startOne(t, k, "reporter", "")
		w := watch(t, p, testmcp.Legacy, "file:///x")
		waitWatched(t, rec, "file:///x", true)
		p.Client(testmcp.Modern).CallTool(k.name+"__crash", "")
		method := map[testmcp.Era]string{testmcp.Modern: "subscriptions/listen", testmcp.Legacy: "resources/subscribe"}[k.era]
		pid := rec.WaitN(t, 2, testmcp.Is(testmcp.Start))[1].PID
		rec.Wait(t, func(r testmcp.Record) bool {
			return r.PID == pid && r.Kind == testmcp.In && r.Method == method && strings.Contains(string(r.Frame), "file:///x")
		})
		report(t, p.Client(testmcp.Modern), k, "file:///x", w)
	}
}

// Where two servers have one URI, the second is known by its qualified form, in subscriptions and updates too.
func TestUpdatesOfQualifiedResources(t *testing.T) {
	t.Parallel()
	for _, pair := range [][]kind{{pipeOld, webOld}, {pipeNew, webNew}} {
		s := startAll(t, pair, "reporter", "")
		second := pair[1].name // configurations of tests are in alphabetical order
		for _, e := range eras {
			w := watch(t, s.Proxy, e.era, second+"+file:///x")
			waitWatched(t, s.recs[second], "file:///x", true)
			reporter := s.Client(testmcp.Modern)
			testmcp.Eventually(t, second+", "+e.name+": an update", func() bool {
				for _, k := range pair {
					reporter.CallTool(k.name+"__report", `{"uri":"file:///x"}`)
				}
				return len(w.updates()) > 0
			})
			for _, uri := range w.updates() {
				equal(t, second+", "+e.name+": updated", uri, second+"+file:///x")
			}
			if now, n := watched(s.recs[pair[0].name], "file:///x"); now || n > 0 {
				t.Errorf("%s was asked for what belongs to %s", pair[0].name, second)
			}
			w.end(second + "+file:///x")
			waitWatched(t, s.recs[second], "file:///x", false)
		}
	}
}

// What cannot be watched is refused, or left out of what is acknowledged.
func TestWhatCannotBeWatchedIsRefused(t *testing.T) {
	t.Parallel()
	for _, era := range []testmcp.Era{testmcp.Legacy, testmcp.Modern} {
		plain := testmcp.Basic("plain")
		plain.Era, plain.Capabilities = era, `{"resources":{}}`
		h := testmcp.ServeHTTP(t, plain, testmcp.HTTPOptions{})
		p := start(t, testmcp.Config("", map[string]string{"plain": h.Entry()}))
		old := p.Client(testmcp.Legacy)
		for _, uri := range []string{"test://plain/readme", "nowhere://at/all"} {
			equal(t, uri+": code", old.Call("resources/subscribe", `{"uri":"`+uri+`"}`).Code(), -32002)
		}
		listen := p.Client(testmcp.Modern).Listen(`{"toolsListChanged":true,"resourceSubscriptions":["test://plain/readme","nowhere://at/all"]}`)
		ack := listen.WaitMethod("notifications/subscriptions/acknowledged")
		equal(t, "acknowledged", ack.Params.At("notifications").String(), `{"toolsListChanged":true}`)
	}
	refusing := testmcp.Basic("refusing")
	refusing.Era = testmcp.Legacy
	refusing.On = map[string]testmcp.Handler{"resources/subscribe": testmcp.Errors(-32001, "not this one")}
	h := testmcp.ServeHTTP(t, refusing, testmcp.HTTPOptions{})
	p := start(t, testmcp.Config("", map[string]string{"refusing": h.Entry()}))
	equal(t, "the server's own refusal", p.Client(testmcp.Legacy).Call("resources/subscribe", `{"uri":"test://refusing/readme"}`).Code(), -32001)
}

// A modern server with nothing else to tell is listened to only while somebody watches a resource of it.
func TestNobodyListensWhereNothingIsWatched(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{pipeNew, webNew} {
		p, rec := startOne(t, k, "quiet", "")
		for _, e := range eras {
			ended := rec.Count(testmcp.Is(testmcp.Cancel))
			w := watch(t, p, e.era, "test://quiet/readme")
			rec.WaitFor(t, "listening", func() bool { return rec.Count(testmcp.Received("subscriptions/listen")) == ended+1 })
			w.end("test://quiet/readme")
			rec.WaitFor(t, "end of it", func() bool { return rec.Count(testmcp.Is(testmcp.Cancel)) == ended+1 })
		}
	}
}

var _ = behaviour("quiet", func() *testmcp.Server {
	s := testmcp.Basic("quiet")
	s.Capabilities = `{"resources":{"subscribe":true}}`
	return s
})
