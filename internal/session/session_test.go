package session

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func TestWhoMayUseASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{}, nil)
		defer st.stop()
		own := st.client()
		own.principal = "anna"
		own = own.open(wire.LatestLegacy)
		other, elsewhere := *own, *own
		other.principal, elsewhere.view = "bob", "server/b"
		for name, c := range map[string]struct {
			c    *client
			want int
		}{
			"its owner":              {own, 200},
			"somebody else":          {&other, 404},
			"at another endpoint":    {&elsewhere, 404},
			"without an id":          {own.with(headerSession, ""), 400},
			"with a foreign id":      {own.with(headerSession, "nobody-s"), 404},
			"with an id of no form":  {own.with(headerSession, "\x00"), 404},
			"a known revision":       {own.with(headerVersion, wire.Rev20250326), 200},
			"an unknown revision":    {own.with(headerVersion, "1999-01-01"), 400},
			"the negotiated one":     {own.with(headerVersion, wire.LatestLegacy), 200},
			"another type of body":   {own.with("Content-Type", "text/plain"), 415},
			"nothing that we answer": {own.with("Accept", "text/html"), 406},
		} {
			if r := c.c.post(ping).wait(); r.code() != c.want {
				t.Errorf("%s: %d %s, want %d", name, r.code(), r.text(), c.want)
			}
		}
		for name, c := range map[string]*client{"somebody else": &other, "at another endpoint": &elsewhere} {
			if r := c.do(http.MethodDelete, "").wait(); r.code() != 404 {
				t.Errorf("%s ends the session: %d", name, r.code())
			}
		}
		if r := own.do(http.MethodDelete, "").wait(); r.code() != 204 || st.endedUnits() != 1 {
			t.Errorf("its owner ends it: %d, %d units", r.code(), st.endedUnits())
		}
		for _, verb := range []string{http.MethodDelete, http.MethodPost, http.MethodGet} {
			if r := own.do(verb, ping).wait(); r.code() != 404 {
				t.Errorf("after its end %s gives %d", verb, r.code())
			}
		}
		for _, verb := range []string{http.MethodPut, http.MethodGet, http.MethodDelete} {
			r := st.client().do(verb, "").wait()
			if r.code() != 405 || !strings.Contains(r.sent.Get("Allow"), "POST") {
				t.Errorf("%s without a session gives %d", verb, r.code())
			}
		}
	})
}

func TestTheEndOfASessionEndsItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{tool: never}
		st := newStage(t, b, nil)
		defer st.stop()
		c := legacyClient(st)
		call, stream := c.post(callT), c.do(http.MethodGet, "")
		pass(time.Second)
		c.do(http.MethodDelete, "").wait()
		call.wait()
		stream.wait()
		synctest.Wait()
		if b.received("notifications/cancelled") != 1 || len(call.data()) != 0 {
			t.Errorf("the server heard %d cancels, the client %q", b.received("notifications/cancelled"), call.data())
		}
		if st.metric("mcp_proxy_cancellations_total", "upstream", "b", "cause", "session_end") != 1 {
			t.Error("the cause is another")
		}
	})
}

// What is idle loses its live state; what is too old is gone for good.
func TestSessionsEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{}, nil)
		defer st.stop()
		idle, busy, listening := legacyClient(st), legacyClient(st), legacyClient(st)
		stream := listening.do(http.MethodGet, "")
		for range 8 {
			pass(5 * time.Minute)
			busy.post(ping).wait()
		}
		synctest.Wait()
		if n := st.m.Count(); n != 2 || st.endedUnits() != 1 {
			t.Errorf("after 40 minutes %d sessions are live and %d have ended", n, st.endedUnits())
		}
		if stream.over() {
			t.Error("a session that listens was taken to be idle")
		}
		if r := idle.post(ping).wait(); r.code() != 200 {
			t.Errorf("the idle session does not come back: %d %s", r.code(), r.text())
		}
		pass(24 * time.Hour)
		for name, c := range map[string]*client{"idle": idle, "busy": busy, "listening": listening} {
			if r := c.post(ping).wait(); r.code() != 404 {
				t.Errorf("after a day the %s one gives %d", name, r.code())
			}
		}
		stream.wait()
	})
}

func TestSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{tool: after(time.Minute)}, func(o *Options) { o.Limits.MaxSessions = 2 })
		defer st.stop()
		first := legacyClient(st)
		call := first.post(callT)
		pass(time.Second)
		legacyClient(st)
		pass(time.Second)
		third := legacyClient(st) // in the place of the second, which is idle
		if n := st.m.Count(); n != 2 || st.endedUnits() != 1 {
			t.Errorf("%d sessions are live and %d have ended", n, st.endedUnits())
		}
		other := third.post(callT)
		synctest.Wait()
		r := st.client().post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`).wait()
		if r.code() != 503 || r.sent.Get("Retry-After") == "" || !strings.Contains(r.text(), "limits.max_sessions") {
			t.Errorf("with all in use: %d %s", r.code(), r.text())
		}
		if st.metric("mcp_proxy_limit_exceeded_total", "limit", count.LimitSessions) == 0 {
			t.Error("the bound is not counted")
		}
		call.wait()
		other.wait()
	})
}

func TestInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{}, nil)
		defer st.stop()
		for asked, want := range map[string]string{
			`"2024-11-05"`: "2024-11-05", `"2025-03-26"`: "2025-03-26", `"2025-06-18"`: "2025-06-18", `"2025-11-25"`: "2025-11-25",
			`"2026-07-28"`: "2025-11-25", `"1999-01-01"`: "2025-11-25", `"next"`: "2025-11-25",
		} {
			r := st.client().post(`{"jsonrpc":"2.0","id":"x","method":"initialize","params":{"protocolVersion":` + asked + `}}`).wait()
			if !strings.HasPrefix(r.text(), `{"jsonrpc":"2.0","id":"x","result":{"protocolVersion":"`+want+`","capabilities":{`) {
				t.Errorf("%s: %s", asked, r.text())
			}
			if id := r.sent.Get(headerSession); len(id) < 16 || len(id) > 200 {
				t.Errorf("the id is %q", id)
			}
		}
		for _, params := range []string{`{}`, `{"protocolVersion":5}`} {
			r := st.client().post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + params + `}`).wait()
			if !strings.Contains(r.text(), `"code":-32602`) || r.sent.Get(headerSession) != "" {
				t.Errorf("%s: %s", params, r.text())
			}
		}
		a, b := legacyClient(st), legacyClient(st)
		if a.header.Get(headerSession) == b.header.Get(headerSession) {
			t.Error("two sessions have one id")
		}
	})
}

func TestBodiesThatAreNoMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{}, nil)
		defer st.stop()
		c := legacyClient(st)
		for body, code := range map[string]string{
			``: "-32700", `{`: "-32700", `"x"`: "-32600", `{}`: "-32600", `{"jsonrpc":"1.0","id":1,"method":"ping"}`: "-32600",
			`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`: "-32600", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`: "-32600",
			strings.Repeat("[", 1000): "-32",
		} {
			r := c.post(body).wait()
			if r.code() != 400 || !strings.Contains(r.text(), `"code":`+code) {
				t.Errorf("%.60s: %d %s", body, r.code(), r.text())
			}
		}
		for body, want := range map[string]int{`{"jsonrpc":"2.0","method":"notifications/initialized"}`: 202, `{"jsonrpc":"2.0","id":"srv","result":{}}`: 202} {
			if r := c.post(body).wait(); r.code() != want || r.text() != "" {
				t.Errorf("%s: %d %s", body, r.code(), r.text())
			}
		}
	})
}

