package session

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
)

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
