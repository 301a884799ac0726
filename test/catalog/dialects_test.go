package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// table gives the rows of the table that check prints, by their first column.
func table(stdout string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(stdout) {
		if f := strings.Fields(line); len(f) > 1 {
			out[f[0]] = f
		}
	}
	return out
}

func checkConfig(t *testing.T, config string, args ...string) testmcp.Ran {
	t.Helper()
	return run(t, map[string]string{"mcp.json": config}, variables, append([]string{"check", "--config", "mcp.json"}, args...)...)
}

func TestEverySpellingOfATransportIsUnderstood(t *testing.T) {
	t.Parallel()
	const url, command = `"url":"http://127.0.0.1:1/x"`, `"command":"/bin/cat"`
	spellings := map[string][]string{
		"http":  {"streamableHttp", "streamable-http", "streamable_http", "http", "HTTP", "StreamableHTTP", "streamable http"},
		"sse":   {"sse", "SSE"},
		"stdio": {"stdio", "STDIO", "local"},
	}
	servers, want := map[string]string{}, map[string]string{}
	add := func(entry, transport string) {
		id := fmt.Sprint("s", len(servers))
		servers[id], want[id] = entry, transport
	}
	for transport, all := range spellings {
		where := map[bool]string{true: command, false: url}[transport == "stdio"]
		for _, s := range all {
			for _, key := range []string{"type", "transport", "transportType"} {
				add(`{`+where+`,"`+key+`":"`+s+`"}`, transport)
			}
		}
	}
	add(`{`+url+`}`, "http")
	add(`{`+command+`}`, "stdio")
	add(`{"httpUrl":"http://127.0.0.1:1/x"}`, "http")
	add(`{"serverUrl":"http://127.0.0.1:1/x"}`, "http")
	for _, root := range []string{"mcpServers", "mcp_servers", "servers", "context_servers"} {
		ran := checkConfig(t, strings.Replace(testmcp.Config("", servers), `"mcpServers"`, `"`+root+`"`, 1))
		if ran.Code != 0 {
			t.Fatalf("under %s: exit code %d\n%s", root, ran.Code, ran.Stdout)
		}
		rows := table(ran.Stdout)
		for id, transport := range want {
			if row := rows[id]; len(row) != 3 || row[2] != transport {
				t.Errorf("under %s: %s is %v, want %s", root, servers[id], row, transport)
			}
		}
	}
}

func TestAServerThatCannotBeMeantIsRefusedWithTheRemedy(t *testing.T) {
	t.Parallel()
	for entry, says := range map[string][]string{
		`{"url":"http://h/","command":"/bin/cat"}`:               {"both command", "and url"},
		`{"url":"http://h/","type":"carrier-pigeon"}`:            {"carrier-pigeon", "stdio", "http", "streamable-http", "sse"},
		`{"url":"http://h/","type":"stdio"}`:                     {"mcpServers.x"},
		`{"command":"/bin/cat","type":"http"}`:                   {"mcpServers.x"},
		`{}`:                                                     {"mcpServers.x", "command", "url"},
		`{"url":"ftp://h/"}`:                                     {"mcpServers.x.url", "http"},
		`{"url":"h/mcp"}`:                                        {"mcpServers.x.url", "http"},
		`{"command":7}`:                                          {"mcpServers.x.command", "string"},
		`7`:                                                      {"mcpServers.x", "object"},
		`{"command":"/bin/cat","call_timeout":30}`:               {"mcpServers.x.call_timeout", "30s"},
		`{"command":"/bin/cat","call_timeout":"30"}`:             {"mcpServers.x.call_timeout", "30s"},
		`{"command":"/bin/cat","timeuot":30}`:                    {"mcpServers.x.timeuot", "timeout"},
		`{"command":"/bin/cat","failureMode":"failOpen"}`:        {"mcpServers.x.failureMode", "unknown key"},
		`{"command":"/bin/cat","tool_policy":{"exposed":["a"]}}`: {"mcpServers.x.tool_policy.exposed", "expose"},
	} {
		ran := checkConfig(t, testmcp.Config("", map[string]string{"x": entry}))
		if ran.Code != 1 {
			t.Errorf("%s: exit code %d", entry, ran.Code)
		}
		holds(t, "what is said of "+entry, ran.Stdout, says...)
	}
}

