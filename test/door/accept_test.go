package door

import (
	"net/http"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestAcceptVariants: real clients name both types, one of them, a wildcard or nothing at all.
func TestAcceptVariants(t *testing.T) {
	t.Parallel()
	p, _ := one(t, "")
	tests := []struct {
		accept string
		json   bool // the form of an answer that nothing precedes
		status int
	}{
		{"", true, 200},
		{"application/json", true, 200},
		{"Application/JSON", true, 200},
		{"text/event-stream", false, 200},
		{"*/*", true, 200},
		{"application/json, text/event-stream", true, 200},
		{"text/event-stream, application/json", false, 200},
		{"application/json;q=0.9, text/event-stream", false, 200},
		{"text/event-stream;q=0.9, application/json", true, 200},
		{"text/event-stream;q=0.5,application/json;q=0.5", false, 200},
		{"application/*", true, 200},
		{"application/json;q=0, text/event-stream", false, 200},
		{"text/html, application/xhtml+xml, */*;q=0.8", true, 200},
		{"text/html", true, 406},
		{"application/json;q=0", true, 406},
	}
	for _, tt := range tests {
		t.Run("legacy initialize, "+tt.accept, func(t *testing.T) {
			c := testmcp.NewClient(t, p.URL, testmcp.Legacy)
			c.Header["Accept"] = []string{tt.accept}
			wantForm(t, c.Initialize(), tt.status, tt.json)
		})
		for _, e := range eras {
			t.Run(e.name+", "+tt.accept, func(t *testing.T) {
				c := p.Client(e.era)
				c.Header["Accept"] = []string{tt.accept}
				wantForm(t, c.Try("tools/list", ""), tt.status, tt.json)
				wantForm(t, c.Try("tools/call", testmcp.ToolParams("up__echo", `{"text":"x"}`)), tt.status, tt.json)
			})
		}
	}
}

func wantForm(t *testing.T, a testmcp.Answer, status int, json bool) {
	t.Helper()
	if a.Status != status || isJSON(a) != json || isStream(a.Header) == json {
		t.Fatalf("HTTP %d, type %q; want HTTP %d, JSON %v: %s", a.Status, a.Header.Get("Content-Type"), status, json, a.Body)
	}
	if status != http.StatusOK {
		wantRefusal(t, a, status, codeInvalidRequest, "null")
	} else if a.Result() == nil {
		t.Errorf("the answer has no result: %s", a.Raw)
	}
}

// TestClientsThatTakeOnlyJSONGetJSON: their progress is dropped and counted, and no stream begins however long it takes.
func TestClientsThatTakeOnlyJSONGetJSON(t *testing.T) {
	t.Parallel()
	p, rec := one(t, `{"stream_after":"10ms","keep_alive":"100ms"}`)
	for n, e := range eras {
		t.Run(e.name, func(t *testing.T) {
			c := p.Client(e.era)
			c.Header["Accept"] = []string{"application/json"}
			answer := c.Begin("tools/call", `{"_meta":{"progressToken":1},"name":"up__says","arguments":{"text":"x","steps":3,"signal":"`+e.name+`"}}`)
			dropped := func() float64 { return p.Metrics().Sum("mcp_proxy_dropped_total", "what", "notification") }
			testmcp.Eventually(t, "two dropped notifications", func() bool { return dropped() >= float64(2+3*n) })
			rec.Signal(e.name)
			a := answer.Final()
			wantText(t, a, "x")
			if !isJSON(a) || len(a.Before) != 0 {
				t.Errorf("the answer has the type %q and %d events in front of it", a.Header.Get("Content-Type"), len(a.Before))
			}
			if got, want := dropped(), float64(3+3*n); got != want {
				t.Errorf("%v notifications are counted as dropped, want %v", got, want)
			}
		})
	}
}

// TestContentTypesOfRequests: parameters and case do not matter, another type does.
func TestContentTypesOfRequests(t *testing.T) {
	t.Parallel()
	p, _ := one(t, "")
	tests := []struct {
		kind   string
		status int
	}{
		{"application/json", 200},
		{"Application/JSON; charset=UTF-8", 200},
		{"application/json;charset=utf-8", 200},
		{"application/json ; x=y", 200},
		{"text/plain", 415},
		{"application/x-www-form-urlencoded", 415},
		{"application/jsonp", 415},
		{"", 415},
	}
	for _, e := range eras {
		c := p.Client(e.era)
		for _, tt := range tests {
			t.Run(e.name+", "+tt.kind, func(t *testing.T) {
				a := post(c, c.Body("1", "tools/call", testmcp.ToolParams("up__echo", `{"text":"x"}`)), "tools/call",
					testmcp.ToolParams("up__echo", ""), "Content-Type", tt.kind)
				if tt.status != http.StatusOK {
					wantRefusal(t, a, tt.status, codeInvalidRequest, "null")
					return
				}
				wantText(t, a, "x")
			})
		}
	}
}

// TestContentTypesOfUpstreams: servers add parameters, in capitals too.
func TestContentTypesOfUpstreams(t *testing.T) {
	t.Parallel()
	servers := map[string]string{}
	for name, opt := range map[string]testmcp.HTTPOptions{
		"json":    {JSONType: "application/json;charset=utf-8"},
		"capital": {JSONType: "Application/JSON; charset=UTF-8"},
		"events":  {EventType: "text/event-stream; charset=utf-8", Answers: testmcp.AsEvents},
		"Events":  {EventType: "Text/Event-Stream;charset=UTF-8", Answers: testmcp.AsEvents},
	} {
		servers[name+"-legacy"] = testmcp.ServeHTTP(t, server([]string{"legacy"}), opt).Entry()
		servers[name+"-modern"] = testmcp.ServeHTTP(t, server([]string{"modern"}), opt).Entry()
	}
	p := start(t, "", servers)
	for name := range servers {
		for _, e := range eras {
			t.Run(e.name+", "+name, func(t *testing.T) {
				wantText(t, p.Client(e.era).CallTool(name+"__echo", `{"text":"x"}`), "x")
			})
		}
	}
}
