package interop

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/harness"
)

// launched is a server that is started through npx: a tree of npm, a shell and Node.
type launched struct {
	id      string
	program string // of the npm package; stands in the command line of every process of the tree
	args    []string
	tool    string
	given   string
}

// gated starts a command once the file of its first argument is there, so that a start takes as long as a test wants.
const gated = `until [ -e "$0" ]; do sleep 0.1; done; exec "$@"`

// TestServersThroughNpx has servers as most people have them.
func TestServersThroughNpx(t *testing.T) {
	npm := os.Getenv("MCP_PROXY_INTEROP")
	if npm == "" {
		t.Skip("MCP_PROXY_INTEROP does not name the folder of the npm packages; make interop sets it")
	}
	testmcp.Patience = readyTimeout
	binary, err := harness.BuildProxy(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files := t.TempDir()
	servers := []launched{
		{"everything", "mcp-server-everything", nil, "echo", `{"message":"hello"}`},
		{"files", "mcp-server-filesystem", []string{files}, "list_directory", `{"path":` + testmcp.Quote(files) + `}`},
		{"memory", "mcp-server-memory", nil, "read_graph", `{}`},
	}
	for _, s := range servers {
		t.Run(s.id, func(t *testing.T) {
			gate := filepath.Join(t.TempDir(), "gate")
			args := append([]string{"-c", gated, gate, "npx", "--offline", "--no", "--prefix", npm, "--", s.program}, s.args...)
			entries := map[string]string{
				s.id:     entry("sh", args, `"idle_stop":"3s"`),
				"steady": testmcp.NewRecorder(t).Entry("basic", nil),
			}
			p := testmcp.StartProxy(t, testmcp.Config(`{"startup_grace":"1s"}`, entries), testmcp.WithBinary(binary), testmcp.WithoutReady())
			s.startsCold(t, p, gate)
			s.rests(t, p)
			s.dies(t, p)
		})
	}
}

func entry(command string, args []string, more string) string {
	return `{"command":` + testmcp.Quote(command) + `,"args":` + quoteAll(args) + "," + more + "}"
}

func quoteAll(texts []string) string {
	var b bytes.Buffer
	for i, text := range texts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(testmcp.Quote(text))
	}
	return "[" + b.String() + "]"
}

// tree gives the processes of the server.
func (s launched) tree(p *testmcp.Proxy) []int {
	return slices.DeleteFunc(testmcp.Descendants(p.PID()), func(pid int) bool {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		return err != nil || !bytes.Contains(line, []byte(s.program))
	})
}

// leaf gives the process of the tree that has no child: the server itself.
func (s launched) leaf(t *testing.T, p *testmcp.Proxy) int {
	t.Helper()
	for _, pid := range s.tree(p) {
		if len(testmcp.Descendants(pid)) == 0 {
			return pid
		}
	}
	t.Fatal("the server has no process")
	return 0
}

func (s launched) params() string { return testmcp.ToolParams(s.id+"__"+s.tool, s.given) }

// startsCold looks at lists and calls of another server while this one starts.
func (s launched) startsCold(t *testing.T, p *testmcp.Proxy, gate string) {
	t.Helper()
	for _, era := range []testmcp.Era{testmcp.Legacy, testmcp.Modern} {
		c := p.Client(era)
		if names := c.ToolNames(); !slices.Contains(names, "steady__echo") || slices.Contains(names, s.id+"__"+s.tool) {
			t.Errorf("while one server starts, %q are listed", names)
		}
		if text := c.CallTool("steady__echo", `{"text":"meanwhile"}`).Text(); text != "meanwhile" {
			t.Errorf("while one server starts, the other answers %q", text)
		}
	}
	c := p.Client(testmcp.Legacy)
	news := c.Get("")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	news.WaitMethod("notifications/tools/list_changed")
	testmcp.Eventually(t, "the tools of a server that has started", func() bool {
		return slices.Contains(c.ToolNames(), s.id+"__"+s.tool)
	})
	s.answers(t, c)
}

func (s launched) answers(t *testing.T, c *testmcp.Client) {
	t.Helper()
	if a := c.Call("tools/call", s.params()); a.Err() != nil || a.IsError() {
		t.Errorf("a call gives %s", a.Raw)
	}
}

// rests waits until nothing of the tree is left and lets a call start it again, behind a closed gate at first.
func (s launched) rests(t *testing.T, p *testmcp.Proxy) {
	t.Helper()
	tree := s.tree(p)
	if len(tree) < 2 {
		t.Errorf("npx has started %d processes", len(tree))
	}
	testmcp.Eventually(t, "end of every process of the tree", func() bool {
		return len(s.tree(p)) == 0 && !slices.ContainsFunc(tree, testmcp.Alive)
	})
	c := p.Client(testmcp.Modern)
	if names := c.ToolNames(); !slices.Contains(names, s.id+"__"+s.tool) {
		t.Errorf("of a server that rests nothing is listed, only %q", names)
	}
	if len(s.tree(p)) != 0 {
		t.Error("a list has started the server")
	}
	s.answers(t, c)
}

// dies kills the server itself in the middle of a call, while npm and the shell above it live.
func (s launched) dies(t *testing.T, p *testmcp.Proxy) {
	t.Helper()
	for _, era := range []testmcp.Era{testmcp.Legacy, testmcp.Modern} {
		c := p.Client(era)
		s.recovers(t, c)
		server := s.leaf(t, p)
		signal(t, server, syscall.SIGSTOP) // so that the call is under way
		pending := c.Begin("tools/call", s.params())
		testmcp.Eventually(t, "the call under way", func() bool {
			return p.Metrics().Sum("mcp_proxy_requests_in_flight", "upstream", s.id) == 1
		})
		signal(t, server, syscall.SIGKILL)
		fault := pending.Final().Err()
		if fault.At("data", "upstream").Str() != s.id || fault.At("data", "reason").Str() != "uncertain" ||
			!bytes.HasPrefix([]byte(fault.At("message").Str()), []byte(s.id+"::"+s.tool+": ")) {
			t.Errorf("a call whose server is killed gives %s", fault)
		}
		s.recovers(t, c)
	}
}

// recovers calls until the server is there again. Calls that come too early say when to try.
func (s launched) recovers(t *testing.T, c *testmcp.Client) {
	t.Helper()
	testmcp.Eventually(t, "a call that works", func() bool {
		a := c.Call("tools/call", s.params())
		if fault := a.Err(); fault != nil && fault.At("data", "reason").Str() != "unavailable" {
			t.Fatalf("a call after the death gives %s", a.Raw)
		}
		return a.Result() != nil
	})
}

func signal(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}
