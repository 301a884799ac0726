package lost

import (
	"fmt"
	"maps"
	"slices"
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

var eras = []struct {
	name string
	era  testmcp.Era
}{{"legacy", testmcp.Legacy}, {"modern", testmcp.Modern}}

// counter is a legacy server that counts the calls of each session.
func counter() *testmcp.Server {
	s := testmcp.Basic("counter")
	s.Era = testmcp.Legacy
	s.Tools = append(s.Tools, testmcp.SimpleTool("tally", func(c *testmcp.Call) {
		c.Text(fmt.Sprintf("%s|%d", c.Session(), c.AddSession("calls", 1)))
	}))
	return s
}

func start(t *testing.T, servers map[string]string) *testmcp.Proxy {
	t.Helper()
	return testmcp.StartProxy(t, testmcp.Config("", servers), testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))
}

// counted is what the tool tally has answered.
func counted(t *testing.T, a testmcp.Answer) (session, n string) {
	t.Helper()
	session, n, ok := strings.Cut(a.Text(), "|")
	if !ok {
		t.Errorf("no count: HTTP %d %s", a.Status, a.Body)
	}
	return session, n
}

// TestALostSessionIsReplacedUnseen in all the words in which servers say it, by many calls at once: none fails, each runs
// once, and one session takes the place of the lost one.
func TestALostSessionIsReplacedUnseen(t *testing.T) {
	t.Parallel()
	spellings := slices.Sorted(maps.Keys(testmcp.LostSpellings))
	servers := map[string]string{}
	webs := map[string]*testmcp.HTTPServer{}
	for i, words := range spellings {
		id := fmt.Sprintf("up%d", i)
		webs[words] = testmcp.ServeHTTP(t, counter(), testmcp.HTTPOptions{Lost: testmcp.LostSpellings[words]})
		servers[id] = webs[words].Entry()
	}
	p := start(t, servers)
	legacy, modern := p.Client(testmcp.Legacy), p.Client(testmcp.Modern)
	for i, words := range spellings {
		t.Run(words, func(t *testing.T) {
			h, id := webs[words], fmt.Sprintf("up%d", i)
			for _, c := range []*testmcp.Client{legacy, modern} {
				opened, ran := h.Rec.Count(testmcp.Received("initialize")), h.Rec.Count(testmcp.CalledTool("tally"))
				before, _ := counted(t, c.CallTool(id+"__tally", "{}"))
				h.ForgetSessions()
				const calls = 20
				var all []*testmcp.Pending
				for range calls {
					all = append(all, c.Begin("tools/call", testmcp.ToolParams(id+"__tally", "{}")))
				}
				seen := map[string]bool{}
				for _, one := range all {
					session, n := counted(t, one.Final())
					if session == before || seen[n] {
						t.Errorf("a call was the %s. of session %s, before it was %s", n, session, before)
					}
					seen[n] = true
				}
				if n := h.Rec.Count(testmcp.CalledTool("tally")) - ran; n != calls+1 {
					t.Errorf("%d calls ran, want %d", n, calls+1)
				}
				if n := h.Rec.Count(testmcp.Received("initialize")) - opened; n != 1 {
					t.Errorf("%d sessions were opened for the lost one", n)
				}
				for _, m := range []struct{ method, params string }{
					{"resources/read", `{"uri":"` + id + `+test://counter/readme"}`}, {"prompts/get", `{"name":"` + id + `__greet","arguments":{"who":"x"}}`},
				} {
					h.ForgetSessions()
					if a := c.Call(m.method, m.params); a.Result() == nil {
						t.Errorf("%s: %s", m.method, a.Raw)
					}
				}
			}
		})
	}
}

// TestAServerThatStartsAnewLosesNobody: it has forgotten all, also what it was told.
func TestAServerThatStartsAnewLosesNobody(t *testing.T) {
	t.Parallel()
	h := testmcp.ServeHTTP(t, counter(), testmcp.HTTPOptions{})
	p := start(t, map[string]string{"up": h.Entry()})
	c := p.Client(testmcp.Legacy)
	if a := c.Call("logging/setLevel", `{"level":"debug"}`); a.Err() != nil {
		t.Fatalf("%s", a.Raw)
	}
	told := testmcp.Received("logging/setLevel")
	h.Rec.Wait(t, told)
	for round := range 3 {
		before, _ := counted(t, c.CallTool("up__tally", "{}"))
		h.Restart()
		// The first to find out may be in the middle of its connection; what only reads is sent again then.
		if a := c.Call("resources/read", `{"uri":"test://counter/readme"}`); a.Result() == nil {
			t.Errorf("round %d: a resource gives %s", round, a.Raw)
		}
		if after, n := counted(t, c.CallTool("up__tally", "{}")); after == before || n != "1" {
			t.Errorf("round %d: after the restart the call is the %s. of %s, before of %s", round, n, after, before)
		}
		h.Rec.WaitN(t, round+2, told)
		if names := c.ToolNames(); !slices.Contains(names, "up__tally") {
			t.Errorf("round %d: the tools are %q", round, names)
		}
	}
}

// TestASessionThatIsLostAgainAndAgain: a server that forgets a session after two calls.
func TestASessionThatIsLostAgainAndAgain(t *testing.T) {
	t.Parallel()
	for _, sharing := range []string{"shared", "session"} {
		h := testmcp.ServeHTTP(t, counter(), testmcp.HTTPOptions{LoseAfter: 2})
		p := start(t, map[string]string{"up": h.Entry(`"sharing":"` + sharing + `"`)})
		for _, e := range eras {
			c := p.Client(e.era)
			for range 7 {
				counted(t, c.CallTool("up__tally", "{}"))
			}
		}
		if n := h.Rec.Count(testmcp.CalledTool("tally")); n != 14 {
			t.Errorf("%s: %d calls ran, want 14", sharing, n)
		}
		p.Stop()
	}
}

