package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/clients"
	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/demo"
	"github.com/mcp-proxy/mcp-proxy/internal/state"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options are those of an App with this section "proxy" and these servers in this process.
func options(t *testing.T, section string, servers map[string]*mcp.Server) Options {
	t.Helper()
	text := `{"mcpServers":{"off":{"command":"x","disabled":true}},"proxy":{"listen":"127.0.0.1:0"` + section + `}}`
	l := config.Load(config.Options{Text: []byte(text), Source: "test", WorkDir: t.TempDir(), Getenv: func(string) (string, bool) { return "", false }})
	if f := l.Fatal(); len(f) > 0 {
		t.Fatal(f)
	}
	o := Options{Config: l.Config, Log: zap.NewNop(), Version: "1", InProcess: map[string]upstream.InProcess{}}
	for id, s := range servers {
		cfg := *l.Config.Servers[0]
		cfg.ID, cfg.Transport, cfg.Disabled, cfg.Command = id, config.TransportInProcess, false, ""
		o.Config.Servers = append(o.Config.Servers, &cfg)
		o.InProcess[id] = func(ctx context.Context, rw io.ReadWriteCloser) error { return demo.Serve(ctx, s, rw) }
		if s == nil {
			o.InProcess[id] = func(context.Context, io.ReadWriteCloser) error { return errors.New("it is broken") }
		}
	}
	return o
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("%s: it does not come", what)
		}
	}
}

func TestAnAppServesAndStops(t *testing.T) {
	a, err := New(options(t, `,"admin_listen":"127.0.0.1:0"`, map[string]*mcp.Server{"notes": demo.Notes("1"), "broken": nil}))
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	a.WaitListed(t.Context())
	if got, err := (&clients.Caller{URL: a.URL()}).Call(t.Context(), "notes__find", []byte(`{}`)); err != nil || !strings.HasPrefix(string(got), "welcome") {
		t.Errorf("a call gives %s, %v", got, err)
	}
	base, admin := strings.TrimSuffix(a.URL(), "/mcp"), "http://"+a.listeners[1].Addr().String()
	if err := clients.Health(t.Context(), base); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{
		"/metrics":       `mcp_proxy_upstream_up{upstream="notes"} 1`,
		"/readyz":        `"broken"`,
		"/api/v1/status": `"notes__find"`,
	} {
		if status, body := get(t, admin+path); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.300s, want %s", path, status, body, want)
		}
	}
	st := a.Status()
	states := map[string]string{}
	for _, u := range st.Upstreams {
		states[u.ID] = u.State
	}
	if states["notes"] != "ready" || states["off"] != "disabled" || states["broken"] == "ready" || len(states) != 3 {
		t.Errorf("the states are %v", states)
	}
	if err := a.Failures(); err == nil || !strings.HasPrefix(err.Error(), "broken: ") {
		t.Errorf("the failures are %v", err)
	}
	if err := a.Stop(); err != nil {
		t.Error(err)
	}
	if err := a.Stop(); err != nil {
		t.Errorf("a second stop: %v", err)
	}
	for _, l := range a.listeners {
		if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
			_ = c.Close()
			t.Errorf("%s is open still", l.Addr())
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	a, err := New(options(t, ``, map[string]*mcp.Server{"notes": demo.Notes("1")}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	eventually(t, "readiness", func() bool { return a.Status().Ready })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run gives %v", err)
	}
}

func TestRunEndsWhenServingFails(t *testing.T) {
	a, err := New(options(t, ``, nil))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- a.Run(t.Context()) }()
	eventually(t, "serving", func() bool { return clients.Health(t.Context(), a.URL()) == nil })
	_ = a.listeners[0].Close()
	if err := <-done; err == nil || !strings.HasPrefix(err.Error(), "serving on ") {
		t.Errorf("Run gives %v", err)
	}
}

