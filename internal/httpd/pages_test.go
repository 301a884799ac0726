package httpd

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"

	"github.com/mcp-proxy/mcp-proxy/internal/auth"
)

// trouble is a status with everything in it, some of it hostile.
func trouble() Status {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return Status{
		Status: StatusReady, Ready: true, Uptime: "1m0s", Sessions: 3,
		Upstreams: []Upstream{
			{ID: "good", State: "ready", Transport: "stdio", Era: "modern", ServerName: "<script>alert(1)</script>", Tools: 4711, Slots: map[string]int{"ready": 1}},
			{ID: "bad", State: "failed", LastError: &Failure{"handshake", `exit 1: "missing" <API_KEY>`, at}, NextRetry: &at, Restarts: 9, Hints: []string{"set API_KEY"}, Stderr: []string{"</pre><b>x"}},
		},
		Names: []Name{{Exposed: "good__echo", Upstream: "good", Wire: "echo", Kind: "tool", Length: 10}},
	}
}

func operatorPages() []string {
	return []string{"/metrics", "/", "/api/v1/status", "/api/v1/status/", "/metrics/"}
}

func TestPagesOnTheMainListener(t *testing.T) {
	h := open(t)
	h.status = trouble()
	for _, path := range append(operatorPages(), "/healthz", "/healthz/", "/readyz", "/readyz/") {
		if a := h.get(path); a.StatusCode != http.StatusOK || a.body == "" {
			t.Errorf("GET %s: HTTP %d", path, a.StatusCode)
		}
		if a := h.ask("HEAD", h.url+path, ""); a.StatusCode != http.StatusOK {
			t.Errorf("HEAD %s: HTTP %d", path, a.StatusCode)
		}
		if a := h.post(path); a.StatusCode != http.StatusMethodNotAllowed || !strings.Contains(strings.Join(a.Header.Values("Allow"), ","), "GET") {
			t.Errorf("POST %s: HTTP %d, Allow %q", path, a.StatusCode, a.Header.Values("Allow"))
		}
	}
	if a := h.get("/metrics", "Accept-Encoding: gzip"); !strings.Contains(a.body, "mcp_proxy_http_refused_total") {
		t.Errorf("/metrics shows %.100q", a.body)
	}
}

// An admin listener with credentials of its own knows nobody else, wherever it listens.
func TestAnAdminListenerWithCredentialsOfItsOwn(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:9090", "0.0.0.0:9090"} {
		h := open(t, withTokens(""), func(_ *house, o *Options) {
			o.AdminListen = addr
			o.AdminAuth = auth.New(config.Auth{Mode: config.AuthTokens, Header: "X-Ops", Tokens: []config.Token{{Name: "ops", Token: "ops-secret"}}})
			o.Reload = func(context.Context) error { return nil }
		})
		h.status = trouble()
		for who, want := range map[string]int{"X-Ops: ops-secret": http.StatusOK, "X-Ops: alice-secret": http.StatusUnauthorized,
			"Authorization: Bearer alice-secret": http.StatusUnauthorized, "Authorization: Bearer ops-secret": http.StatusUnauthorized, "X-None: 1": http.StatusUnauthorized} {
			for _, path := range operatorPages() {
				if a := h.ask("GET", h.admin+path, "", who); a.StatusCode != want {
					t.Errorf("%s: %s with %q: HTTP %d", addr, path, who, a.StatusCode)
				}
			}
			if a := h.ask("POST", h.admin+"/-/reload", "", who); a.StatusCode != want {
				t.Errorf("%s: a reload with %q: HTTP %d", addr, who, a.StatusCode)
			}
			if a := h.ask("GET", h.admin+"/readyz", "", who); a.StatusCode != http.StatusOK || strings.Contains(a.body, `"bad"`) != (want == http.StatusOK) {
				t.Errorf("%s: /readyz with %q: HTTP %d %s", addr, who, a.StatusCode, a.body)
			}
		}
		if a := h.ask("GET", h.admin+"/healthz", ""); a.StatusCode != http.StatusOK {
			t.Errorf("%s: /healthz: HTTP %d", addr, a.StatusCode)
		}
		if a := h.ask("GET", h.admin+"/", "", "Accept: text/html", "Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("me:ops-secret"))); a.StatusCode != http.StatusOK {
			t.Errorf("%s: a browser with the password: HTTP %d", addr, a.StatusCode)
		}
		// Clients go on with their own.
		h.rpcError(h.ask("POST", h.url+"/mcp", "", "X-Ops: ops-secret"), http.StatusUnauthorized)
	}
}