// TestAServerMayKnowNoSessions at all; that of the client is ours.
func TestAServerMayKnowNoSessions(t *testing.T) {
	t.Parallel()
	h := testmcp.ServeHTTP(t, counter(), testmcp.HTTPOptions{NoSessions: true, Get: testmcp.Status(405, "", "")})
	p := start(t, map[string]string{"up": h.Entry()})
	for _, e := range eras {
		c := p.Client(e.era)
		if e.era == testmcp.Legacy && c.Session == "" {
			t.Error("the client has no session")
		}
		for range 3 {
			counted(t, c.CallTool("up__tally", "{}"))
		}
	}
}

// TestASessionStaysTheClients: a server whose state is bound to its session, and several clients in turns.
func TestASessionStaysTheClients(t *testing.T) {
	t.Parallel()
	h := testmcp.ServeHTTP(t, counter(), testmcp.HTTPOptions{})
	p := start(t, map[string]string{"up": h.Entry(`"sharing":"session"`)})
	clients := []*testmcp.Client{p.Client(testmcp.Legacy), p.Client(testmcp.Legacy), p.Client(testmcp.Legacy)}
	sessions := map[string]int{}
	for round := 1; round <= 4; round++ {
		for i, c := range clients {
			s, n := counted(t, c.CallTool("up__tally", "{}"))
			if n != fmt.Sprint(round) {
				t.Errorf("call %d of client %d is the %s. of session %s", round, i, n, s)
			}
			if owner, known := sessions[s]; known && owner != i {
				t.Errorf("clients %d and %d are in one session", owner, i)
			}
			sessions[s] = i
		}
	}
	if len(sessions) != len(clients) {
		t.Errorf("%d sessions for %d clients", len(sessions), len(clients))
	}
	for _, c := range clients {
		c.Delete()
	}
	h.Rec.WaitFor(t, "the end of the clients' sessions at the server", func() bool { return h.Sessions() <= 1 })
}

// TestALostSessionCanBeAnError, where the configuration wants that: the call is named and has not run, and the next one finds
// a new session.
func TestALostSessionCanBeAnError(t *testing.T) {
	t.Parallel()
	for _, sharing := range []string{"shared", "session"} {
		h := testmcp.ServeHTTP(t, counter(), testmcp.HTTPOptions{})
		p := start(t, map[string]string{"up": h.Entry(`"sharing":"`+sharing+`"`, `"reinit_on_expired_session":false`, `"restart":{"initial_delay":"1ms"}`)})
		for _, e := range eras {
			c := p.Client(e.era)
			before, _ := counted(t, c.CallTool("up__tally", "{}"))
			ran := h.Rec.Count(testmcp.CalledTool("tally"))
			h.ForgetSessions()
			a := c.CallTool("up__tally", "{}")
			// A modern client that is nobody in particular has a session for each call, so there is none to be lost.
			alone := sharing == "session" && e.era == testmcp.Modern
			text := a.Err().At("message").Str()
			if !alone && (a.Err().At("data", "reason").Str() != "unavailable" || !strings.HasPrefix(text, "up::tally: ") ||
				!strings.Contains(text, "session") || h.Rec.Count(testmcp.CalledTool("tally")) != ran) {
				t.Errorf("%s, %s client: the call gives %s, and %d calls ran", sharing, e.name, a.Raw, h.Rec.Count(testmcp.CalledTool("tally"))-ran)
			}
			testmcp.Eventually(t, "call in a new session", func() bool {
				a = c.CallTool("up__tally", "{}")
				return a.Result() != nil
			})
			if after, _ := counted(t, a); after == before {
				t.Errorf("%s, %s client: the call after it is in the lost session", sharing, e.name)
			}
		}
		if got := p.Metrics().Sum("mcp_proxy_upstream_restarts_total", "upstream", "up", "reason", "session_lost"); sharing == "shared" && got < 1 {
			t.Errorf("%v lost sessions are counted", got)
		}
		p.Stop()
	}
}

// TestAbandonedSessionsWithCredentialsAreBounded: many clients that never say goodbye.
func TestAbandonedSessionsWithCredentialsAreBounded(t *testing.T) {
	t.Parallel()
	h := testmcp.ServeHTTP(t, counter(), testmcp.HTTPOptions{})
	p := testmcp.StartProxy(t, testmcp.Config(`{"limits":{"max_slots":20}}`, map[string]string{
		"up": h.Entry(`"forward_caller_auth":true`, `"catalog_scope":"global"`),
	}), testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))
	var wg sync.WaitGroup
	turns := make(chan struct{}, 10)
	for i := range 200 {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			c := testmcp.NewClient(t, p.URL, testmcp.Legacy)
			c.Header = map[string][]string{"Authorization": {fmt.Sprintf("Bearer of-%d", i)}}
			counted(t, c.Open().CallTool("up__tally", "{}"))
		})
	}
	wg.Wait()
	h.Rec.WaitFor(t, "the sessions at the server within their bound", func() bool { return h.Sessions() <= 21 })
	if n := p.Metrics().Sum("mcp_proxy_upstream_slots", "upstream", "up"); n > 21 {
		t.Errorf("%v connections are told of", n)
	}
}
