package door

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestVerbsAndTheirRefusals: GET and DELETE belong to a legacy session, and what is wrong is told by the status.
func TestVerbsAndTheirRefusals(t *testing.T) {
	t.Parallel()
	p, _ := one(t, "")
	c := p.Client(testmcp.Legacy)
	tests := []struct {
		name, verb string
		edits      []string
		status     int
	}{
		{"GET without session", http.MethodGet, []string{"Mcp-Session-Id", ""}, 405},
		{"DELETE without session", http.MethodDelete, []string{"Mcp-Session-Id", ""}, 405},
		{"GET of a stateless client", http.MethodGet, []string{"Mcp-Session-Id", "", "Mcp-Protocol-Version", testmcp.Rev2607}, 405},
		{"GET with a stateless version", http.MethodGet, []string{"Mcp-Protocol-Version", testmcp.Rev2607}, 405},
		{"DELETE with a stateless version", http.MethodDelete, []string{"Mcp-Protocol-Version", testmcp.Rev2607}, 405},
		{"PUT", http.MethodPut, nil, 405},
		{"PATCH", http.MethodPatch, nil, 405},
		{"GET of an unknown session", http.MethodGet, []string{"Mcp-Session-Id", "0123456789abcdef"}, 404},
		{"GET of a malformed session", http.MethodGet, []string{"Mcp-Session-Id", "../../x y"}, 404},
		{"DELETE of an unknown session", http.MethodDelete, []string{"Mcp-Session-Id", "0123456789abcdef"}, 404},
		{"GET with an unknown version", http.MethodGet, []string{"Mcp-Protocol-Version", "2025-01-01"}, 400},
		{"GET that takes only JSON", http.MethodGet, []string{"Accept", "application/json"}, 406},
		{"GET that takes only HTML", http.MethodGet, []string{"Accept", "text/html"}, 406},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := c.HeadersFor("", "")
			h.Set("Accept", "text/event-stream")
			a := c.Do(tt.verb, "", edited(h, tt.edits)).Final()
			wantRefusal(t, a, tt.status, codeInvalidRequest, "null")
			if allow := a.Header.Get("Allow"); tt.status == http.StatusMethodNotAllowed && !strings.Contains(allow, "POST") {
				t.Errorf("Allow is %q", allow)
			}
		})
	}
	if status := c.Notify("notifications/initialized", ""); status != http.StatusAccepted {
		t.Errorf("after all this the session answers HTTP %d", status)
	}
}

// wantStreamHeaders: nothing on the way may hold a stream back or compress it.
func wantStreamHeaders(t *testing.T, s *testmcp.Stream) {
	t.Helper()
	if s.Status != http.StatusOK || !isStream(s.Header) {
		t.Fatalf("HTTP %d, type %q", s.Status, s.Header.Get("Content-Type"))
	}
	wantTokens(t, s.Header.Get("Cache-Control"), "no-cache", "no-transform")
	if s.Header.Get("X-Accel-Buffering") != "no" || s.Header.Get("Content-Encoding") != "" || s.Header.Get("Content-Length") != "" {
		t.Errorf("the headers of the stream are %v", s.Header)
	}
}

// TestStandingStreamsStayAlive: with the right headers, at once, and a comment now and then.
func TestStandingStreamsStayAlive(t *testing.T) {
	t.Parallel()
	p, _ := one(t, `{"keep_alive":"100ms"}`)
	streams := map[string]*testmcp.Stream{
		"get":    p.Client(testmcp.Legacy).Get(""),
		"listen": p.Client(testmcp.Modern).Listen(`{"toolsListChanged":true}`),
	}
	for kind, s := range streams {
		wantStreamHeaders(t, s)
		if !s.WaitComments(4) {
			t.Errorf("%s: the stream ended after %d comments: %v", kind, s.Comments(), s.Err())
		}
		if n := p.Metrics().Sum("mcp_proxy_streams", "kind", kind); n != 1 {
			t.Errorf("%v streams are counted as %s, want 1", n, kind)
		}
		s.Close()
	}
	for kind := range streams {
		testmcp.Eventually(t, "end of the stream in the metrics", func() bool { return p.Metrics().Sum("mcp_proxy_streams", "kind", kind) == 0 })
	}
}

