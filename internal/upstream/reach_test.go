package upstream

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func urlConfig(url string) *config.Server {
	cfg := serverConfig(config.TransportHTTP)
	cfg.URL, cfg.TransportGuessed = config.Secret(url), true
	return cfg
}

// Servers of both eras and of the older transport are found behind a plain URL.
func TestServersBehindAURL(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		serve func(t *testing.T) string
		era   wire.Era
	}{
		"modern": {func(t *testing.T) string {
			return testmcp.ServeHTTP(t, &testmcp.Server{Era: testmcp.Modern, Tools: callTool(nil)}, testmcp.HTTPOptions{}).URL
		}, wire.Modern},
		"legacy": {func(t *testing.T) string {
			return testmcp.ServeHTTP(t, &testmcp.Server{Era: testmcp.Legacy, Tools: callTool(nil)}, testmcp.HTTPOptions{}).URL
		}, wire.Legacy},
		"older transport": {func(t *testing.T) string {
			return testmcp.ServeSSE(t, &testmcp.Server{Era: testmcp.Legacy, Tools: callTool(nil)}, testmcp.SSEOptions{}).URL
		}, wire.Legacy},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			u := startReal(t, r, urlConfig(c.serve(t)))
			if st := u.Status(); !st.Up || st.Peer.Era != c.era {
				t.Fatalf("the status is %+v, %+v", st, st.Failure)
			}
			l := lease(t, u)
			if got, err := called(t, u, l); got != `{"pid":1}` || err != nil {
				t.Errorf("got %s, %v", got, err)
			}
			l.Release()
			u.Stop()
			r.wantBudgetWhole()
		})
	}
}

// A server that was named to be streamable HTTP is not tried in another way, and the error may be acted on.
func TestServersThatCannotBeReached(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url  func(t *testing.T) string
		want string
	}{
		"refused": {func(t *testing.T) string { return "http://" + testmcp.RefusedAddr(t) + "/mcp" }, "connection refused"},
		"garbage": {func(t *testing.T) string { return "http://" + testmcp.GarbageAddr(t, "220 smtp\r\n") + "/mcp" }, "malformed HTTP"},
		"a key is wanted": {func(t *testing.T) string {
			return testmcp.ServeHTTP(t, &testmcp.Server{}, testmcp.HTTPOptions{Before: func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}}).URL
		}, "check auth, auth_token and headers"},
	} {
		t.Run(name, func(t *testing.T) {
			u := startReal(t, newRig(t), urlConfig(c.url(t)))
			if st := u.Status(); st.Up || st.Failure == nil || !strings.Contains(st.Failure.Message, c.want) {
				t.Errorf("the failure is %+v", st.Failure)
			}
			if _, err := u.Acquire(t.Context(), Unit{}); err == nil {
				t.Error("a call is taken")
			}
		})
	}
}