// While stopping, running calls are waited for, and new requests are told to come again.
func TestDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{tool: after(10 * time.Second)}, nil)
		defer st.stop()
		c := legacyClient(st)
		call, stream := c.post(callT), c.do(http.MethodGet, "")
		pass(time.Second)
		drained := make(chan struct{})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		go func() { st.m.Drain(ctx); close(drained) }()
		synctest.Wait()
		if !st.m.Draining() || !stream.over() || call.over() {
			t.Errorf("draining %v, the stream over %v, the call over %v", st.m.Draining(), stream.over(), call.over())
		}
		for name, r := range map[string]*response{
			"a call":        c.post(callT),
			"a modern call": st.client().modern("tools/call", "t").post(callModern),
			"initialize":    st.client().post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`),
		} {
			if r.wait(); r.code() != 503 || r.sent.Get("Retry-After") == "" || !strings.Contains(r.text(), `"error"`) {
				t.Errorf("%s: %d %s", name, r.code(), r.text())
			}
		}
		<-drained
		if got := call.wait().text(); !strings.Contains(got, okAnswer) {
			t.Errorf("the call that ran got %s", got)
		}
	})
}

func TestCallsThatOutlastTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{tool: never}
		st := newStage(t, b, nil)
		defer st.stop()
		legacy, modern := legacyClient(st).post(callT), st.client().modern("tools/call", "t").post(callModern)
		pass(time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		began := time.Now()
		st.m.Drain(ctx)
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("it took %s", took)
		}
		for name, r := range map[string]*response{"legacy": legacy, "modern": modern} {
			if got := r.wait().text(); !strings.Contains(got, `"reason":"uncertain"`) {
				t.Errorf("%s: %s", name, got)
			}
		}
		if synctest.Wait(); b.received("notifications/cancelled") != 2 {
			t.Errorf("the server heard %d cancels", b.received("notifications/cancelled"))
		}
	})
}

func TestStandingStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		st := newStage(t, b, func(o *Options) { o.Limits.MaxStreams = 2 })
		defer st.stop()
		c := legacyClient(st)
		if r := c.with("Accept", "application/json").do(http.MethodGet, "").wait(); r.code() != 406 {
			t.Errorf("a client that takes no stream: %d", r.code())
		}
		old := c.do(http.MethodGet, "")
		synctest.Wait()
		fresh := c.do(http.MethodGet, "")
		synctest.Wait()
		if old.text() == "" || fresh.text() == "" || fresh.kind() != "text/event-stream" {
			t.Errorf("the streams begin with %q and %q", old.text(), fresh.text())
		}
		if r := c.do(http.MethodGet, "").wait(); r.code() != 503 || st.metric("mcp_proxy_limit_exceeded_total", "limit", count.LimitStreams) != 1 {
			t.Errorf("one stream too many: %d", r.code())
		}
		news := func() (int, int) {
			b.change()
			pass(3 * time.Second)
			synctest.Wait()
			return len(old.data()), len(fresh.data())
		}
		if o, f := news(); o != 0 || f != 1 {
			t.Errorf("the older stream was told %d times, the newest %d times", o, f)
		}
		fresh.cancel()
		fresh.wait()
		if o, _ := news(); o != 1 {
			t.Errorf("once it is the newest, the older stream was told %d times", o)
		}
		if got := old.data(); len(got) != 1 || got[0] != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` {
			t.Errorf("it was told %q", got)
		}
		// What nobody could be told waits for the next stream, once, however often it happened.
		old.breaks()
		news()
		old.wait()
		news()
		next := c.do(http.MethodGet, "")
		synctest.Wait()
		if got := next.data(); len(got) != 1 {
			t.Errorf("the next stream was told %q", got)
		}
		if st.metric("mcp_proxy_streams", "kind", "get") != 1 {
			t.Error("the streams are counted wrongly")
		}
		next.cancel()
		next.wait()
	})
}

func TestNewsWaitForTheStreamOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{tool: after(5 * time.Second)}
		st := newStage(t, b, nil)
		defer st.stop()
		c := legacyClient(st)
		b.change()
		pass(3 * time.Second)
		r := c.post(callT).wait()
		if got := r.data(); len(got) != 2 || !strings.Contains(got[0], "tools/list_changed") {
			t.Errorf("the stream of the call holds %q", got)
		}
		if got := c.post(callT).wait().data(); len(got) != 1 {
			t.Errorf("the next one holds %q", got)
		}
	})
}

func TestSubscriptionsOfModernClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		st := newStage(t, b, nil)
		defer st.stop()
		c := st.client().modern("subscriptions/listen", "")
		listen := func(filter string) *response {
			return c.post(`{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":` + filter + `,` + modernMeta + `}}`)
		}
		tools, prompts := listen(`{"toolsListChanged":true,"unknown":true}`), listen(`{"promptsListChanged":true}`)
		synctest.Wait()
		b.change()
		pass(3 * time.Second)
		synctest.Wait()
		const meta = `"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"}`
		want := []string{
			`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged",` + meta + `,"notifications":{"toolsListChanged":true}}}`,
			`{"jsonrpc":"2.0","method":"notifications/tools/list_changed",` + meta + `}}`,
		}
		if got := strings.Join(tools.data(), "\n"); got != strings.Join(want, "\n") {
			t.Errorf("told\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
		if got := prompts.data(); len(got) != 1 || !strings.Contains(got[0], `"notifications":{"promptsListChanged":true}`) {
			t.Errorf("who asked for prompts was told %q", got)
		}
		if st.metric("mcp_proxy_streams", "kind", "listen") != 2 {
			t.Error("the streams are counted wrongly")
		}
		prompts.cancel()
		prompts.wait()
		for name, r := range map[string]*response{
			"no filter": c.post(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` + modernMeta + `}}`),
			"no stream": c.with("Accept", "application/json").post(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{},` + modernMeta + `}}`),
		} {
			if r.wait(); !strings.Contains(r.text(), `"error"`) {
				t.Errorf("%s: %d %s", name, r.code(), r.text())
			}
		}
		st.m.Drain(t.Context())
		got := tools.wait().data()
		if last := got[len(got)-1]; !strings.HasPrefix(last, `{"jsonrpc":"2.0","id":"L","result":{"resultType":"complete"`) {
			t.Errorf("the end is %s", last)
		}
	})
}

func TestModernRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{}, nil)
		defer st.stop()
		good := st.client().modern("tools/call", "t")
		for _, c := range []struct {
			name   string
			c      *client
			body   string
			status int
			want   string
		}{
			{"well", good, callModern, 200, `"resultType":"complete"`},
			{"another method in the header", good.with(headerMethod, "tools/list"), callModern, 400, `-32020`},
			{"no method in the header", good.with(headerMethod, ""), callModern, 400, `-32020`},
			{"another name in the header", good.with(headerName, "x"), callModern, 400, `-32020`},
			{"no name in the header", good.with(headerName, ""), callModern, 400, `-32020`},
			{"an encoded name", good.with(headerName, "=?base64?dA==?="), callModern, 200, `"result"`},
			{"no revision in the header", good.with(headerVersion, ""), callModern, 400, `-32020`},
			{"another revision in the header", good.with(headerVersion, wire.LatestLegacy), callModern, 400, `-32020`},
			{"no _meta", good, callT, 400, `-32602`},
			{"a revision to come", good.with(headerVersion, "2031-01-01"), strings.Replace(callModern, "2026-07-28", "2031-01-01", 1), 400, `-32022`},
			{"no capabilities", good, strings.Replace(callModern, `,"io.modelcontextprotocol/clientCapabilities":{}`, "", 1), 400, `-32602`},
			{"capabilities of another type", good, strings.Replace(callModern, `clientCapabilities":{}`, `clientCapabilities":[]`, 1), 400, `-32602`},
			{"an unknown method", good.with(headerMethod, "no/such", headerName, ""), `{"jsonrpc":"2.0","id":1,"method":"no/such","params":{` + modernMeta + `}}`, 404, `-32601`},
			{"a notification", good, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, 202, ``},
			{"an answer", good, `{"jsonrpc":"2.0","id":1,"result":{}}`, 400, `-32600`},
		} {
			if r := c.c.post(c.body).wait(); r.code() != c.status || !strings.Contains(r.text(), c.want) {
				t.Errorf("%s: %d %s, want %d %s", c.name, r.code(), r.text(), c.status, c.want)
			}
		}
		if st.m.Count() != 0 {
			t.Error("a modern request has made a session")
		}
	})
}

