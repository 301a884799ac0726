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
