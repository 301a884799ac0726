package httpd

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mcp-proxy/mcp-proxy/internal/auth"
	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeMCP knows some endpoints, notes what gets to it and answers with serve, or with 200 and the endpoint.
type fakeMCP struct {
	has map[Endpoint]bool

	mu    sync.Mutex // guards the rest
	serve http.HandlerFunc
	got   []arrival
}

type arrival struct {
	Endpoint
	who    auth.Principal
	header http.Header
}

func (m *fakeMCP) Has(ep Endpoint) bool { return ep.Kind == KindAggregate || m.has[ep] }

func (m *fakeMCP) Serve(w http.ResponseWriter, r *http.Request, ep Endpoint, who auth.Principal) {
	m.mu.Lock()
	m.got = append(m.got, arrival{ep, who, r.Header.Clone()})
	serve := m.serve
	m.mu.Unlock()
	if serve != nil {
		serve(w, r)
		return
	}
	io.WriteString(w, string(ep.Kind)+" "+ep.Name)
}

// answer sets what Serve does from now on.
func (m *fakeMCP) answer(serve http.HandlerFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serve = serve
}

func (m *fakeMCP) last(t *testing.T) arrival {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.got) == 0 {
		t.Fatal("nothing reached the protocol")
	}
	return m.got[len(m.got)-1]
}

// house is a door with everything around it.
type house struct {
	t      *testing.T
	mcp    *fakeMCP
	reg    *prometheus.Registry
	log    *observer.ObservedLogs
	mu     sync.Mutex // guards limits
	limits []string
	status Status
	door   *Door
	url    string // of the main listener
	admin  string
}

type change func(*house, *Options)

func proxyIs(f func(*config.Proxy)) change { return func(_ *house, o *Options) { f(&o.Proxy) } }

func withTokens(header string) change {
	return func(_ *house, o *Options) {
		o.Auth = auth.New(config.Auth{Mode: config.AuthTokens, Header: header, Tokens: []config.Token{
			{Name: "alice", Token: "alice-secret"}, {Name: "bob", Token: "bob-secret", Profile: "small"},
		}})
	}
}

func withAdmin(_ *house, o *Options) { o.AdminListen = "127.0.0.1:9090" }

func listening(addr string) change { return func(_ *house, o *Options) { o.Listen = addr } }

func loggingAt(level zapcore.Level) change {
	return func(h *house, o *Options) {
		core, logs := observer.New(level)
		o.Log, h.log = zap.New(core), logs
	}
}

// open builds a door with real servers on loopback. Listen is 127.0.0.1:8080 unless changed.
func open(t *testing.T, changes ...change) *house {
	t.Helper()
	h := &house{t: t, reg: prometheus.NewRegistry(), status: Status{Status: StatusReady, Ready: true}}
	h.mcp = &fakeMCP{has: map[Endpoint]bool{
		{KindServer, "u"}: true, {KindServer, "a/b c"}: true, {KindServer, "50%41"}: true,
		{KindProfile, "small"}: true, {KindProfile, "other"}: true,
	}}
	o := Options{
		Registry: h.reg, Auth: auth.New(config.Auth{}), MCP: h.mcp, Listen: "127.0.0.1:8080", Version: "1.2.3",
		Status: func() Status { return h.status },
		Limit:  h.limited,
	}
	loggingAt(zapcore.DebugLevel)(h, &o)
	for _, c := range changes {
		c(h, &o)
	}
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	h.door, h.url = d, h.listen(d.Main())
	if d.Admin() != nil {
		h.admin = h.listen(d.Admin())
	}
	return h
}

func (h *house) limited(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limits = append(h.limits, name)
}

func (h *house) limitsHit() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.limits, " ")
}

func (h *house) listen(handler http.Handler) string {
	s := httptest.NewUnstartedServer(nil)
	s.Config = NewServer(h.t.Context(), handler, zap.NewNop())
	s.Start()
	h.t.Cleanup(s.Close)
	return s.URL
}

// answer is a response that has been read.
type answer struct {
	*http.Response
	body string
}

// ask sends one request; headers are "Name: value". Redirects are not followed.
func (h *house) ask(method, url, body string, headers ...string) answer {
	h.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(h.t.Context(), method, url, reader)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	return h.do(r)
}

func (h *house) do(r *http.Request) answer {
	h.t.Helper()
	client := http.Client{
		Timeout:       20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DisableKeepAlives: true},
	}
	resp, err := client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{resp, string(text)}
}

func (h *house) post(path string, headers ...string) answer {
	h.t.Helper()
	return h.ask("POST", h.url+path, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, headers...)
}

func (h *house) get(path string, headers ...string) answer {
	h.t.Helper()
	return h.ask("GET", h.url+path, "", headers...)
}

// rpcError checks that an answer is a JSON-RPC error of this status, and gives it.
func (h *house) rpcError(a answer, status int) errorObject {
	h.t.Helper()
	var body errorBody
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		h.t.Fatalf("HTTP %d, no JSON: %q", a.StatusCode, a.body)
	}
	if a.StatusCode != status || body.JSONRPC != "2.0" || body.Error.Code == 0 || body.Error.Message == "" || body.Error.Data.Reason == "" {
		h.t.Fatalf("HTTP %d %s, want %d with a JSON-RPC error", a.StatusCode, a.body, status)
	}
	if !strings.Contains(a.body, `"id":null`) || a.Header.Get("Content-Type") != "application/json" {
		h.t.Fatalf("Content-Type %q, body %s", a.Header.Get("Content-Type"), a.body)
	}
	return body.Error
}
