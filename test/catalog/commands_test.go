package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

const exactNumbers = `{"id":9007199254740993,"f":1.10,"e":1e400,"s":"\ud800 \/","twice":1,"twice":2}`

var _ = behaviour("exact", func() *testmcp.Server {
	structured := func(text string) testmcp.Tool {
		return testmcp.SimpleTool("numbers", func(c *testmcp.Call) {
			c.Result(`{"content":[{"type":"text","text":` + testmcp.Quote(text) + `}],"structuredContent":` + text + `}`)
		})
	}
	return &testmcp.Server{Tools: []testmcp.Tool{
		structured(exactNumbers),
		testmcp.SimpleTool("give", func(c *testmcp.Call) { c.Text(string(c.Params.At("arguments"))) }),
		testmcp.SimpleTool("blocks", func(c *testmcp.Call) {
			c.Result(`{"content":[{"type":"text","text":"a"},{"type":"hologram","beam":1e400}]}`)
		}),
		testmcp.SimpleTool("fail", func(c *testmcp.Call) { c.ToolError("failed as asked") }),
		testmcp.SimpleTool("refuse", func(c *testmcp.Call) { c.Error(-32000, "refused as asked", "") }),
		testmcp.SimpleTool("report", func(c *testmcp.Call) {
			c.Progress(1, 2, "")
			c.Text("reported")
		}),
	}}
})

func TestTheCallCommandKeepsEveryByteAndSaysHowItWent(t *testing.T) {
	t.Parallel()
	config := testmcp.Config("", map[string]string{"one": testmcp.NewRecorder(t).Entry("exact", nil)})
	p := start(t, config)
	const odd = `{"n":9007199254740993, "f":1.10,"e":1e400,"s":"\u00e9 \ud800"}`
	tests := []struct {
		args           []string
		code           int
		stdout, stderr string // stdout as it is, of stderr a part
	}{
		{[]string{"one__numbers"}, 0, exactNumbers + "\n", ""},
		{[]string{"one__give", odd}, 0, odd + "\n", ""},
		{[]string{"one__give", `{}`}, 0, "{}\n", ""},
		{[]string{"one__give"}, 0, "{}\n", ""},
		{[]string{"one__blocks"}, 0, `[{"type":"text","text":"a"},{"type":"hologram","beam":1e400}]` + "\n", ""},
		{[]string{"one__report"}, 0, "reported\n", ""},
		{[]string{"one__fail"}, 1, "", "failed as asked"},
		{[]string{"one__refuse"}, 1, "", "refused as asked"},
		{[]string{"one__nothing"}, 1, "", "one__nothing"},
		{[]string{"one__give", `[]`}, 1, "", "JSON object"},
		{[]string{"one__give", `{"a":`}, 1, "", "JSON object"},
		{[]string{"one__give", `{}`, `{}`}, 2, "", ""},
		{[]string{}, 2, "", ""},
		{[]string{"--nonsense", "one__give"}, 2, "", "nonsense"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			ran := run(t, nil, nil, append([]string{"call", "--url", p.URL}, tt.args...)...)
			if ran.Code != tt.code {
				t.Errorf("exit code %d, want %d", ran.Code, tt.code)
			}
			same(t, "what is written", ran.Stdout, tt.stdout)
			holds(t, "stderr", ran.Stderr, tt.stderr)
		})
	}
	t.Run("without a running proxy", func(t *testing.T) {
		ran := run(t, map[string]string{"mcp.json": config}, nil, "call", "--config", "mcp.json", "one__give", odd)
		if ran.Code != 0 || ran.Stdout != odd+"\n" {
			t.Errorf("exit code %d: %s%s", ran.Code, ran.Stdout, ran.Stderr)
		}
		ran = run(t, nil, nil, "call", "--url", "http://"+testmcp.RefusedAddr(t)+"/mcp", "one__give")
		if ran.Code != 1 || ran.Stderr == "" {
			t.Errorf("nobody there: exit code %d: %s", ran.Code, ran.Stderr)
		}
	})
}

func TestCheckTellsTheFinalNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60)
	good := config(t, `{"naming":{"on_conflict":"skip"}}`, named{id: "a", tools: []string{"b__c", "get it", long}},
		named{id: "a__b", tools: []string{"c", "hidden"}, more: []string{`"tool_policy":{"deny":["hidden"]}`}})
	ran := checkConfig(t, good, "--connect")
	if ran.Code != 0 {
		t.Errorf("exit code %d\n%s", ran.Code, ran.Stdout)
	}
	p := start(t, good)
	rows := map[string][]string{}
	for line := range strings.Lines(ran.Stdout) {
		if f := strings.Fields(line); len(f) >= 5 && f[2] == "tool" {
			rows[f[0]] = append(rows[f[0]], line)
		}
	}
	names := p.Client(testmcp.Modern).ToolNames()
	for _, name := range names {
		if len(rows[name]) != 1 {
			t.Errorf("%s stands in %d rows:\n%s", name, len(rows[name]), ran.Stdout)
		}
	}
	if len(names) != 3 || len(rows) != 4 || len(rows["-"]) != 1 {
		t.Errorf("%d names and %d kinds of rows:\n%s", len(names), len(rows), ran.Stdout)
	}
	holds(t, "the table", ran.Stdout, "characters", "length", "withheld")
	if len(rows["a__b__hidden"]) != 0 {
		t.Errorf("a tool that is denied is named:\n%s", ran.Stdout)
	}
	planned := table(checkConfig(t, good).Stdout)
	if row := planned["a"]; !slices.Equal(row, []string{"a", "a__TOOL", "stdio"}) {
		t.Errorf("without connecting the row is %q", row)
	}
}

func TestCheckTellsWhatCannotBeReached(t *testing.T) {
	t.Parallel()
	servers := map[string]string{
		"good": testmcp.NewRecorder(t).Entry("named", []string{"x"}), "gone": `{"command":"/nowhere/at/all"}`,
		"refused": `{"url":"http://` + testmcp.RefusedAddr(t) + `/mcp"}`, "exits": `{"command":"/bin/sh","args":["-c","echo no licence >&2; exit 3"]}`,
	}
	ran := checkConfig(t, testmcp.Config("", servers), "--connect")
	if ran.Code != 1 {
		t.Errorf("exit code %d, want 1", ran.Code)
	}
	holds(t, "what is said", ran.Stdout, "good__x", "gone: ", "/nowhere/at/all", "refused: ", "exits: ", "no licence")
	if ran := checkConfig(t, testmcp.Config("", map[string]string{"gone": servers["gone"]})); ran.Code != 0 {
		t.Errorf("without connecting: exit code %d\n%s", ran.Code, ran.Stdout)
	}
}

func TestAdviceIsAMistakeOnlyWhenCheckIsStrict(t *testing.T) {
	t.Parallel()
	config := testmcp.Config("", map[string]string{"a": `{"command":"npx","args":["-y","some-server"]}`})
	lenient, strict := checkConfig(t, config), checkConfig(t, config, "--strict")
	if lenient.Code != 0 || strict.Code != 1 {
		t.Errorf("exit codes %d and %d, want 0 and 1\n%s", lenient.Code, strict.Code, lenient.Stdout)
	}
	holds(t, "the advice", lenient.Stdout, "warning: ", "mcpServers.a")
	exact := testmcp.Config("", map[string]string{"a": `{"command":"/bin/cat"}`})
	if ran := checkConfig(t, exact, "--strict"); ran.Code != 0 {
		t.Errorf("nothing to advise: exit code %d\n%s", ran.Code, ran.Stdout)
	}
}

func TestWhatIsPrintedHidesSecretsAndTellsWhereValuesComeFrom(t *testing.T) {
	t.Parallel()
	config := testmcp.Config(`{"auth":{"tokens":[{"name":"ann","token":"hunter2hunter2-token"}]}}`, map[string]string{
		"a": `{"command":"/bin/cat","args":["--key","${SECRET}"],"env":{"KEY":"hunter2hunter2","PLAIN":"${SECRET}"}}`,
		"b": `{"url":"http://user:hunter2@h/mcp?key=hunter2","headers":{"X-Key":"hunter2-header"}}`,
		"d": `{"url":"http://h/mcp","auth_token":"${SECRET}"}`,
		"c": `{"command":"/bin/cat","call_timeout":"7s"}`,
	})
	ran := checkConfig(t, config, "--print")
	if ran.Code != 0 {
		t.Errorf("exit code %d\n%s", ran.Code, ran.Stdout)
	}
	if strings.Contains(ran.Stdout+ran.Stderr, "hunter2") {
		t.Errorf("a secret is printed:\n%s%s", ran.Stdout, ran.Stderr)
	}
	holds(t, "what is printed", ran.Stdout, "<secret>", "call_timeout: 7s", "mcp.json:1", "# default", `"KEY"`, `"X-Key"`)
}