func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{}, nil)
		defer st.stop()
		c := st.client().open(wire.Rev20250326)
		for _, b := range []struct {
			name   string
			c      *client
			body   string
			status int
			want   string
		}{
			{"requests", c, `[` + ping + `,{"jsonrpc":"2.0","id":"1","method":"ping"}]`, 200, `"id":"1"`},
			{"notifications", c, `[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":5,"result":{}}]`, 202, ""},
			{"one that is broken", c, `[{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"},` + ping + `]`, 200, `-32600`},
			{"initialize", c, `[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}]`, 200, "must not be part of a batch"},
			{"nothing", c, `[]`, 400, `-32600`},
			{"no objects", c, `[1]`, 400, `-32600`},
			{"too many", c, `[` + strings.Repeat(ping+",", maxBatch) + ping + `]`, 400, `-32600`},
			{"another revision", legacyClient(st), `[` + ping + `]`, 400, "only in the revision 2025-03-26"},
			{"the other era", st.client().modern("ping", ""), `[` + ping + `]`, 400, `-32600`},
			{"no session", st.client(), `[` + ping + `]`, 400, `Mcp-Session-Id`},
		} {
			r := b.c.post(b.body).wait()
			if r.code() != b.status || !strings.Contains(r.text(), b.want) {
				t.Errorf("%s: %d %s, want %d %s", b.name, r.code(), r.text(), b.status, b.want)
			}
			if b.status == 200 && (!strings.HasPrefix(r.text(), "[") || !strings.HasSuffix(r.text(), "]")) {
				t.Errorf("%s: no array: %s", b.name, r.text())
			}
		}
	})
}

// A batch of a client that goes and does not come back is cancelled as a single call is.
func TestABatchWhoseClientGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{tool: never}
		st := newStage(t, b, nil)
		defer st.stop()
		r := st.client().open(wire.Rev20250326).post(`[` + callT + `,` + strings.Replace(callT, `"A"`, `"B"`, 1) + `]`)
		pass(time.Second)
		r.cancel()
		r.wait()
		if synctest.Wait(); b.received("notifications/cancelled") != 2 {
			t.Errorf("the server heard %d cancels", b.received("notifications/cancelled"))
		}
	})
}

func TestWithoutSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{}, func(o *Options) { o.Sessions.Mode = config.SessionsStateless })
		defer st.stop()
		for _, id := range []string{"", "made-up", "of another server"} {
			if r := st.client().with(headerSession, id).post(callT).wait(); r.code() != 200 || r.text() != okAnswer {
				t.Errorf("%q: %d %s", id, r.code(), r.text())
			}
		}
		if r := st.client().with(headerSession, "x").do(http.MethodGet, "").wait(); r.code() != 405 {
			t.Errorf("GET gives %d", r.code())
		}
		if st.m.Count() != 0 {
			t.Error("a session is kept")
		}
	})
}

func TestMetricsOfConversations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{}, nil)
		defer st.stop()
		for _, kind := range []string{"post", "get", "listen"} {
			if st.metric("mcp_proxy_streams", "kind", kind) != 0 {
				t.Errorf("there is a %s stream", kind)
			}
		}
		legacyClient(st)
		if st.metric("mcp_proxy_sessions", "era", "legacy") != 1 || st.metric("mcp_proxy_sessions", "era", "modern") != 0 {
			t.Error("the sessions are counted wrongly")
		}
		if problems, err := testutil.GatherAndLint(st.reg); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	})
}

// Streams are kept alive by comments, never by questions that decide over life and death: a client that opens no standing
// stream keeps its session.
func TestKeepAliveEndsNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		st := newStage(t, b, func(o *Options) { o.KeepAlive = 15 * time.Second })
		defer st.stop()
		c := legacyClient(st)
		for range 4 {
			pass(5 * time.Minute)
			if r := c.post(callT).wait(); r.status != http.StatusOK {
				t.Fatalf("HTTP %d, %q", r.status, r.text())
			}
		}
		if n := st.metric("mcp_proxy_sessions", "era", "legacy"); n != 1 {
			t.Errorf("%v sessions are live", n)
		}
	})
}
