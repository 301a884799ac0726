package sessions

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// Clients that vanish in the middle of their calls leave what may be kept for them, and no more.
func TestVanishingClientsCostNoMoreThanTheirBuffers(t *testing.T) {
	t.Parallel()
	// All sessions together may keep a quarter of max_buffered_bytes: 2 MiB.
	p, rec := start(t, `{"limits":{"max_buffered_bytes":8388608},"sessions":{"resume_buffer_bytes":262144,"resume_window":"5s"}}`)
	const clients, rounds, whole = 10, 12, 2 << 20
	echoes(t, p.Client(testmcp.Legacy), "before")
	before := testmcp.RSS(p.PID())
	var wg sync.WaitGroup
	for n := range clients {
		c := speaking(t, p.URL, testmcp.Rev2511)
		wg.Go(func() {
			for i := range rounds {
				signal := fmt.Sprintf("go %d %d", n, i)
				s := c.Send(c.NextID(), "tools/call", withToken("up__progress", fmt.Sprintf(`{"steps":40,"signal":%q}`, signal)))
				s.Next()
				s.Close()
				rec.Signal(signal)
				c.Send(c.NextID(), "tools/call", testmcp.ToolParams("up__big", `{"bytes":100000}`)).Final()
			}
		})
	}
	wg.Wait()
	kept := p.Metrics().Sum("mcp_proxy_resume_buffer_bytes")
	if kept > whole {
		t.Errorf("%v bytes are kept, %d may be", kept, whole)
	}
	// What a garbage-collected program needs on the way is more than what it keeps.
	if grown := testmcp.RSS(p.PID()) - before; grown > 96<<20 {
		t.Errorf("the program has grown by %d MiB", grown>>20)
	}
	testmcp.Eventually(t, "end of what is kept", func() bool {
		m := p.Metrics()
		return m.Sum("mcp_proxy_resume_buffer_bytes") == 0 && m.Sum("mcp_proxy_streams") == 0 && m.Sum("mcp_proxy_requests_in_flight") == 0
	})
}

// One ordinary session that lists for a long time, as event streams that could be come back to, costs no more at its end than
// at its beginning. Where nothing is to be kept, no event says that one could come back.
func TestALongSessionDoesNotGrow(t *testing.T) {
	t.Parallel()
	const rounds, most = 600, 256 << 10
	for buffer, size := range map[string]string{"kept": "262144", "off": "0"} {
		t.Run(buffer, func(t *testing.T) {
			t.Parallel()
			s := testmcp.Basic("long")
			s.Tools = testmcp.SimpleTools(strings.Repeat("t", 30), 1000) // about 100 KiB
			h := testmcp.ServeHTTP(t, s, testmcp.HTTPOptions{})
			p := testmcp.StartProxy(t, testmcp.Config(`{"sessions":{"resume_buffer_bytes":`+size+`}}`, map[string]string{"up": h.Entry()}), testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))
			c := testmcp.NewClient(t, p.URL, testmcp.Legacy)
			c.Header = http.Header{"Accept": {"text/event-stream, application/json"}}
			c.Open()
			list := func(n int) {
				for range n {
					if body := unread(t, c, "tools/list"); len(body) < 90_000 || bytes.Contains(body[:200], []byte("\nid: ")) != (buffer == "kept") {
						t.Fatalf("a list of %d bytes: %.200s", len(body), body)
					}
				}
			}
			list(rounds / 3)
			before := testmcp.RSS(p.PID())
			list(rounds)
			if kept := p.Metrics().Sum("mcp_proxy_resume_buffer_bytes"); kept > most || buffer == "off" && kept > 0 {
				t.Errorf("%v bytes are kept", kept)
			}
			if grown := testmcp.RSS(p.PID()) - before; grown > 24<<20 && !testmcp.Watched {
				t.Errorf("after %d lists the program has grown by %d MiB", rounds, grown>>20)
			}
		})
	}
}