func TestASettingThatNobodyUnderstandsPreventsTheStart(t *testing.T) {
	t.Parallel()
	good := testmcp.NewRecorder(t).Entry("basic", nil)
	for config, says := range map[string]string{
		`{"mcpServers":{"a":` + good + `},"failureMode":"failOpen"}`:                  `failureMode`,
		`{"mcpServers":{"a":` + good + `},"listen":"127.0.0.1:0"}`:                    `did you mean "proxy.listen"`,
		`{"mcpServers":{"a":` + good + `},"proxy":{"lisen":"127.0.0.1:0"}}`:           `did you mean "listen"`,
		`{"mcpServers":{"a":` + good + `},"proxy":{"startup_grace":10}}`:              `proxy.startup_grace`,
		`{"mcpServers":{"a":` + good + `,"b":{"command":"/bin/cat","timeuot":"1s"}}}`: `did you mean "timeout"`,
		`{"mcpServers":{"a":` + good + `},"mcpServers":{}}`:                           `mcpServers`,
		"{\"mcpServers\":{\n\"a\":" + good + "\n\"b\":{}}}":                           `line 3, column 1`,
	} {
		ran := run(t, map[string]string{"mcp.json": config}, nil, "serve", "--config", "mcp.json", "--listen", "127.0.0.1:0")
		if ran.Code != 1 || strings.Contains(ran.Stderr, `"listening"`) {
			t.Errorf("exit code %d for %s", ran.Code, config)
		}
		holds(t, "what is said of "+config, ran.Stderr, says)
	}
}

func TestSettingsOfOtherProductsAreAcceptedWithANote(t *testing.T) {
	t.Parallel()
	p, _ := startOne(t, "basic", "", `"disabled":false`, `"autoApprove":["echo"]`, `"alwaysAllow":[]`, `"timeout":45`, `"description":"mine"`, `"icon":"data:,"`)
	if text := p.Client(testmcp.Legacy).CallTool("one__echo", `{"text":"hi"}`).Text(); text != "hi" {
		t.Errorf("a call gave %q", text)
	}
	for key, says := range map[string]string{"autoApprove": "means nothing here", "alwaysAllow": "means nothing here", "timeout": "45s"} {
		holds(t, "the log line", p.WaitLog("mcpServers.one."+key), says)
	}
}

func TestCommentsTrailingCommasAndSlashesInStrings(t *testing.T) {
	t.Parallel()
	web := testmcp.ServeHTTP(t, testmcp.Basic("web"), testmcp.HTTPOptions{Path: "//x"})
	config := testmcp.ByteOrderMark + strings.ReplaceAll(`// shared by the team
{
  /* servers: "http://h//x" is no comment */
  "mcpServers": {
    // "old": {"command": "gone"},
    "web": { "url": "`+web.URL+`", }, // slashes
    "one": `+testmcp.NewRecorder(t).Entry("basic", nil)+`, /* and a comma */
  },
}
// the end`, "\n", "\r\n")
	p := start(t, config)
	for _, name := range []string{"web__echo", "one__echo"} {
		if text := p.Client(testmcp.Modern).CallTool(name, `{"text":"// no comment /* */"}`).Text(); text != "// no comment /* */" {
			t.Errorf("%s gave %q", name, text)
		}
	}
}

func TestOneBadEntryAmongGoodOnes(t *testing.T) {
	t.Parallel()
	servers := map[string]string{"bad": `{"command":["/bin/cat"],"args":"none"}`}
	for i := range 5 {
		servers[fmt.Sprint("good", i)] = testmcp.NewRecorder(t).Entry("basic", nil)
	}
	t.Run("the others serve", func(t *testing.T) {
		p := start(t, testmcp.Config("", servers))
		for i := range 5 {
			if text := p.Client(testmcp.Legacy).CallTool(fmt.Sprintf("good%d__echo", i), `{"text":"hi"}`).Text(); text != "hi" {
				t.Errorf("good%d gave %q", i, text)
			}
		}
		holds(t, "the log line", p.WaitLog("a server is not used"), `"level":"error"`, `"upstream":"bad"`, "mcpServers.bad.args")
		a := testmcp.Connect(t, p.Server("bad"), testmcp.Modern).CallTool("echo", "")
		if a.Err() == nil {
			t.Errorf("a call of the bad server gave %s", a.Raw)
		}
	})
	t.Run("a strict start is refused", func(t *testing.T) {
		ran := run(t, map[string]string{"mcp.json": testmcp.Config(`{"startup":"strict"}`, servers)}, nil, "serve", "--config", "mcp.json", "--listen", "127.0.0.1:0")
		if ran.Code != 1 {
			t.Errorf("exit code %d, want 1", ran.Code)
		}
		holds(t, "what is said", ran.Stderr, "mcpServers.bad.args")
	})
}
