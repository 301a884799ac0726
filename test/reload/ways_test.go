package reload

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestAChangeIsSeenHoweverItIsMade(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, p *testmcp.Proxy, text string){
		"written in place": replace,
		"renamed over":     func(_ *testing.T, p *testmcp.Proxy, text string) { p.WriteConfig(text) },
		"removed and written": func(t *testing.T, p *testmcp.Proxy, text string) {
			if err := os.Remove(p.Config); err != nil {
				t.Fatal(err)
			}
			replace(t, p, text)
		},
		"SIGHUP": func(t *testing.T, p *testmcp.Proxy, text string) { p.WriteConfig(text); p.Reload() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := recorders(t, "a", "b")
			p := run(t, s.with("", "a"))
			change(t, p, s.with("", "a", "b"))
			s["b"].Wait(t, testmcp.Is(testmcp.Start))
			change(t, p, s.with("", "a"))
			s["b"].WaitGone(t)
			if n := s["a"].Count(testmcp.Is(testmcp.Start)); n != 1 {
				t.Errorf("the other server was started %d times", n)
			}
		})
	}
}

func TestASymbolicLinkIsSwapped(t *testing.T) {
	t.Parallel()
	s := recorders(t, "a", "b")
	p := run(t, s.with("", "a"))
	link(t, p, "..first", s.with("", "a", "b"))
	s["b"].Wait(t, testmcp.Is(testmcp.Start))
	link(t, p, "..second", s.with("", "a")) // only what the link leads to changes
	s["b"].WaitGone(t)
}

func TestABadFileChangesNothing(t *testing.T) {
	t.Parallel()
	s := recorders(t, "a")
	good := s.with("", "a")
	entry := s["a"].Entry("basic", []string{"a"})
	p := run(t, good)
	c := p.Client(testmcp.Legacy)
	for what, bad := range map[string]struct{ text, says string }{
		"truncated":                     {good[:len(good)/2], "mcp-proxy.json"},
		"unknown key":                   {testmcp.Config(`{"nonsense":1}`, map[string]string{"a": entry}), "nonsense"},
		"a mistake in a running server": {strings.Replace(good, `"command":`, `"call_timeout":"soon","command":`, 1), "call_timeout"},
		"another address":               {testmcp.Config(`{"admin_listen":"127.0.0.1:0"}`, map[string]string{"a": entry}), "proxy.admin_listen: a running proxy cannot change this; restart it"},
		"another state directory":       {testmcp.Config(`{"state_dir":"elsewhere"}`, map[string]string{"a": entry}), "proxy.state_dir: a running"},
	} {
		p.WriteConfig(bad.text)
		if status, body := post(t, p, ""); status != http.StatusUnprocessableEntity || !strings.Contains(body, bad.says) {
			t.Errorf("%s: HTTP %d %s, want %q", what, status, body, bad.says)
		}
		if successful(p) {
			t.Errorf("%s: the metric calls it successful", what)
		}
		if last := p.Status().At("last_reload"); string(last.At("successful")) != "false" || !strings.Contains(string(last.At("problems")), bad.says) {
			t.Errorf("%s: the status says %s", what, last)
		}
		p.WaitLog("the new configuration is rejected")
		if text := c.CallTool("a__echo", `{"text":"x"}`).Text(); text != "x" {
			t.Errorf("%s: a call gives %q", what, text)
		}
		p.WriteConfig(good)
		if status, body := post(t, p, ""); status != http.StatusOK || !successful(p) {
			t.Errorf("after %s: HTTP %d %s", what, status, body)
		}
	}
	if n := s["a"].Count(testmcp.Is(testmcp.Start)); n != 1 {
		t.Errorf("the server was started %d times", n)
	}
}

func TestTokensAndProfilesComeAndGo(t *testing.T) {
	t.Parallel()
	s := recorders(t, "a", "b")
	settings := func(tokens, profiles string) string {
		return `{"auth":{"tokens":[{"name":"root","token":"root-token-of-this-test"}` + tokens + `]},"profiles":{` + profiles + `}}`
	}
	const alice = `,{"name":"alice","token":"alice-token-of-this-test"}`
	p := testmcp.StartProxy(t, s.with(settings(alice, ""), "a", "b"), testmcp.WithEnv("GORACE=atexit_sleep_ms=0"), testmcp.WithoutReady())
	as := func(url, token string) *testmcp.Client {
		c := testmcp.NewClient(t, url, testmcp.Legacy)
		c.Header = http.Header{"Authorization": {"Bearer " + token}}
		return c
	}
	root, gone := as(p.URL, "root-token-of-this-test").Open(), as(p.URL, "alice-token-of-this-test").Open()
	stays, ends := root.Get(""), gone.Get("")
	p.WriteConfig(s.with(settings(`,{"name":"bob","token":"bob-token-of-this-test"}`, `"some":{"servers":["b"]}`), "a", "b"))
	if status, body := post(t, p, "root-token-of-this-test"); status != http.StatusOK {
		t.Fatalf("HTTP %d %s", status, body)
	}
	if !ends.WaitOver() || stays.Over() {
		t.Errorf("the stream of a token that is gone has ended: %v; that of one that stays: %v", ends.Over(), stays.Over())
	}
	if code := gone.Try("ping", "").Status; code != http.StatusUnauthorized {
		t.Errorf("a token that is gone gives HTTP %d", code)
	}
	if code := root.Try("ping", "").Status; code != http.StatusOK {
		t.Errorf("a token that stays gives HTTP %d", code)
	}
	names := as(p.Profile("some"), "bob-token-of-this-test").Open().ToolNames()
	if !slices.Contains(names, "b__echo") || slices.Contains(names, "a__echo") {
		t.Errorf("the new profile offers %q to the new token", names)
	}
}

// Wishes that come together are answered together, also when the end comes between them.
func TestReloadsInAStorm(t *testing.T) {
	t.Parallel()
	s := recorders(t, "a", "b")
	p := run(t, s.with("", "a"))
	c := p.Client(testmcp.Legacy)
	held := c.Begin("tools/call", testmcp.ToolParams("a__wait", `{"signal":"go"}`))
	s["a"].Wait(t, testmcp.CalledTool("wait"))
	for i := range 100 {
		p.WriteConfig(s.with("", []string{"a", "b"}[:1+i%2]...))
		p.Reload()
	}
	p.WriteConfig(s.with("", "a", "b"))
	if status, body := post(t, p, ""); status != http.StatusOK {
		t.Errorf("HTTP %d %s", status, body)
	}
	p.Terminate()
	p.WriteConfig(s.with("", "b"))
	p.Reload()
	s["a"].Signal("go")
	if text := held.Final().Text(); text != "waited" {
		t.Errorf("the call that ran over all of it gives %q", text)
	}
	if code := p.WaitExit(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	s["a"].WaitGone(t)
	s["b"].WaitGone(t)
}
