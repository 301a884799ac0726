package httpd

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap/zapcore"

	"github.com/mcp-proxy/mcp-proxy/internal/auth"
	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// counted checks one series of a counter with the label reason.
func (h *house) counted(name, reason string, want float64) {
	h.t.Helper()
	families, err := h.reg.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == reason {
				if got := m.GetCounter().GetValue(); got != want {
					h.t.Errorf("%s{%s} is %v, want %v", name, reason, got, want)
				}
				return
			}
		}
	}
	h.t.Errorf("%s{%s} is missing", name, reason)
}

func TestEndpoints(t *testing.T) {
	h := open(t)
	for path, want := range map[string]string{
		"/mcp":                   "aggregate ",
		"/servers/u/mcp":         "server u",
		"/profiles/small/mcp":    "profile small",
		"/servers/a%2Fb%20c/mcp": "server a/b c",
		"/servers/50%2541/mcp":   "server 50%41",
	} {
		for _, slash := range []string{"", "/"} {
			for _, method := range []string{"POST", "GET", "DELETE", "PUT"} {
				a := h.ask(method, h.url+path+slash, "", "X-Forwarded-Proto: https")
				if a.StatusCode != http.StatusOK || a.body != want {
					t.Errorf("%s %s%s: HTTP %d %q, want %q", method, path, slash, a.StatusCode, a.body, want)
				}
			}
		}
	}
}

func TestNoSuchEndpoint(t *testing.T) {
	h := open(t)
	for _, path := range []string{
		"/mcp/x", "//mcp", "/MCP", "/servers/none/mcp", "/servers//mcp", "/servers/u", "/servers/50A/mcp", "/servers/u/mcp//",
		"/profiles/none/mcp", "/profiles/u/mcp", "/.well-known/oauth-protected-resource", "/-/reload",
	} {
		h.rpcError(h.post(path), http.StatusNotFound)
	}
	if len(h.mcp.got) > 0 {
		t.Errorf("%+v reached the protocol", h.mcp.got)
	}
}

func TestAuth(t *testing.T) {
	h := open(t, withTokens(""))
	for _, path := range []string{"/mcp", "/mcp/", "/servers/u/mcp", "/servers/none/mcp", "/profiles/other/mcp", "/metrics", "/", "/api/v1/status"} {
		for credential, challenge := range map[string]string{
			"":                     `Bearer realm="mcp-proxy"`,
			"Bearer wrong":         `Bearer realm="mcp-proxy", error="invalid_token"`,
			"Bearer ":              `Bearer realm="mcp-proxy", error="invalid_token"`,
			"Basic YTpi":           `Bearer realm="mcp-proxy", error="invalid_token"`,
			"bearer alice-secretx": `Bearer realm="mcp-proxy", error="invalid_token"`,
		} {
			var headers []string
			if credential != "" {
				headers = []string{"Authorization: " + credential}
			}
			a := h.get(path, headers...)
			e := h.rpcError(a, http.StatusUnauthorized)
			if got := a.Header.Get("WWW-Authenticate"); got != challenge {
				t.Errorf("%s with %q: WWW-Authenticate %q, want %q", path, credential, got, challenge)
			}
			if strings.Contains(e.Message, "secret") {
				t.Errorf("the message shows the credential: %q", e.Message)
			}
		}
	}
	if len(h.mcp.got) > 0 {
		t.Error("an unknown caller reached the protocol")
	}
	h.counted("mcp_proxy_http_refused_total", "no_credential", 8)
	h.counted("mcp_proxy_http_refused_total", "bad_credential", 32)
}

func TestCredentialEndsAtTheDoor(t *testing.T) {
	h := open(t, withTokens(""))
	if a := h.post("/mcp", "Authorization: bearer alice-secret", "X-Other: kept"); a.StatusCode != http.StatusOK {
		t.Fatalf("HTTP %d", a.StatusCode)
	}
	got := h.mcp.last(t)
	if got.who != (auth.Principal{Name: "alice"}) || got.header.Get("Authorization") != "" || got.header.Get("X-Other") != "kept" {
		t.Errorf("%+v, Authorization %q", got.who, got.header.Get("Authorization"))
	}
	h = open(t, withTokens("X-Proxy-Key"))
	h.post("/mcp", "X-Proxy-Key: alice-secret", "Authorization: Bearer for-an-upstream")
	if got = h.mcp.last(t); got.header.Get("X-Proxy-Key") != "" || got.header.Get("Authorization") != "Bearer for-an-upstream" {
		t.Errorf("X-Proxy-Key %q, Authorization %q", got.header.Get("X-Proxy-Key"), got.header.Get("Authorization"))
	}
	h = open(t)
	h.post("/mcp", "Authorization: Bearer for-an-upstream")
	if got = h.mcp.last(t); got.who != (auth.Principal{}) || got.header.Get("Authorization") == "" {
		t.Errorf("without auth: %+v, Authorization %q", got.who, got.header.Get("Authorization"))
	}
}

