package agents

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestAProgramIsATool(t *testing.T) {
	t.Parallel()
	p := start(t, agents{
		"triage helper": shell(`tr a-z A-Z; echo; echo`, `, "title": "Triage"`),
		"argument":      shell(`printf '%s|%s' "$1" "$(cat)"`, `, "input": "argument", "instructions": "be kind"`),
		"placed":        `{"kind": "command", "description": "d", "command": "printf", "args": ["<%s>", "{input}", "end"]}`,
		"environment":   shell(`printf '%s %s %s %s' "$A" "$B" "${SECRET_OF_PROXY-none}" "$PWD"`, `, "env": {"A": "1"}, "inherit_env": ["B"], "cwd": "/"`),
		"broken":        shell(`echo "key is $API_KEY" >&2; echo bad luck >&2; exit 3`, `, "env": {"API_KEY": "open-sesame"}`),
		"complains":     shell(`echo no disk; exit 1`, ""),
		"deaf":          shell(`exec <&-; echo heard nothing`, ""),
		"absent":        `{"kind": "command", "description": "d", "command": "/no/such/program"}`,
		"talks":         shell(`yes`, `, "max_answer_bytes": 2000`),
		"off":           shell(`echo`, `, "disabled": true`),
	}.config(""), testmcp.WithEnv("B=2", "SECRET_OF_PROXY=open-sesame"))
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			c := p.Client(era)
			def := toolOf(t, c, "triage_helper")
			if def.At("title").Str() != "Triage" || def.At("description").Str() != "runs a script" || string(def.At("inputSchema")) != `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}` {
				t.Errorf("the tool is %s", def)
			}
			if slices.Contains(c.ToolNames(), "off") {
				t.Error("an agent that is disabled is listed")
			}
			wantText(t, c.CallTool("triage_helper", input("hello")), "HELLO", false)
			wantText(t, c.CallTool("argument", input("hello")), "be kind\n\nhello|", false)
			wantText(t, c.CallTool("placed", input("-n $(id)")), "<-n $(id)><end>", false)
			wantText(t, c.CallTool("environment", input("")), "1 2 none /", false)
			wantText(t, c.CallTool("deaf", input(strings.Repeat("x", 1<<20))), "heard nothing", false)
			wantFault(t, c.CallTool("broken", input("")), "agent run failed: the process exited with code 3", "key is <secret>", "bad luck")
			wantFault(t, c.CallTool("complains", input("")), "code 1", "no disk")
			wantFault(t, c.CallTool("absent", input("")), "cannot start", "no such file")
			wantFault(t, c.CallTool("talks", input("")), "max_answer_bytes")
			wantFault(t, c.CallTool("argument", `{"input":"a\u0000b"}`), "zero byte")
			for _, bad := range []string{`{}`, `{"input":5}`, `{"input":null}`, `{"input":["a"]}`} {
				if a := c.CallTool("triage_helper", bad); a.Code() != -32602 || !strings.Contains(a.Err().At("message").Str(), "input") {
					t.Errorf("the arguments %s give %s", bad, a.Raw)
				}
			}
			if a := c.CallTool("off", input("")); a.Code() != -32602 {
				t.Errorf("an agent that is disabled answers %s", a.Raw)
			}
		})
	}
	if log := strings.Join(p.Log(), "\n"); strings.Contains(log, "open-sesame") {
		t.Error("a secret is in the log")
	}
	if status := string(p.Status()); strings.Contains(status, "open-sesame") || !strings.Contains(status, `"agent":"command"`) {
		t.Errorf("the status is %s", status)
	}
	m := p.Metrics()
	for _, outcome := range []string{"ok", "invalid"} {
		if m.Sum("mcp_proxy_requests_total", "upstream", "triage helper", "outcome", outcome) == 0 {
			t.Errorf("no call is counted as %s", outcome)
		}
	}
	if m.Sum("mcp_proxy_requests_total", "upstream", "broken", "outcome", "tool_error") == 0 {
		t.Error("no fault is counted")
	}
}

// toolOf gives the definition of a tool.
func toolOf(t *testing.T, c *testmcp.Client, name string) testmcp.Raw {
	t.Helper()
	for _, def := range c.List("tools/list", "tools") {
		if def.At("name").Str() == name {
			return def
		}
	}
	t.Fatalf("there is no tool %s, only %q", name, c.ToolNames())
	return nil
}

// stubborn starts a process that does not heed SIGTERM, and another one that outlives it.
const stubborn = `trap '' TERM; sleep 600 & echo $! >"$DIR/inner.tmp"; mv "$DIR/inner.tmp" "$DIR/inner"; echo $$ >"$DIR/outer.tmp"; mv "$DIR/outer.tmp" "$DIR/outer"; while :; do wait; done`

