package callers

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestMain(m *testing.M) {
	testmcp.MaybeRunChild()
	goleak.VerifyTestMain(m, goleak.Cleanup(testmcp.Cleanup))
}

const (
	ann = "Bearer token-of-ann"
	bob = "Bearer token-of-bob"
	// stranger is a credential that no server takes.
	stranger = "Bearer token-of-nobody"
)

// who gives the name in a credential; empty for none.
func who(auth string) string { return strings.TrimPrefix(auth, "Bearer token-of-") }

// watch notes which credentials came on which session of a server, and with what.
type watch struct {
	mu       sync.Mutex
	sessions map[string]map[string]bool // session to credentials
	verbs    map[string]map[string]bool // credential to what was asked with it
}

func newWatch() *watch {
	return &watch{sessions: map[string]map[string]bool{}, verbs: map[string]map[string]bool{}}
}

func (w *watch) see(r *http.Request, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	auth := r.Header.Get("Authorization")
	if s := r.Header.Get("Mcp-Session-Id"); s != "" {
		add(w.sessions, s, auth)
	}
	add(w.verbs, auth, what)
}

func add(m map[string]map[string]bool, key, value string) {
	if m[key] == nil {
		m[key] = map[string]bool{}
	}
	m[key][value] = true
}

// with says whether anything came with that credential.
func (w *watch) with(auth, what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.verbs[auth][what]
}

// wantUnmixed fails where one session saw two credentials.
func (w *watch) wantUnmixed(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for s, auths := range w.sessions {
		if len(auths) > 1 {
			t.Errorf("the session %s saw %d credentials: %v", s, len(auths), auths)
		}
	}
}

// personal is a server that offers everybody the tool and the resource "common", and who has a credential one of their own
// beside it. Its tools tell who called and in which session.
func personal(era testmcp.Era) *testmcp.Server {
	s := testmcp.Basic("personal")
	s.Era = era
	s.Tools, s.Resources = nil, nil
	s.On = map[string]testmcp.Handler{
		"tools/list": func(c *testmcp.Call) {
			c.Result(`{"tools":[` + definitions(c, `{"name":%q,"inputSchema":{"type":"object"}}`) + `]` + fresh(c) + `}`)
		},
		"resources/list": func(c *testmcp.Call) {
			c.Result(`{"resources":[` + definitions(c, `{"uri":"note://%s","name":"note"}`) + `]` + fresh(c) + `}`)
		},
		"prompts/list": func(c *testmcp.Call) {
			c.Result(`{"prompts":[` + definitions(c, `{"name":%q}`) + `]` + fresh(c) + `}`)
		},
		"tools/call":     tells,
		"resources/read": func(c *testmcp.Call) { c.Contents(c.Params.At("uri").Str(), who(c.Header.Get("Authorization"))) },
		"prompts/get": func(c *testmcp.Call) {
			c.Result(fmt.Sprintf(`{"messages":[{"role":"user","content":{"type":"text","text":%q}}]}`, who(c.Header.Get("Authorization"))))
		},
		"completion/complete": func(c *testmcp.Call) {
			c.Result(fmt.Sprintf(`{"completion":{"values":[%q]}}`, who(c.Header.Get("Authorization"))))
		},
	}
	return s
}

// tells answers a call with who calls, the session, and how often the session was asked.
func tells(c *testmcp.Call) {
	c.Note("called " + c.Params.At("name").Str())
	if signal := c.Args("signal").Str(); signal != "" && !c.Until(signal) {
		return
	}
	c.Text(fmt.Sprintf("%s|%s|%d", who(c.Header.Get("Authorization")), c.Session(), c.AddSession("calls", 1)))
}

// definitions are those of what the caller is offered.
func definitions(c *testmcp.Call, form string) string {
	out := []string{fmt.Sprintf(form, "common")}
	if name := who(c.Header.Get("Authorization")); name != "" {
		out = append(out, fmt.Sprintf(form, "of-"+name))
	}
	return strings.Join(out, ",")
}

func fresh(c *testmcp.Call) string {
	if c.Modern() {
		return `,"ttlMs":0,"cacheScope":"private"`
	}
	return ""
}

// serve serves a personal server over HTTP and watches what comes.
func serve(t *testing.T, era testmcp.Era, opt testmcp.HTTPOptions) (*testmcp.HTTPServer, *watch) {
	t.Helper()
	w := newWatch()
	refuses := opt.Before
	opt.Before = func(rw http.ResponseWriter, r *http.Request, body []byte) bool {
		w.see(r, r.Method+" "+testmcp.Raw(body).At("method").Str())
		return refuses != nil && refuses(rw, r, body)
	}
	return testmcp.ServeHTTP(t, personal(era), opt), w
}

// challenged refuses all but these credentials, as a server with OAuth does.
func challenged(takes func(auth string) bool) func(http.ResponseWriter, *http.Request, []byte) bool {
	return func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if takes(r.Header.Get("Authorization")) {
			return false
		}
		w.Header().Set("WWW-Authenticate", challenge)
		testmcp.Status(http.StatusUnauthorized, "application/json", `{"error":"invalid_token"}`)(w, r)
		return true
	}
}

const challenge = `Bearer error="invalid_token", resource_metadata="https://auth.test/.well-known/oauth-protected-resource/x"`

var eras = []struct {
	name string
	era  testmcp.Era
}{{"legacy", testmcp.Legacy}, {"modern", testmcp.Modern}}

// start starts the program. Under the race detector it would wait for a second before it exits.
func start(t *testing.T, settings string, servers map[string]string, opts ...testmcp.ProxyOption) *testmcp.Proxy {
	t.Helper()
	opts = append(opts, testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))
	return testmcp.StartProxy(t, testmcp.Config(settings, servers), opts...)
}

// client opens a client that sends these headers with everything: name, value, ….
func client(t *testing.T, url string, era testmcp.Era, headers ...string) *testmcp.Client {
	t.Helper()
	c := testmcp.NewClient(t, url, era)
	c.Header = http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] != "" {
			c.Header.Set(headers[i], headers[i+1])
		}
	}
	return c.Open()
}

// own lists until the client sees its own tool: on a slow machine the first list may not wait long enough for it.
func own(t *testing.T, c *testmcp.Client, tool string) *testmcp.Client {
	t.Helper()
	deadline := time.Now().Add(testmcp.Patience)
	for !slices.Contains(c.ToolNames(), tool) {
		if time.Now().After(deadline) {
			t.Fatalf("%s never shows among %q", tool, c.ToolNames())
		}
	}
	return c
}

// wantTools checks the names of all tools, whatever their order.
func wantTools(t *testing.T, c *testmcp.Client, want ...string) {
	t.Helper()
	got := c.ToolNames()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the tools are %q, want %q", got, want)
	}
}

// caller is who the server says has called.
func caller(a testmcp.Answer) (name, session string) {
	parts := strings.Split(a.Text(), "|")
	if len(parts) != 3 {
		return "no answer: " + string(a.Raw) + string(a.Body), ""
	}
	return parts[0], parts[1]
}