func TestPagesMoveToTheAdminListener(t *testing.T) {
	h := open(t, withTokens(""), withAdmin, func(_ *house, o *Options) { o.Reload = func(context.Context) error { return nil } })
	h.status = trouble()
	alice := "Authorization: Bearer alice-secret"
	for _, path := range operatorPages() {
		if a := h.ask("GET", h.admin+path, ""); a.StatusCode != http.StatusOK {
			t.Errorf("%s on the admin listener: HTTP %d", path, a.StatusCode)
		}
		h.rpcError(h.get(path, alice), http.StatusNotFound)
	}
	h.rpcError(h.ask("POST", h.url+"/-/reload", "", alice), http.StatusNotFound)
	h.rpcError(h.ask("POST", h.admin+"/mcp", "", alice), http.StatusNotFound)
	if a := h.ask("POST", h.admin+"/-/reload", "", alice); a.StatusCode != http.StatusOK {
		t.Errorf("reload on the admin listener: HTTP %d", a.StatusCode)
	}
	h.rpcError(h.ask("POST", h.admin+"/-/reload", ""), http.StatusUnauthorized)
	h.rpcError(h.ask("GET", h.admin+"/api/v1/status", "", "Host: evil.example"), http.StatusForbidden)
	if a := h.ask("GET", h.admin+"/readyz", ""); !strings.Contains(a.body, `"bad"`) {
		t.Errorf("/readyz on the admin listener: %s", a.body)
	}
	if a := h.get("/readyz", alice); a.StatusCode != http.StatusOK || strings.TrimSpace(a.body) != `{"status":"ready"}` {
		t.Errorf("/readyz on the main listener: HTTP %d %s", a.StatusCode, a.body)
	}
	for _, base := range []string{h.url, h.admin} {
		if a := h.ask("GET", base+"/healthz", ""); a.StatusCode != http.StatusOK {
			t.Errorf("/healthz: HTTP %d", a.StatusCode)
		}
	}
}

func TestToolsWithoutTheProtocolAreWherePagesAre(t *testing.T) {
	echo := func(_ *house, o *Options) {
		o.Tool = func(w http.ResponseWriter, r *http.Request, ep Endpoint, who auth.Principal, tool string) {
			_, _ = io.WriteString(w, strings.Join([]string{tool, string(ep.Kind), ep.Name, who.Name, r.Header.Get("Authorization")}, "|"))
		}
	}
	const path = "/api/v1/tools/a__t%25x/call"
	alice, bob := "Authorization: Bearer alice-secret", "Authorization: Bearer bob-secret"
	for _, admin := range []bool{false, true} {
		changes := []change{withTokens(""), echo}
		if admin {
			changes = append(changes, withAdmin)
		}
		h := open(t, changes...)
		base := h.url
		if admin {
			base = h.admin
			h.rpcError(h.ask("POST", h.url+path, "{}", alice), http.StatusNotFound)
		}
		for _, c := range []struct{ query, token, want string }{
			{"", alice, "a__t%x|aggregate||alice|"}, {"?profile=small", alice, "a__t%x|profile|small|alice|"}, {"", bob, "a__t%x|profile|small|bob|"}, {"?profile=small", bob, "a__t%x|profile|small|bob|"},
		} {
			if a := h.ask("POST", base+path+c.query, "{}", c.token); a.body != c.want {
				t.Errorf("%q: HTTP %d %s, want %s", c.query, a.StatusCode, a.body, c.want)
			}
		}
		h.rpcError(h.ask("POST", base+path, "{}"), http.StatusUnauthorized)
		h.rpcError(h.ask("POST", base+path+"?profile=other", "{}", bob), http.StatusNotFound)
		h.rpcError(h.ask("POST", base+path+"?profile=none", "{}", alice), http.StatusNotFound)
		h.rpcError(h.ask("POST", base+path, "{}", alice, "Origin: http://elsewhere.example"), http.StatusForbidden)
		if a := h.ask("GET", base+path, "", alice); a.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("GET: HTTP %d", a.StatusCode)
		}
	}
	h := open(t)
	h.rpcError(h.ask("POST", h.url+path, "{}"), http.StatusNotFound)
}

