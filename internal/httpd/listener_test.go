package httpd

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func TestSplitHost(t *testing.T) {
	for in, want := range map[string]hostPort{
		"":                  {"", ""},
		"localhost":         {"localhost", ""},
		"LocalHost.:8080":   {"localhost", "8080"},
		"127.0.0.1:80":      {"127.0.0.1", "80"},
		"[::1]:8080":        {"::1", "8080"},
		"[::1]":             {"::1", ""},
		"::1":               {"::1", ""},
		"mcp.example.com.":  {"mcp.example.com", ""},
		"mcp.example.com:":  {"mcp.example.com", ""},
		"[":                 {"[", ""},
		"[]:1":              {"", "1"},
		"a:b:c":             {"a:b:c", ""},
		"localhost:80@evil": {"localhost", "80@evil"},
	} {
		if got := splitHost(in); got != want {
			t.Errorf("%q: %+v, want %+v", in, got, want)
		}
	}
}

func TestHosts(t *testing.T) {
	named := []string{"MCP.example.com", "exact.example.com:8443"}
	cases := []struct {
		listen, public string
		allowed        []string
		yes, no        []string
	}{
		{
			"127.0.0.1:8080", "", nil,
			[]string{"localhost", "localhost:8080", "LOCALHOST:9", "127.0.0.1", "127.0.0.1:8080", "127.8.9.1", "[::1]:8080", "[::ffff:127.0.0.1]"},
			[]string{"", "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1:8080", "0.0.0.0", "1270.0.1", "mcp.example.com"},
		},
		{
			"localhost:8080", "", named,
			[]string{"localhost:8080", "mcp.example.com", "mcp.example.com:443", "Mcp.Example.Com.", "exact.example.com:8443"},
			[]string{"evil.example", "exact.example.com", "exact.example.com:443", "x.mcp.example.com", "mcp.example.com.evil.example"},
		},
		{
			"127.0.0.1:8080", "https://pub.example.com/mcp", nil,
			[]string{"pub.example.com", "pub.example.com:443", "localhost"},
			[]string{"evil.example"},
		},
		{"0.0.0.0:8080", "", nil, []string{"", "evil.example", "10.0.0.1"}, nil},
		{":8080", "https://pub.example.com", nil, []string{"evil.example", "pub.example.com"}, nil},
		{"[::]:8080", "https://pub.example.com", named, []string{"mcp.example.com", "pub.example.com"}, []string{"", "evil.example", "localhost", "10.0.0.1", "0.0.0.0", "[::]"}},
		{"192.0.2.7:8080", "", named, []string{"192.0.2.7:8080", "mcp.example.com"}, []string{"192.0.2.8:8080"}},
	}
	for _, c := range cases {
		l, err := newListener(c.listen, config.Proxy{AllowedHosts: c.allowed, PublicURL: c.public}, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range c.yes {
			if !l.hostAllowed(h) {
				t.Errorf("listening on %s with %v: Host %q is refused", c.listen, c.allowed, h)
			}
		}
		for _, h := range c.no {
			if l.hostAllowed(h) {
				t.Errorf("listening on %s with %v: Host %q is let in", c.listen, c.allowed, h)
			}
		}
	}
}

func TestOrigins(t *testing.T) {
	listed := []string{"https://App.example.com/", "https://default.example.com:443", "vscode-webview://panel"}
	cases := []struct {
		listen, host string
		authed       bool
		allowed      []string
		yes, no      []string
	}{
		{
			"127.0.0.1:8080", "127.0.0.1:8080", false, nil,
			[]string{"http://127.0.0.1:8080", "http://localhost", "http://localhost:6274", "https://localhost:3000", "http://[::1]:5173"},
			[]string{
				"", "null", "http://evil.example", "http://localhost.evil.example", "http://127.0.0.1.evil.example:8080",
				"http://localhost:80@evil.example", "http://evil.example/localhost", "file://", "localhost", "//localhost",
				"ftp://localhost", "http://localhost http://evil.example", "http://",
			},
		},
		{
			"127.0.0.1:8080", "localhost:8080", false, listed,
			[]string{"https://app.example.com", "https://default.example.com", "vscode-webview://panel"},
			[]string{
				"http://app.example.com", "https://app.example.com:8443", "https://app.example.com.evil.example",
				"https://x.app.example.com", "vscode-webview://other", "https://app.example.com/",
			},
		},
		// Behind TLS, and with the default port left out.
		{"127.0.0.1:8080", "mcp.example.com", false, nil, []string{"https://mcp.example.com", "http://mcp.example.com"}, []string{"https://mcp.example.com:8443"}},
		// Anybody can point a name at us, so the name of an unrestricted listener proves nothing...
		{"0.0.0.0:8080", "evil.example:8080", false, nil, nil, []string{"http://evil.example:8080", "http://localhost:3000"}},
		// ...unless there is a credential that such a page does not have, or no name at all.
		{"0.0.0.0:8080", "mcp.example.com", true, nil, []string{"https://mcp.example.com"}, []string{"http://localhost:3000", "https://other.example.com"}},
		{"0.0.0.0:8080", "192.0.2.7:8080", false, nil, []string{"http://192.0.2.7:8080"}, []string{"http://192.0.2.7", "http://192.0.2.8:8080"}},
	}
	for _, c := range cases {
		l, err := newListener(c.listen, config.Proxy{AllowedOrigins: c.allowed}, c.authed)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range c.yes {
			if !l.originAllowed([]string{o}, c.host) {
				t.Errorf("listening on %s, Host %s: Origin %q is refused", c.listen, c.host, o)
			}
		}
		for _, o := range c.no {
			if l.originAllowed([]string{o}, c.host) {
				t.Errorf("listening on %s, Host %s: Origin %q is let in", c.listen, c.host, o)
			}
		}
		if l.originAllowed([]string{"http://localhost", "http://localhost"}, c.host) {
			t.Error("two Origin headers are let in")
		}
	}
}

func TestPublicURLIsAnAllowedOrigin(t *testing.T) {
	l, err := newListener("0.0.0.0:8080", config.Proxy{PublicURL: "https://pub.example.com/gateway"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if !l.originAllowed([]string{"https://pub.example.com"}, "10.0.0.1:8080") {
		t.Error("the origin of public_url is refused")
	}
}

func TestHostIsChecked(t *testing.T) {
	h := open(t, proxyIs(func(p *config.Proxy) { p.AllowedHosts = []string{"mcp.example.com"} }))
	for _, path := range []string{"/mcp", "/servers/u/mcp", "/", "/metrics", "/api/v1/status", "/nothing"} {
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS", "PUT"} {
			e := h.rpcError(h.ask(method, h.url+path, "", "Host: evil.example"), http.StatusForbidden)
			if !strings.Contains(e.Message, "proxy.allowed_hosts") {
				t.Errorf("the message is %q", e.Message)
			}
		}
	}
	for _, host := range []string{"mcp.example.com", "mcp.example.com:443", "localhost:8080", "127.0.0.1"} {
		if a := h.post("/mcp", "Host: "+host); a.StatusCode != http.StatusOK {
			t.Errorf("Host %s: HTTP %d", host, a.StatusCode)
		}
	}
	record := h.log.FilterFieldKey("why").All()[0]
	if why := record.ContextMap()["why"].(string); !strings.Contains(why, "evil.example") || !strings.Contains(why, "proxy.allowed_hosts") {
		t.Errorf("the log says %q", why)
	}
	h.counted("mcp_proxy_http_refused_total", "host", 30)
}

// A platform's probe addresses us by an IP that nobody has configured.
func TestProbesNeedNoAllowedHost(t *testing.T) {
	h := open(t, listening("0.0.0.0:8080"), proxyIs(func(p *config.Proxy) { p.AllowedHosts = []string{"mcp.example.com"} }))
	h.status.Upstreams = []Upstream{{ID: "hidden", State: "ready"}}
	for _, path := range []string{"/healthz", "/readyz", "/readyz/"} {
		a := h.get(path, "Host: 10.1.2.3:8080")
		if a.StatusCode != http.StatusOK || strings.Contains(a.body, "hidden") {
			t.Errorf("%s: HTTP %d %s", path, a.StatusCode, a.body)
		}
	}
}

func TestOriginIsChecked(t *testing.T) {
	h := open(t, proxyIs(func(p *config.Proxy) { p.AllowedOrigins = []string{"https://app.example.com"} }))
	for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
		for _, origin := range []string{"http://evil.example", "http://app.example.com", "null"} {
			a := h.ask(method, h.url+"/mcp", "", "Origin: "+origin, "Access-Control-Request-Method: POST")
			if e := h.rpcError(a, http.StatusForbidden); !strings.Contains(e.Message, "proxy.allowed_origins") {
				t.Errorf("the message is %q", e.Message)
			}
			if v := a.Header.Get("Access-Control-Allow-Origin"); v != "" {
				t.Errorf("%s from %s is refused and yet has Access-Control-Allow-Origin %q", method, origin, v)
			}
		}
	}
	if len(h.mcp.got) > 0 {
		t.Error("a refused request reached the protocol")
	}
	for _, origin := range []string{"https://app.example.com", "http://localhost:6274", h.url} {
		if a := h.post("/mcp", "Origin: "+origin); a.StatusCode != http.StatusOK {
			t.Errorf("Origin %s: HTTP %d", origin, a.StatusCode)
		}
	}
}

func FuzzOrigin(f *testing.F) {
	for _, s := range []string{"http://localhost:1", "null", "https://[::1]", "http://127.0.0.1.evil", "http://a@localhost", "http://localhost\\evil"} {
		f.Add(s)
	}
	l, err := newListener("127.0.0.1:8080", config.Proxy{}, false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !l.originAllowed([]string{s}, "127.0.0.1:8080") {
			return
		}
		o, ok := parseOrigin(s)
		if !ok || o.scheme != "http" && o.scheme != "https" || !isLoopback(o.name) || strings.ContainsAny(s, "@/\\?# ") && strings.Count(s, "/") != 2 {
			t.Fatalf("%q was let in", s)
		}
	})
}