// TestSilentCallsBecomeStreamsThatStayAlive: nothing on the way may take the silence for the end.
func TestSilentCallsBecomeStreamsThatStayAlive(t *testing.T) {
	t.Parallel()
	p, recs := everywhere(t, `{"stream_after":"50ms","keep_alive":"100ms"}`)
	for _, e := range eras {
		for i, pl := range places {
			t.Run(e.name+", "+pl.name, func(t *testing.T) {
				t.Parallel()
				s := p.Client(e.era).Start("tools/call", testmcp.ToolParams(fmt.Sprintf("up%d__hold", i), fmt.Sprintf(`{"text":"x","signal":%q}`, e.name)))
				wantStreamHeaders(t, s)
				if !s.WaitComments(4) || s.Over() {
					t.Errorf("%d comments, over: %v", s.Comments(), s.Over())
				}
				recs[i].Signal(e.name)
				wantText(t, s.Final(), "x")
				if !s.WaitOver() || s.Err() != nil {
					t.Errorf("the stream did not end in good order after its answer: %v", s.Err())
				}
			})
		}
	}
}

// TestStreamsBeginAsTheRevisionWants: from 2025-11-25 on with an event that only carries an id, so that a client can come
// back to a stream that has said nothing yet; clients of older revisions take its empty data for a broken message.
func TestStreamsBeginAsTheRevisionWants(t *testing.T) {
	t.Parallel()
	p, rec := one(t, `{"stream_after":"50ms","keep_alive":"100ms"}`)
	for version, primed := range map[string]bool{testmcp.Rev2503: false, testmcp.Rev2506: false, testmcp.Rev2511: true, testmcp.Rev2607: false} {
		t.Run(version, func(t *testing.T) {
			c := p.Client(testmcp.Modern)
			if version != testmcp.Rev2607 {
				c = at(t, p.URL, version)
			}
			streams := []*testmcp.Stream{c.Start("tools/call", testmcp.ToolParams("up__hold", `{"text":"x","signal":"`+version+`"}`))}
			if version != testmcp.Rev2607 {
				streams = append(streams, stand(t, c))
			}
			for i, s := range streams {
				s.WaitComments(1)
				events := s.Events()
				if !primed && len(events) != 0 || primed && (len(events) != 1 || events[0].ID == "" || len(events[0].Data) != 0) {
					t.Errorf("stream %d begins with %+v", i, events)
				}
			}
			rec.Signal(version)
			wantText(t, streams[0].Final(), "x")
		})
	}
}

// TestQuickCallsAreAnsweredAsJSON: a stream only where something streams.
func TestQuickCallsAreAnsweredAsJSON(t *testing.T) {
	t.Parallel()
	p, _ := everywhere(t, "")
	for _, e := range eras {
		c := p.Client(e.era)
		for i, pl := range places {
			t.Run(e.name+", "+pl.name, func(t *testing.T) {
				if a := c.CallTool(fmt.Sprintf("up%d__echo", i), `{"text":"x"}`); !isJSON(a) {
					t.Errorf("the answer has the type %q", a.Header.Get("Content-Type"))
				}
				a := c.Call("tools/call", fmt.Sprintf(`{"_meta":{"progressToken":1},"name":"up%d__says","arguments":{"text":"x"}}`, i))
				if len(messages(a.Before)) != 1 || !isStream(a.Header) {
					t.Errorf("with progress the answer has the type %q and %d messages in front of it", a.Header.Get("Content-Type"), len(messages(a.Before)))
				}
			})
		}
	}
}

// TestTooManyStreamsAreRefusedAndCounted: the ones that are open stay open.
func TestTooManyStreamsAreRefusedAndCounted(t *testing.T) {
	t.Parallel()
	p, _ := one(t, `{"limits":{"max_streams":2},"keep_alive":"100ms"}`)
	legacy, modern := p.Client(testmcp.Legacy), p.Client(testmcp.Modern)
	first, second := legacy.Get(""), modern.Listen(`{}`)
	for name, s := range map[string]*testmcp.Stream{"GET": legacy.Get(""), "listen": modern.Listen(`{}`)} {
		a := s.Final()
		if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" || !strings.Contains(string(a.Body), "max_streams") {
			t.Errorf("%s: HTTP %d %s", name, a.Status, a.Body)
		}
	}
	if n := p.Metrics().Sum("mcp_proxy_limit_exceeded_total", "limit", "streams"); n != 2 {
		t.Errorf("%v streams are counted as too many, want 2", n)
	}
	for _, s := range []*testmcp.Stream{first, second} {
		if !s.WaitComments(s.Comments() + 2) {
			t.Errorf("a stream that was open has ended: %v", s.Err())
		}
	}
}