func TestAdminListenerForEverybodyNeedsTheCredential(t *testing.T) {
	h := open(t, withTokens(""), func(_ *house, o *Options) { o.AdminListen = "0.0.0.0:9090" })
	h.status = trouble()
	for _, path := range operatorPages() {
		h.rpcError(h.ask("GET", h.admin+path, ""), http.StatusUnauthorized)
		if a := h.ask("GET", h.admin+path, "", "Authorization: Bearer alice-secret"); a.StatusCode != http.StatusOK {
			t.Errorf("%s: HTTP %d", path, a.StatusCode)
		}
	}
	if a := h.ask("GET", h.admin+"/readyz", ""); strings.Contains(a.body, "upstreams") {
		t.Errorf("/readyz tells everybody %s", a.body)
	}
}

func TestReadyz(t *testing.T) {
	cases := []struct {
		status Status
		code   int
		want   string
	}{
		{Status{Status: StatusStarting}, 503, "starting"},
		{Status{Status: StatusStarting, Ready: true}, 503, "starting"},
		{Status{Status: StatusReady, Ready: true}, 200, "ready"},
		{Status{Status: StatusDraining, Ready: true}, 503, "draining"},
	}
	for _, c := range cases {
		h := open(t)
		h.status = c.status
		a := h.get("/readyz")
		var got readiness
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.StatusCode != c.code || got.Status != c.want {
			t.Errorf("%+v: HTTP %d %s (%v)", c.status, a.StatusCode, a.body, err)
		}
	}
}

func TestReadyzDetail(t *testing.T) {
	h := open(t)
	h.status = trouble()
	const want = `{"status":"ready","upstreams":{"bad":{"state":"failed","last_error":{"stage":"handshake",` +
		`"message":"exit 1: \"missing\" \u003cAPI_KEY\u003e","at":"2026-01-02T03:04:05Z"},"next_retry":"2026-01-02T03:04:05Z"},"good":{"state":"ready"}}}`
	if got := strings.TrimSpace(h.get("/readyz").body); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	h = open(t, withTokens(""))
	h.status = trouble()
	for credential, detailed := range map[string]bool{"Bearer alice-secret": true, "Bearer bob-secret": false, "Bearer wrong": false, "": false} {
		a := h.get("/readyz", "Authorization: "+credential)
		if a.StatusCode != http.StatusOK || strings.Contains(a.body, "upstreams") != detailed {
			t.Errorf("%q: HTTP %d %s", credential, a.StatusCode, a.body)
		}
	}
}

