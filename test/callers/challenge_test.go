package callers

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestAServersQuestionForACredentialReachesItsCaller, on the endpoint of that server alone, with the server's own words.
func TestAServersQuestionForACredentialReachesItsCaller(t *testing.T) {
	t.Parallel()
	for _, up := range eras {
		t.Run(up.name+" server", func(t *testing.T) {
			t.Parallel()
			h, _ := serve(t, up.era, testmcp.HTTPOptions{Before: challenged(func(auth string) bool { return auth == ann })})
			other := testmcp.NewRecorder(t)
			p := start(t, "", map[string]string{"up": h.Entry(`"forward_caller_auth":true`), "other": other.Entry("basic", nil)})
			for _, e := range eras {
				for _, auth := range []string{"", stranger} {
					asked(t, testmcp.NewClient(t, p.Base+"/servers/up/mcp", e.era), auth)
				}
				c := client(t, p.Base+"/servers/up/mcp", e.era, "Authorization", ann)
				wantTools(t, own(t, c, "of-ann"), "common", "of-ann")
				if got, _ := caller(c.CallTool("of-ann", "{}")); got != "ann" {
					t.Errorf("%s client: with a credential that is taken the call arrives as one of %q", e.name, got)
				}
				everything(t, p, e.era)
			}
		})
	}
}