// A strict start names everything that failed; a lenient one serves what there is.
func TestAStrictStart(t *testing.T) {
	a, err := New(options(t, `,"startup":"strict"`, map[string]*mcp.Server{"notes": demo.Notes("1"), "broken": nil, "bad": nil}))
	if err != nil {
		t.Fatal(err)
	}
	err = a.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "broken: ") || !strings.Contains(err.Error(), "bad: ") || strings.Contains(err.Error(), "notes: ") {
		t.Errorf("Run gives %v", err)
	}
}

func TestAStrictStartThatIsInterrupted(t *testing.T) {
	o := options(t, `,"startup":"strict"`, nil)
	o = withServer(o, "silent", func(ctx context.Context, _ io.ReadWriteCloser) error { <-ctx.Done(); return nil })
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run gives %v", err)
	}
}

// A listener that fails is noticed while a strict start still waits for its servers.
func TestServingFailsDuringAStrictStart(t *testing.T) {
	o := options(t, `,"startup":"strict"`, nil)
	o = withServer(o, "silent", func(ctx context.Context, _ io.ReadWriteCloser) error { <-ctx.Done(); return nil })
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- a.Run(t.Context()) }()
	eventually(t, "serving", func() bool { return clients.Health(t.Context(), a.URL()) == nil })
	_ = a.listeners[0].Close()
	if err := <-done; err == nil || !strings.HasPrefix(err.Error(), "serving on ") {
		t.Errorf("Run gives %v", err)
	}
}

func withServer(o Options, id string, serve upstream.InProcess) Options {
	cfg := *o.Config.Servers[0]
	cfg.ID, cfg.Transport, cfg.Disabled = id, config.TransportInProcess, false
	o.Config.Servers = append(o.Config.Servers, &cfg)
	o.InProcess[id] = serve
	return o
}

func TestEqualNamesEndTheStart(t *testing.T) {
	for policy, fails := range map[string]bool{"fail": true, "suffix": false, "skip": false} {
		o := options(t, `,"naming":{"mode":"none","on_conflict":"`+policy+`"}`, map[string]*mcp.Server{"one": demo.Notes("1"), "two": demo.Notes("1")})
		a, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		if !fails {
			eventually(t, policy, func() bool { return a.Status().Ready })
			cancel()
		}
		err = <-done
		cancel()
		if (err != nil) != fails || fails && !strings.Contains(err.Error(), `"find"`) {
			t.Errorf("%s: Run gives %v", policy, err)
		}
	}
}

// Whatever New has taken before it fails is given back.
func TestNewGivesBackWhatItTook(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := filepath.Join(t.TempDir(), "state")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	_ = free.Close()

	o := options(t, fmt.Sprintf(`,"state_dir":%q`, dir), nil)
	o.Config.Proxy.Listen, o.Config.Proxy.AdminListen = addr, taken.Addr().String()
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "listening on "+fmt.Sprintf("%q", taken.Addr().String())) {
		t.Errorf("New gives %v", err)
	}
	again, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatalf("the first listener is open still: %v", err)
	}
	_ = again.Close()
	s, err := state.Open(dir)
	if err != nil {
		t.Fatalf("the state directory is taken still: %v", err)
	}
	_ = s.Close()
}

func TestAStateDirectoryThatIsTaken(t *testing.T) {
	dir := t.TempDir()
	s, err := state.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for given, fails := range map[bool]bool{true: true, false: false} {
		o := options(t, ``, nil)
		o.Config.Proxy.StateDir, o.Config.Proxy.StateDirGiven = dir, given
		a, err := New(o)
		if (err != nil) != fails || fails && !errors.Is(err, state.ErrLocked) {
			t.Errorf("named in the file %v: New gives %v", given, err)
		}
		if err == nil {
			_ = a.Stop()
		}
	}
}

