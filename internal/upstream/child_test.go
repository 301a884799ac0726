package upstream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

var (
	_ = testmcp.Register("plain", func([]string) *testmcp.Server { return &testmcp.Server{Tools: callTool(nil)} })
	_ = testmcp.Register("failing", func([]string) *testmcp.Server {
		return &testmcp.Server{Start: func(p *testmcp.Process) {
			p.Stderr("reading settings\ncannot find the database of TOKEN-VALUE\n")
			p.Exit(3)
		}}
	})
	_ = testmcp.Register("stubborn", func([]string) *testmcp.Server {
		return &testmcp.Server{Tools: callTool(nil), Start: func(p *testmcp.Process) { p.IgnoreSIGTERM() }, AtEOF: func(p *testmcp.Process) { p.Hang() }}
	})
	_ = testmcp.Register("crashing", func([]string) *testmcp.Server {
		return &testmcp.Server{Era: testmcp.Legacy, Tools: callTool(func(c *testmcp.Call) { c.Process().Crash() })}
	})
	_ = testmcp.Register("deaf", func([]string) *testmcp.Server {
		return &testmcp.Server{Era: testmcp.Legacy, Serial: true, Tools: callTool(func(c *testmcp.Call) { c.Process().Hang() }), AtEOF: func(p *testmcp.Process) { p.Hang() }}
	})
)

func callTool(do testmcp.Handler) []testmcp.Tool {
	if do == nil {
		do = func(c *testmcp.Call) { c.Result(`{"content":[],"structuredContent":{"pid":1}}`) }
	}
	return []testmcp.Tool{{Definition: `{"name":"t","inputSchema":{"type":"object"}}`, Handle: do}}
}

func childConfig(behaviour string) *config.Server {
	cfg := serverConfig(config.TransportStdio)
	cfg.Command, cfg.Args, cfg.Env = testmcp.Command(behaviour)
	return cfg
}

// startReal starts an upstream on the real system and waits for the end of its first attempt.
func startReal(t *testing.T, r *rig, cfg *config.Server) *Upstream {
	t.Helper()
	u := New(cfg, Options{Log: zap.NewNop(), Count: r.count, Budget: r.budget, Limits: config.Limits{MaxFrameBytes: 1 << 20}, Version: "1"})
	u.Start()
	t.Cleanup(u.Stop)
	select {
	case <-u.First():
	case <-t.Context().Done():
	}
	return u
}

func lease(t *testing.T, u *Upstream) *Lease {
	t.Helper()
	l, err := u.Acquire(t.Context(), Unit{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// called calls a tool and tells what came of it.
func called(t *testing.T, u *Upstream, l *Lease) (string, error) {
	t.Helper()
	id := u.NextID()
	frame := append(wire.AppendUpstreamID([]byte(`{"jsonrpc":"2.0","id":`), id), `,"method":"tools/call","params":{"name":"t","arguments":{}`...)
	if l.Peer().Era == wire.Modern {
		frame = append(frame, `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`...)
	}
	x, err := l.Start(t.Context(), &Outgoing{ID: id, Method: "tools/call", Name: "t", Frame: append(frame, "}}"...)})
	if err != nil {
		return "", err
	}
	defer x.Close(false)
	f, err := x.Next(t.Context())
	if err != nil {
		return "", err
	}
	return string(f.Body.Get(f.Raw, "structuredContent").Of(f.Raw)), nil
}

func TestAChildServesAndEnds(t *testing.T) {
	t.Parallel()
	u := startReal(t, newRig(t), childConfig("plain"))
	l := lease(t, u)
	pid := l.conn.(*child).proc.PID()
	if got, err := called(t, u, l); got != `{"pid":1}` || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	l.Release()
	u.Stop()
	if testmcp.Alive(pid) {
		t.Error("the child is alive")
	}
	select {
	case <-l.conn.Done():
	default:
		t.Error("the connection is not done")
	}
}

// Neither the end of stdin nor SIGTERM impress this one.
func TestAStubbornChildIsKilled(t *testing.T) {
	t.Parallel()
	u := startReal(t, newRig(t), childConfig("stubborn"))
	l := lease(t, u)
	l.Release()
	pid := l.conn.(*child).proc.PID()
	u.Stop()
	if testmcp.Alive(pid) {
		t.Error("the child is alive")
	}
}

func TestAChildThatCannotStartTellsWhy(t *testing.T) {
	t.Parallel()
	cfg := childConfig("failing")
	cfg.Env["API_TOKEN"] = "TOKEN-VALUE"
	u := startReal(t, newRig(t), cfg)
	f := u.Status().Failure
	if f == nil || !strings.Contains(f.Message, "exited with code 3") || !strings.Contains(f.Message, "cannot find the database of <secret>") {
		t.Errorf("the failure is %+v", f)
	}
}

func TestACommandThatIsNotThere(t *testing.T) {
	cfg := childConfig("plain")
	cfg.Command = "no-such-command-anywhere"
	u := startReal(t, newRig(t), cfg)
	if f := u.Status().Failure; f == nil || f.Stage != "start" || !strings.Contains(f.Message, `"no-such-command-anywhere" was not found`) {
		t.Errorf("the failure is %+v", f)
	}
}

func TestAFileThatIsNoProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("no program\x00"), 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := childConfig("plain")
	cfg.Command = path
	u := startReal(t, newRig(t), cfg)
	if f := u.Status().Failure; f == nil || f.Stage != "start" || !strings.Contains(f.Message, "cannot start") {
		t.Errorf("the failure is %+v", f)
	}
}

func TestAChildThatCrashesUnderACall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	u := startReal(t, r, childConfig("crashing"))
	l := lease(t, u)
	_, err := called(t, u, l)
	l.Release()
	if e := wantReason(t, err, ReasonUncertain); !strings.Contains(e.Error(), "signal: killed") {
		t.Errorf("the error is %v", e)
	}
	r.wantBudgetWhole()
}

// Half a frame on a child's stdin costs the child: nobody could tell where the next message begins.
func TestAChildThatReadsHalfAFrameIsReplaced(t *testing.T) {
	t.Parallel()
	u := startReal(t, newRig(t), childConfig("deaf"))
	l := lease(t, u)
	defer l.Release()
	c := l.conn.(*child)
	c.pipe.broken(errBudget)
	<-c.Done()
	<-c.proc.Exited()
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("the child ended with %v", err)
	}
}