// asked checks that a client is asked for its credential: at the latest by the list, and by the call of a tool.
func asked(t *testing.T, c *testmcp.Client, auth string) {
	t.Helper()
	c.Header = http.Header{}
	if auth != "" {
		c.Header.Set("Authorization", auth)
	}
	if c.Era == testmcp.Legacy {
		a := c.Start("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`).Final()
		if auth == "" {
			wantChallenge(t, a)
			return
		}
		c.Session, c.Opened = a.Header.Get("Mcp-Session-Id"), a.Message
	}
	wantChallenge(t, c.Start("tools/list", "{}").Final())
	wantChallenge(t, c.Start("tools/call", testmcp.ToolParams("common", "{}")).Final())
}

func wantChallenge(t *testing.T, a testmcp.Answer) {
	t.Helper()
	if a.Status != http.StatusUnauthorized || !slices.Equal(a.Header.Values("WWW-Authenticate"), []string{challenge}) {
		t.Errorf("HTTP %d with %q and %s; want the server's own challenge", a.Status, a.Header.Values("WWW-Authenticate"), a.Body)
	}
	if a.Err().At("data", "reason").Str() != "denied" || a.Err().At("data", "upstream").Str() != "up" {
		t.Errorf("the error is %s", a.Err())
	}
}

// everything checks that the endpoint of all servers is nobody's to sign in at, while one of them wants a credential.
func everything(t *testing.T, p *testmcp.Proxy, era testmcp.Era) {
	t.Helper()
	c := client(t, p.URL, era, "Authorization", stranger)
	if names := c.ToolNames(); slices.Contains(names, "up__common") || !slices.Contains(names, "other__echo") {
		t.Errorf("the tools of all servers are %q", names)
	}
	if a := c.CallTool("other__echo", `{"text":"x"}`); a.Result() == nil {
		t.Errorf("another server's tool gives %s", a.Raw)
	}
}

// TestACredentialThatIsTakenNoMoreIsToldOfByName where there are several servers, with where to sign in.
func TestACredentialThatIsTakenNoMoreIsToldOfByName(t *testing.T) {
	t.Parallel()
	for _, up := range eras {
		t.Run(up.name+" server", func(t *testing.T) {
			t.Parallel()
			revoked := make(chan struct{})
			h, _ := serve(t, up.era, testmcp.HTTPOptions{Before: challenged(func(auth string) bool {
				select {
				case <-revoked:
					return auth == bob
				default:
					return auth != ""
				}
			})})
			other := testmcp.NewRecorder(t)
			p := start(t, "", map[string]string{"up": h.Entry(`"forward_caller_auth":true`), "other": other.Entry("basic", nil)})
			var clients []*testmcp.Client
			for _, e := range eras {
				c := client(t, p.URL, e.era, "Authorization", ann)
				clients = append(clients, own(t, c, "up__of-ann"))
			}
			close(revoked)
			for _, c := range clients {
				a := c.CallTool("up__of-ann", "{}")
				text := a.Err().At("message").Str()
				if a.Status != http.StatusOK || len(a.Header.Values("WWW-Authenticate")) > 0 || !strings.HasPrefix(text, "up::of-ann: ") ||
					!strings.Contains(text, "/servers/up/mcp") || a.Err().At("data", "reason").Str() != "denied" {
					t.Errorf("HTTP %d %s", a.Status, a.Body)
				}
				if ok := c.CallTool("other__echo", `{"text":"x"}`); ok.Result() == nil {
					t.Errorf("another server's tool gives %s", ok.Raw)
				}
			}
			b := own(t, client(t, p.URL, testmcp.Modern, "Authorization", bob), "up__of-bob")
			if got, _ := caller(b.CallTool("up__of-bob", "{}")); got != "bob" {
				t.Errorf("a credential that is taken is no good any more: %q", got)
			}
		})
	}
}

// TestAForbiddenCallAsksForMoreRights: a server that forbids and says which right is missing is heard; one that only forbids
// is an error like any other.
func TestAForbiddenCallAsksForMoreRights(t *testing.T) {
	t.Parallel()
	const more = `Bearer error="insufficient_scope", scope="write"`
	forbids := func(header string) func(http.ResponseWriter, *http.Request, []byte) bool {
		return func(w http.ResponseWriter, r *http.Request, body []byte) bool {
			if testmcp.Raw(body).At("method").Str() != "tools/call" {
				return false
			}
			if header != "" {
				w.Header().Set("WWW-Authenticate", header)
			}
			testmcp.Status(http.StatusForbidden, "application/json", `{"error":"no"}`)(w, r)
			return true
		}
	}
	asks, _ := serve(t, testmcp.Both, testmcp.HTTPOptions{Before: forbids(more)})
	plain, _ := serve(t, testmcp.Both, testmcp.HTTPOptions{Before: forbids("")})
	p := start(t, "", map[string]string{"asks": asks.Entry(`"forward_caller_auth":true`), "plain": plain.Entry(`"forward_caller_auth":true`)})
	for _, e := range eras {
		a := client(t, p.Base+"/servers/asks/mcp", e.era, "Authorization", ann).Start("tools/call", testmcp.ToolParams("common", "{}")).Final()
		if a.Status != http.StatusForbidden || a.Header.Get("WWW-Authenticate") != more {
			t.Errorf("%s client: HTTP %d with %q", e.name, a.Status, a.Header.Get("WWW-Authenticate"))
		}
		a = client(t, p.Base+"/servers/plain/mcp", e.era, "Authorization", ann).Start("tools/call", testmcp.ToolParams("common", "{}")).Final()
		if a.Status != http.StatusOK || a.Err().At("data", "reason").Str() != "denied" {
			t.Errorf("%s client: HTTP %d %s", e.name, a.Status, a.Body)
		}
	}
}

// TestAServerThatGetsNoCredentialsOfCallersAsksNoneOfThem: what it says about a credential concerns the one of its entry.
func TestAServerThatGetsNoCredentialsOfCallersAsksNoneOfThem(t *testing.T) {
	t.Parallel()
	takes := challenged(func(string) bool { return false })
	onlyCalls := func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		return testmcp.Raw(body).At("method").Str() == "tools/call" && takes(w, r, body)
	}
	none, _ := serve(t, testmcp.Both, testmcp.HTTPOptions{Before: onlyCalls})
	static, seen := serve(t, testmcp.Both, testmcp.HTTPOptions{Before: onlyCalls})
	p := start(t, "", map[string]string{"none": none.Entry(), "static": static.Entry(`"auth_token":"of-the-entry"`, `"forward_caller_auth":true`)})
	for _, e := range eras {
		for _, id := range []string{"none", "static"} {
			c := client(t, p.Base+"/servers/"+id+"/mcp", e.era, "Authorization", ann)
			a := c.Start("tools/call", testmcp.ToolParams("common", "{}")).Final()
			if a.Status != http.StatusOK || len(a.Header.Values("WWW-Authenticate")) > 0 || a.Err().At("data", "reason").Str() != "unavailable" {
				t.Errorf("%s client of %s: HTTP %d %q %s", e.name, id, a.Status, a.Header.Values("WWW-Authenticate"), a.Body)
			}
		}
	}
	if seen.with(ann, "POST tools/call") || !seen.with("Bearer of-the-entry", "POST tools/call") {
		t.Error("the credential of the entry itself does not win")
	}
}