func TestAnotherHeaderIsNamed(t *testing.T) {
	h := open(t, withTokens("X-Proxy-Key"))
	e := h.rpcError(h.post("/mcp", "Authorization: Bearer alice-secret"), http.StatusUnauthorized)
	if !strings.Contains(e.Message, "X-Proxy-Key: <token>") {
		t.Errorf("the message is %q", e.Message)
	}
}

func TestProfileBoundCaller(t *testing.T) {
	h := open(t, withTokens(""))
	bob := "Authorization: Bearer bob-secret"
	for path, want := range map[string]string{
		"/mcp": "profile small", "/mcp/": "profile small", "/profiles/small/mcp": "profile small",
		"/profiles/other/mcp": "", "/servers/u/mcp": "", "/servers/none/mcp": "", "/profiles/none/mcp": "",
	} {
		a := h.post(path, bob)
		if want == "" {
			h.rpcError(a, http.StatusNotFound)
		} else if a.StatusCode != http.StatusOK || a.body != want {
			t.Errorf("%s: HTTP %d %q, want %q", path, a.StatusCode, a.body, want)
		}
	}
	if forbidden, absent := h.post("/servers/u/mcp", bob), h.post("/servers/none/mcp", bob); forbidden.body != absent.body {
		t.Errorf("forbidden and absent differ: %q, %q", forbidden.body, absent.body)
	}
	for _, path := range []string{"/", "/metrics", "/api/v1/status"} {
		h.rpcError(h.get(path, bob), http.StatusForbidden)
	}
}

func TestPreflight(t *testing.T) {
	h := open(t, withTokens("X-Proxy-Key"), proxyIs(func(p *config.Proxy) { p.AllowedOrigins = []string{"https://app.example.com"} }))
	for _, path := range []string{"/mcp", "/mcp/", "/servers/u/mcp", "/.well-known/oauth-protected-resource"} {
		a := h.ask("OPTIONS", h.url+path, "", "Origin: https://app.example.com", "Access-Control-Request-Method: POST",
			"Access-Control-Request-Headers: authorization, content-type, Mcp-Param-City, mcp-param-bad name, x-other")
		if a.StatusCode != http.StatusNoContent || a.body != "" {
			t.Fatalf("%s: HTTP %d %q", path, a.StatusCode, a.body)
		}
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin":      "https://app.example.com",
			"Access-Control-Allow-Methods":     "GET, POST, DELETE, OPTIONS",
			"Access-Control-Allow-Headers":     "authorization, content-type, accept, mcp-protocol-version, mcp-session-id, last-event-id, mcp-method, mcp-name, x-proxy-key, mcp-param-city",
			"Access-Control-Max-Age":           "3600",
			"Access-Control-Allow-Credentials": "",
		} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		if !strings.HasPrefix(a.Header.Get("Vary"), "Origin") {
			t.Errorf("Vary is %q", a.Header.Get("Vary"))
		}
	}
	if len(h.mcp.got) > 0 {
		t.Error("a preflight reached the protocol")
	}
}

func TestParamHeadersAreBounded(t *testing.T) {
	if n := strings.Count(paramHeaders([]string{strings.Repeat("mcp-param-a,", 1000)}), "mcp-param-a"); n != maxParamHeaders {
		t.Errorf("%d names, want %d", n, maxParamHeaders)
	}
}

