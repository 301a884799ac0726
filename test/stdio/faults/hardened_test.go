package faults

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

const forbidden = "proxy.allow_stdio: false forbids"

func TestProgramsAreNotStartedWhereThatIsForbidden(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	remote := testmcp.ServeHTTP(t, testmcp.Basic("remote"), testmcp.HTTPOptions{})
	servers := map[string]string{"program": rec.Entry("basic", nil), "remote": remote.Entry()}
	config := testmcp.Config(`{"allow_stdio":false}`, servers)

	p := testmcp.StartProxy(t, config)
	st := stdio.UpstreamStatus(p, "program")
	if st.At("state").Str() != "failed" || !strings.Contains(st.At("last_error", "message").Str(), forbidden) {
		t.Errorf("the status is %s", st)
	}
	c := p.Client(testmcp.Modern)
	if a := c.CallTool("remote__echo", `{"text":"x"}`); a.Text() != "x" {
		t.Errorf("the other one gives %.300s", a.Raw)
	}
	if ran := testmcp.Run(t, map[string]string{"mcp.json": config}, nil, "check", "--config", "mcp.json"); ran.Code != 1 || !strings.Contains(ran.Stdout, forbidden) {
		t.Errorf("check exits with %d: %s", ran.Code, ran.Stdout)
	}
	pipe := testmcp.StartStdio(t, testmcp.Legacy, config)
	if tools := string(pipe.Open().Call("tools/list", "{}").Raw); strings.Contains(tools, "program__") || !strings.Contains(tools, "remote__") {
		t.Errorf("over stdio the tools are %s", tools)
	}
	if n := rec.Count(testmcp.Is(testmcp.Start)); n != 0 {
		t.Errorf("the program was started %d times", n)
	}
}

func TestAReloadThatForbidsARunningProgramIsRejected(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	servers := map[string]string{"program": rec.Entry("basic", nil)}
	p := testmcp.StartProxy(t, testmcp.Config("", servers))
	p.WriteConfig(testmcp.Config(`{"allow_stdio":false}`, servers))
	p.WaitLog("the new configuration is rejected")
	if line := p.WaitLog(forbidden); !strings.Contains(line, "program") {
		t.Errorf("the log says %s", line)
	}
	if a := p.Client(testmcp.Modern).CallTool("program__echo", `{"text":"x"}`); a.Status != http.StatusOK || a.Text() != "x" {
		t.Errorf("afterwards: %.300s", a.Raw)
	}
}