// unread gives the body of a response that nothing has looked into.
func unread(t *testing.T, c *testmcp.Client, method string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.URL, strings.NewReader(c.Body(c.NextID(), method, "{}")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = c.HeadersFor(method, "{}")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Some clients open a stream each time they look, and leave the ones before open.
func TestAClientThatOpensManyStreams(t *testing.T) {
	t.Parallel()
	p, _ := start(t, "")
	c := p.Client(testmcp.Legacy)
	var streams []*testmcp.Stream
	for range 20 {
		s := c.Get("")
		s.Next()
		streams = append(streams, s)
	}
	open := func() float64 { return p.Metrics().Sum("mcp_proxy_streams", "kind", "get") }
	testmcp.Eventually(t, "end of the oldest streams", func() bool { return open() == 8 })
	echoes(t, c, "beside its streams")
	c.CallTool("up__change", "")
	streams[len(streams)-1].WaitMethod("notifications/tools/list_changed")
	told := 0
	for _, s := range streams {
		if slices.Contains(said(s.Events()), "notifications/tools/list_changed") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("%d streams tell of one change", told)
	}
	for _, s := range streams {
		s.Close()
	}
	testmcp.Eventually(t, "end of all streams", func() bool { return open() == 0 })
	echoes(t, c, "without streams")
}

// A client that only ever posts is as good as any: nothing is sent to it that it would have to answer.
func TestAClientThatNeverListens(t *testing.T) {
	t.Parallel()
	p, _ := start(t, `{"keep_alive":"100ms","sessions":{"idle_timeout":"200ms"}}`)
	c := p.Client(testmcp.Legacy)
	for range 3 {
		echoes(t, c, "a client that only posts")
		testmcp.Eventually(t, "end of the live state", func() bool { return p.Metrics().Sum("mcp_proxy_sessions", "era", "legacy") == 0 })
	}
	if n := p.Metrics().Sum("mcp_proxy_sessions_revived_total"); n != 2 {
		t.Errorf("%v revivals are counted", n)
	}
	if asked := c.Asked(); len(asked) != 0 {
		t.Errorf("the client was asked %v", asked)
	}
}

func TestMoreClientsThanSessions(t *testing.T) {
	t.Parallel()
	p, _ := start(t, `{"limits":{"max_sessions":5}}`)
	var all []*testmcp.Client
	for range 30 {
		all = append(all, p.Client(testmcp.Legacy))
	}
	for i, c := range all {
		echoes(t, c, fmt.Sprint("client ", i))
	}
	if n := p.Metrics().Sum("mcp_proxy_sessions", "era", "legacy"); n > 5 {
		t.Errorf("%v sessions are live", n)
	}
}

// Clients that lose their session's id, invent one, or bring that of another server.
func TestWithoutSessionsEveryRequestStandsAlone(t *testing.T) {
	t.Parallel()
	p, _ := start(t, `{"stream_after":"10ms","sessions":{"mode":"stateless"}}`)
	c := testmcp.NewClient(t, p.URL, testmcp.Legacy)
	a := c.Initialize()
	if a.Result() == nil || a.Header.Get("Mcp-Session-Id") != "" {
		t.Errorf("initialize gives %s, %v", a.Raw, a.Header)
	}
	for _, id := range []string{"", "invented", "00000000-0000-0000-0000-000000000000"} {
		c.Session = id
		echoes(t, c, "with the id "+id)
		if code := c.Notify("notifications/initialized", ""); code != http.StatusAccepted {
			t.Errorf("a notification gives %d", code)
		}
		if get, del := c.Get("").Status, c.Delete(); get != http.StatusMethodNotAllowed || del != http.StatusMethodNotAllowed {
			t.Errorf("GET gives %d and DELETE %d", get, del)
		}
	}
	if n := p.Metrics().Sum("mcp_proxy_sessions"); n != 0 {
		t.Errorf("%v sessions are kept", n)
	}
	c.Header = http.Header{"Mcp-Protocol-Version": {"1999-01-01"}}
	if code := status(c); code != http.StatusBadRequest {
		t.Errorf("an unknown revision gives %d", code)
	}
}
