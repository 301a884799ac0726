package signin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestMain(m *testing.M) {
	testmcp.MaybeRunChild()
	goleak.VerifyTestMain(m, goleak.Cleanup(testmcp.Cleanup))
}

const clientSecret = "secret-of-the-proxy"

// authority is an authorization server and what the MCP servers behind it ask: whether a token is good. Only the newest is.
type authority struct {
	URL string

	mu      sync.Mutex
	given   int
	good    string
	refuses bool
	refused int // requests of servers with another token
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	srv := httptest.NewServer(http.HandlerFunc(a.token))
	t.Cleanup(srv.Close)
	a.URL = srv.URL + "/token"
	return a
}

func (a *authority) token(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	w.Header().Set("Content-Type", "application/json")
	if a.refuses || id != "proxy" || secret != clientSecret || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "mcp" {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error":"invalid_client","error_description":"%s is not known here"}`, secret)
		return
	}
	a.given++
	a.good = fmt.Sprintf("token-%d", a.given)
	_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, a.good)
}

// set changes the authority; tokens is how many it has given.
func (a *authority) set(change func(a *authority)) (tokens int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
	return a.given
}

// revoke makes the token that is in use good no more.
func revoke(a *authority) { a.good = "another" }

// admits lets in requests with the newest token.
func (a *authority) admits(w http.ResponseWriter, r *http.Request, _ []byte) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.good != "" && r.Header.Get("Authorization") == "Bearer "+a.good {
		return false
	}
	a.refused++
	w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
	w.WriteHeader(http.StatusUnauthorized)
	return true
}

// entry is the member of a server's entry for this authority.
func (a *authority) entry() string {
	return fmt.Sprintf(`"auth":{"type":"oauth2_client_credentials","token_url":%q,"client_id":"proxy","client_secret":%q,"scopes":["mcp"]},"restart":{"initial_delay":"50ms","max_delay":"100ms"}`, a.URL, clientSecret)
}

// kinds are the servers that have a URL.
var kinds = []struct {
	name  string
	serve func(t *testing.T, before func(http.ResponseWriter, *http.Request, []byte) bool) *testmcp.HTTPServer
}{
	{"legacy", streamable(testmcp.Legacy)},
	{"modern", streamable(testmcp.Modern)},
	{"sse", func(t *testing.T, before func(http.ResponseWriter, *http.Request, []byte) bool) *testmcp.HTTPServer {
		return testmcp.ServeSSE(t, server(testmcp.Legacy), testmcp.SSEOptions{Before: before})
	}},
}

func streamable(era testmcp.Era) func(*testing.T, func(http.ResponseWriter, *http.Request, []byte) bool) *testmcp.HTTPServer {
	return func(t *testing.T, before func(http.ResponseWriter, *http.Request, []byte) bool) *testmcp.HTTPServer {
		return testmcp.ServeHTTP(t, server(era), testmcp.HTTPOptions{Before: before})
	}
}

func server(era testmcp.Era) *testmcp.Server {
	s := testmcp.Basic("up")
	s.Era = era
	return s
}

// start starts the program. Under the race detector it would wait for a second before it exits.
func start(t *testing.T, servers map[string]string) *testmcp.Proxy {
	t.Helper()
	return testmcp.StartProxy(t, testmcp.Config("", servers), testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))
}

// wantUnsaid checks that nobody is told a secret.
func wantUnsaid(t *testing.T, p *testmcp.Proxy, words ...string) {
	t.Helper()
	texts := map[string]string{"log": strings.Join(p.Log(), "\n")}
	for _, path := range []string{"/metrics", "/readyz", "/api/v1/status", "/"} {
		_, texts[path] = p.Get(path)
	}
	for where, text := range texts {
		for _, w := range words {
			if strings.Contains(text, w) {
				t.Errorf("%s tells %q", where, w)
			}
		}
	}
}
