package door

import (
	"net/http"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestNotificationsAndAnswersOfClientsGetAnEmpty202: strict clients break on any body.
func TestNotificationsAndAnswersOfClientsGetAnEmpty202(t *testing.T) {
	t.Parallel()
	p, _ := one(t, "")
	bodies := map[string]string{
		"initialized":      `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		"cancel of nobody": `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`,
		"unknown":          `{"jsonrpc":"2.0","method":"notifications/of/ours","params":{"a":1}}`,
		"answer":           `{"jsonrpc":"2.0","id":9,"result":{}}`,
		"error":            `{"jsonrpc":"2.0","id":"9","error":{"code":-32601,"message":"no"}}`,
	}
	for _, version := range []string{testmcp.Rev2503, testmcp.Rev2506, testmcp.Rev2511} {
		c := testmcp.NewClient(t, p.URL, testmcp.Legacy)
		c.Version = version
		c.Open()
		for name, body := range bodies {
			t.Run(version+", "+name, func(t *testing.T) { wantEmpty202(t, post(c, body, "", "")) })
		}
	}
	t.Run("modern", func(t *testing.T) {
		c := p.Client(testmcp.Modern)
		method := "notifications/cancelled"
		wantEmpty202(t, post(c, c.Body("", method, `{"requestId":7}`), method, ""))
	})
}

func wantEmpty202(t *testing.T, a testmcp.Answer) {
	t.Helper()
	if a.Status != http.StatusAccepted || len(a.Body) != 0 || a.Header.Values("Content-Type") != nil {
		t.Errorf("HTTP %d, types %q, body %q; want an empty 202", a.Status, a.Header.Values("Content-Type"), a.Body)
	}
}

// TestUpstreamsMayAnswerNotificationsAsTheyLike: any 2xx is success and its body says nothing, at the handshake and
// for a cancel.
func TestUpstreamsMayAnswerNotificationsAsTheyLike(t *testing.T) {
	t.Parallel()
	tests := map[string]http.HandlerFunc{
		"empty":        testmcp.Status(200, "", ""),
		"null":         testmcp.Status(200, "application/json", "null"),
		"object":       testmcp.Status(200, "application/json", `{}`),
		"null-id":      testmcp.Status(200, "application/json", `{"jsonrpc":"2.0","id":null}`),
		"result":       testmcp.Status(200, "application/json", `{"jsonrpc":"2.0","id":null,"result":{}}`),
		"no-content":   testmcp.Status(204, "", ""),
		"plain-text":   testmcp.Status(202, "text/plain; charset=utf-8", "OK"),
		"empty-stream": testmcp.Events(),
	}
	servers, recs := map[string]string{}, map[string]*testmcp.Recorder{}
	for name, answer := range tests {
		h := testmcp.ServeHTTP(t, server([]string{"legacy"}), testmcp.HTTPOptions{Notified: answer})
		servers[name], recs[name] = h.Entry(), h.Rec
	}
	p := start(t, "", servers)
	for name, rec := range recs {
		t.Run(name, func(t *testing.T) {
			c := p.Client(testmcp.Legacy)
			wantText(t, c.CallTool(name+"__echo", `{"text":"x"}`), "x")
			held := later(c, `"held"`, "tools/call", testmcp.ToolParams(name+"__hang", ""))
			rec.Wait(t, testmcp.CalledTool("hang"))
			c.CancelID(`"held"`)
			rec.Wait(t, testmcp.Is(testmcp.Cancel))
			<-held
			wantText(t, c.CallTool(name+"__echo", `{"text":"y"}`), "y")
			if n := rec.Count(testmcp.Received("initialize")); n != 1 {
				t.Errorf("there were %d handshakes, want 1", n)
			}
		})
	}
}