func TestTheProcessesOfARunEndWithIt(t *testing.T) {
	type ends func(t *testing.T, p *testmcp.Proxy, c *testmcp.Client, call *testmcp.Pending)
	ways := map[string]ends{
		"timeout": func(t *testing.T, _ *testmcp.Proxy, _ *testmcp.Client, call *testmcp.Pending) {
			wantFault(t, call.Final(), "agent run timed out after 1s")
		},
		"cancel": func(_ *testing.T, _ *testmcp.Proxy, c *testmcp.Client, call *testmcp.Pending) {
			c.Cancel(call.Stream())
		},
		"disconnect": func(_ *testing.T, _ *testmcp.Proxy, _ *testmcp.Client, call *testmcp.Pending) {
			call.Stream().Close()
		},
		"reload": func(_ *testing.T, p *testmcp.Proxy, _ *testmcp.Client, _ *testmcp.Pending) {
			p.WriteConfig(agents{"other": shell("cat", "")}.config(settings))
			p.Reload()
		},
		"shutdown": func(_ *testing.T, p *testmcp.Proxy, _ *testmcp.Client, _ *testmcp.Pending) { p.Terminate() },
	}
	for how, end := range ways {
		for name, era := range eras {
			t.Run(how+" "+name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				timeout := "10m"
				if how == "timeout" {
					timeout = "1s"
				}
				p := start(t, agents{"a": shell(stubborn, `, "timeout": "`+timeout+`", "env": {"DIR": `+testmcp.Quote(dir)+`}`)}.config(settings))
				c := p.Client(era)
				call := c.Begin("tools/call", testmcp.ToolParams("a", input("x")))
				outer, inner := pidIn(t, filepath.Join(dir, "outer")), pidIn(t, filepath.Join(dir, "inner"))
				end(t, p, c, call)
				wantGone(t, "the process", outer)
				wantGone(t, "what it has started", inner)
				if how == "shutdown" {
					if code := p.WaitExit(); code != 0 {
						t.Errorf("the program exits with %d", code)
					}
				}
			})
		}
	}
}

// settings let a client that has gone be gone at once, and calls end soon with the program.
const settings = `{"sessions": {"resume_window": "50ms"}, "shutdown_grace": "100ms", "stream_after": "50ms"}`

func TestRunsOfAProgramAreBoundedAndApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := `i=$(cat); mkfifo "$DIR/$i"; echo "$i $$" >>"$DIR/begun"; cat "$DIR/$i"`
	p := start(t, agents{"a": shell(script, `, "max_concurrency": 2, "max_queue": 0, "env": {"DIR": `+testmcp.Quote(dir)+`}`)}.config(""))
	c := p.Client(testmcp.Modern)
	var calls []*testmcp.Pending
	begun := func(n int) func() bool {
		return func() bool {
			b, _ := os.ReadFile(filepath.Join(dir, "begun"))
			return strings.Count(string(b), "\n") == n
		}
	}
	for i, name := range []string{"one", "two"} {
		calls = append(calls, c.Begin("tools/call", testmcp.ToolParams("a", input(name))))
		testmcp.Eventually(t, "run "+name, begun(i+1))
	}
	wantFault(t, c.CallTool("a", input("three")), "agent run failed", "2 calls run")
	for i, name := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("answer of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		wantText(t, calls[i].Final(), "answer of "+name, false)
	}
}

func TestAgentsAreFoundEverywhere(t *testing.T) {
	t.Parallel()
	text := agents{"triage helper": shell("cat", ""), "other": shell("cat", "")}.config(
		`{"profiles": {"sorting": {"servers": ["triage helper"]}, "none": {"servers": ["triage helper", "other"], "tool_policy": {"deny": ["triage_*"]}}}}`)
	p := start(t, text)
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			for url, want := range map[string][]string{
				p.URL: {"other", "triage_helper"}, p.Profile("sorting"): {"triage_helper"}, p.Profile("none"): {"other"}, p.Server("triage%20helper"): {"triage_helper"},
			} {
				c := testmcp.Connect(t, url, era)
				got := c.ToolNames()
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("%s lists %q, not %q", url, got, want)
				}
				if a := c.CallTool("triage_helper", input("hi")); slices.Contains(want, "triage_helper") != (a.Text() == "hi") {
					t.Errorf("%s answers %s", url, a.Raw)
				}
			}
		})
	}
	if code, body := p.Ready(); code != http.StatusOK || !strings.Contains(string(body), "triage helper") {
		t.Errorf("readiness is %d %s", code, body)
	}
	p.WriteConfig(agents{"other": shell("cat", ""), "new one": shell("cat", "")}.config(""))
	p.Reload()
	c := p.Client(testmcp.Modern)
	testmcp.Eventually(t, "the agent that was added", func() bool { return slices.Contains(c.ToolNames(), "new_one") })
	if slices.Contains(c.ToolNames(), "triage_helper") {
		t.Error("an agent that was taken out is listed")
	}
}