// Offline, an App looks at what it would offer and touches neither listeners nor state.
func TestLookingWithoutServing(t *testing.T) {
	o := options(t, ``, map[string]*mcp.Server{"notes": demo.Notes("1")})
	o.Offline = true
	o.Config.Proxy.StateDir = filepath.Join(t.TempDir(), "never")
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	a.WaitListed(t.Context())
	var names []string
	for _, n := range a.Names() {
		names = append(names, n.Exposed)
	}
	if got := strings.Join(names, " "); got != "notes__add notes__find" {
		t.Errorf("the names are %s", got)
	}
	if p := a.Planned(); len(p) != 1 || p[0] != (Planned{"notes", "notes__TOOL", "inprocess"}) {
		t.Errorf("planned: %v", p)
	}
	if err := a.Failures(); err != nil {
		t.Error(err)
	}
	if err := a.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(o.Config.Proxy.StateDir); err == nil {
		t.Error("a state directory was made")
	}
}

func TestCleanupsRunBackwardsAndAllOfThem(t *testing.T) {
	var c cleanups
	var order []string
	for _, name := range []string{"first", "second", "third"} {
		c.add(name, func(context.Context) error {
			order = append(order, name)
			if name == "second" {
				return errors.New("stuck")
			}
			return nil
		})
	}
	if err := c.run(t.Context(), zap.NewNop()); err == nil || err.Error() != "second: stuck" {
		t.Errorf("the error is %v", err)
	}
	if got := strings.Join(order, " "); got != "third second first" {
		t.Errorf("the order is %s", got)
	}
	if err := c.run(t.Context(), zap.NewNop()); err != nil || len(order) != 3 {
		t.Errorf("a second run: %v, %v", err, order)
	}
}

func TestTheDemo(t *testing.T) {
	d, err := StartDemo("1")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop()
	l := config.Load(config.Options{Text: d.Text, Source: "demo", Getenv: func(string) (string, bool) { return "", false }, Listen: "127.0.0.1:0"})
	if f := l.Fatal(); len(f) > 0 {
		t.Fatal(f)
	}
	d.Complete(l.Config)
	cfg := *l.Config
	cfg.Servers = cfg.Servers[1:] // the child is this binary, which is a test here
	a, err := New(Options{Config: &cfg, Log: zap.NewNop(), Version: "1", InProcess: d.InProcess})
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	defer func() { _ = a.Stop() }()
	a.WaitListed(t.Context())
	var names []string
	for _, n := range a.Names() {
		names = append(names, n.Exposed)
	}
	if got := strings.Join(names, " "); got != "notes__add notes__find guide__next_steps" {
		t.Errorf("the names are %s", got)
	}
}

func TestADemoServerByItself(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := ServeDemo(ctx, "1", addr); err == nil {
		t.Error("an address that is taken is no error")
	}
	_ = l.Close()
	go func() { done <- ServeDemo(ctx, "1", addr) }()
	eventually(t, "the demo server", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	cancel()
	if err := <-done; err != nil {
		t.Errorf("ServeDemo gives %v", err)
	}
}

// One conversation over stdio ends everything when its input ends.
func TestOneConversation(t *testing.T) {
	o := options(t, ``, map[string]*mcp.Server{"notes": demo.Notes("1")})
	o.Stdio = true
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	in, out := io.Pipe()
	lines, answers := io.Pipe()
	done := make(chan error)
	go func() { done <- a.ServeStdio(t.Context(), in, answers, Part{}) }()
	d := json.NewDecoder(lines)
	ask := func(frame string) string {
		if _, err := io.WriteString(out, frame+"\n"); err != nil {
			t.Fatal(err)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if got := ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`); !strings.Contains(got, `"protocolVersion":"2025-11-25"`) {
		t.Errorf("initialize: %s", got)
	}
	if got := ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); !strings.Contains(got, `"notes__find"`) {
		t.Errorf("the list: %s", got)
	}
	_ = out.Close()
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	if err := <-done; err != nil {
		t.Errorf("ServeStdio gives %v", err)
	}
	_ = answers.Close()
}

func TestAPartThatIsNotThere(t *testing.T) {
	o := options(t, ``, nil)
	o.Stdio = true
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.ServeStdio(t.Context(), strings.NewReader(""), io.Discard, Part{Profile: "none"}); err == nil || !strings.Contains(err.Error(), "profile/none") {
		t.Errorf("ServeStdio gives %v", err)
	}
}