func TestStatusJSON(t *testing.T) {
	h := open(t)
	if a := h.get("/api/v1/status"); !strings.Contains(a.body, `"upstreams":[]`) || !strings.Contains(a.body, `"names":[]`) || !strings.Contains(a.body, `"version":"1.2.3"`) {
		t.Errorf("an empty status is %s", a.body)
	}
	h.status = trouble()
	var got Status
	if err := json.Unmarshal([]byte(h.get("/api/v1/status").body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Upstreams[0].Tools != 4711 || got.Upstreams[1].LastError.Stage != "handshake" || got.Names[0].Exposed != "good__echo" || got.Version != "1.2.3" {
		t.Errorf("%+v", got)
	}
}

func TestStatusPage(t *testing.T) {
	h := open(t, withTokens("X-Proxy-Key"))
	h.status = trouble()
	a := h.get("/", "X-Proxy-Key: alice-secret")
	for _, want := range []string{"4711", "missing", "set API_KEY", "good__echo", "&lt;script&gt;", h.url + "/mcp", "X-Proxy-Key", "2026-01-02 03:04:05 UTC"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	for _, bad := range []string{"<script", "<b>x", "alice-secret", "ZgotmplZ"} {
		if strings.Contains(a.body, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	css := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(a.body)[1]
	sum := sha256.Sum256([]byte(css))
	policy := a.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
		t.Errorf("the policy %q does not fit the style", policy)
	}
	snippet := regexp.MustCompile(`(?s)<pre>(\{.*?)</pre>`).FindStringSubmatch(a.body)[1]
	if !json.Valid([]byte(html.UnescapeString(snippet))) {
		t.Errorf("the snippet is no JSON: %s", snippet)
	}
}

func TestClientURL(t *testing.T) {
	for public, want := range map[string]string{
		"https://mcp.example.com":          "https://mcp.example.com/mcp",
		"https://mcp.example.com/":         "https://mcp.example.com/mcp",
		"https://example.com/gateway":      "https://example.com/gateway/mcp",
		"https://example.com/gateway/mcp":  "https://example.com/gateway/mcp",
		"https://example.com/gateway/mcp/": "https://example.com/gateway/mcp/",
	} {
		h := open(t, proxyIs(func(p *config.Proxy) { p.PublicURL = public }))
		if a := h.get("/"); !strings.Contains(a.body, "<code>"+want+"</code>") {
			t.Errorf("public_url %s: the page does not show %s", public, want)
		}
	}
	for listen, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080/mcp", "0.0.0.0:8080": "http://localhost:8080/mcp",
		":8080": "http://localhost:8080/mcp", "[::]:8080": "http://localhost:8080/mcp",
	} {
		h := open(t, withAdmin, listening(listen))
		if a := h.ask("GET", h.admin+"/", "", "Host: localhost:9090"); !strings.Contains(a.body, "<code>"+want+"</code>") {
			t.Errorf("listening on %s: the page on the admin listener does not show %s", listen, want)
		}
	}
}

func TestReload(t *testing.T) {
	var result error
	calls := 0
	h := open(t, func(_ *house, o *Options) {
		o.Reload = func(context.Context) error { calls++; return result }
	}, proxyIs(func(p *config.Proxy) { p.AllowedOrigins = []string{"https://app.example.com"} }))
	for _, path := range []string{"/-/reload", "/-/reload/"} {
		if a := h.post(path); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "reloaded") {
			t.Errorf("%s: HTTP %d %s", path, a.StatusCode, a.body)
		}
	}
	if a := h.post("/-/reload", "Origin: "+h.url); a.StatusCode != http.StatusOK {
		t.Errorf("of the same origin: HTTP %d", a.StatusCode)
	}
	result = errors.New("proxy.listne: unknown key")
	if a := h.post("/-/reload"); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "proxy.listne") {
		t.Errorf("a bad configuration: HTTP %d %s", a.StatusCode, a.body)
	}
	if a := h.get("/-/reload"); a.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: HTTP %d", a.StatusCode)
	}
	// Pages that may speak MCP, or that run on this machine, may still not reload.
	for _, origin := range []string{"https://app.example.com", "http://localhost:3000", "http://evil.example"} {
		h.rpcError(h.post("/-/reload", "Origin: "+origin), http.StatusForbidden)
	}
	if calls != 4 {
		t.Errorf("%d reloads, want 4", calls)
	}
}