func TestCORSOnRealAnswers(t *testing.T) {
	h := open(t, withTokens(""))
	origin := "Origin: http://localhost:6274"
	for what, a := range map[string]answer{
		"served":       h.post("/mcp", origin, "Authorization: Bearer alice-secret"),
		"unauthorized": h.post("/mcp", origin),
		"not found":    h.post("/nothing", origin),
	} {
		if a.Header.Get("Access-Control-Allow-Origin") != "http://localhost:6274" || a.Header.Get("Vary") != "Origin" ||
			a.Header.Get("Access-Control-Expose-Headers") != "Mcp-Session-Id, WWW-Authenticate" {
			t.Errorf("%s: %v", what, a.Header)
		}
	}
	// Pages for operators are for no other page to read.
	if a := h.get("/api/v1/status", origin, "Authorization: Bearer alice-secret"); a.StatusCode != http.StatusOK || a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("the status: HTTP %d, %v", a.StatusCode, a.Header)
	}
	if a := h.post("/mcp", "Authorization: Bearer alice-secret"); a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("CORS headers without an Origin: %v", a.Header)
	}
}

func TestDraining(t *testing.T) {
	h := open(t, func(_ *house, o *Options) { o.Draining = func() bool { return true } })
	if a := h.get("/readyz"); a.StatusCode != http.StatusServiceUnavailable || !strings.Contains(a.body, `"status":"draining"`) {
		t.Errorf("/readyz: HTTP %d %s", a.StatusCode, a.body)
	}
	if a := h.get("/healthz"); a.StatusCode != http.StatusOK {
		t.Errorf("/healthz: HTTP %d", a.StatusCode)
	}
	if h.post("/mcp"); len(h.mcp.got) != 1 {
		t.Error("the protocol does not hear what belongs to calls that still run")
	}
}

func TestAccessLog(t *testing.T) {
	h := open(t, withTokens(""))
	h.post("/mcp?key=s3cr3t", "Authorization: Bearer alice-secret", "Cookie: s3cr3t")
	h.get("/nothing?key=s3cr3t")
	h.get("/mcp?key=s3cr3t", "Authorization: Bearer s3cr3t")
	records := h.log.FilterMessage("request").All()
	if len(records) != 3 {
		t.Fatalf("%d records, want 3", len(records))
	}
	for i, want := range []struct {
		level  zapcore.Level
		path   string
		status int64
	}{{zapcore.DebugLevel, "/mcp", 200}, {zapcore.DebugLevel, "/nothing", 404}, {zapcore.InfoLevel, "/mcp", 401}} {
		fields := records[i].ContextMap()
		if records[i].Level != want.level || fields["path"] != want.path || fields["status"] != want.status {
			t.Errorf("record %d: %v %v, want %+v", i, records[i].Level, fields, want)
		}
		for k, v := range fields {
			if s, ok := v.(string); ok && strings.Contains(s, "secret") || strings.Contains(k, "s3cr3t") || v == "s3cr3t" {
				t.Errorf("record %d shows a secret: %v", i, fields)
			}
		}
	}
}

func TestAccessLogAtInfo(t *testing.T) {
	h := open(t, loggingAt(zapcore.InfoLevel))
	h.post("/mcp")
	h.post("/mcp", "Origin: http://evil.example")
	if n := h.log.FilterMessage("request").Len(); n != 1 {
		t.Errorf("%d records, want the refused request only", n)
	}
}

func TestNewRefuses(t *testing.T) {
	good := Options{Registry: prometheus.NewRegistry(), Auth: auth.New(config.Auth{}), MCP: &fakeMCP{}, Status: func() Status { return Status{} }, Listen: "127.0.0.1:1"}
	for what, spoil := range map[string]func(*Options){
		"no registry": func(o *Options) { o.Registry = nil },
		"no auth":     func(o *Options) { o.Auth = nil },
		"no MCP":      func(o *Options) { o.MCP = nil },
		"no status":   func(o *Options) { o.Status = nil },
		"no address":  func(o *Options) { o.Listen = "" },
		"bad address": func(o *Options) { o.Listen = "8080" },
		"bad admin":   func(o *Options) { o.AdminListen = "localhost" },
	} {
		o := good
		spoil(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	for range 2 { // a reload makes a second door on the same registry
		d, err := New(good)
		if err != nil {
			t.Fatal(err)
		}
		if d.Admin() != nil {
			t.Error("an admin handler without an admin listener")
		}
	}
}

func TestMetricsLint(t *testing.T) {
	h := open(t)
	problems, err := testutil.GatherAndLint(h.reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	if n, err := testutil.GatherAndCount(h.reg, "mcp_proxy_http_refused_total"); err != nil || n != 5 {
		t.Errorf("%d series before the first refusal, want 5 (%v)", n, err)
	}
}
