package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// childEntry gives the entry of a recorded child as an object, to be changed.
func childEntry(rec *testmcp.Recorder, args ...string) map[string]any {
	command, arguments, env := rec.Command("basic", args...)
	return map[string]any{"command": command, "args": arguments, "env": env}
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// variables are those of the proxy in these tests. NESTED would change if what was put in were looked at again.
var variables = []string{"A=set", "EMPTY=", "NESTED=${A}$$", "SECRET=hunter2hunter2", "MCP_INPUT_API_KEY=typed"}

// values are what stands in a configuration and what must come of it.
var values = []struct{ given, want string }{
	// Dollar signs that are nothing but dollar signs.
	{`pa$$word`, `pa$$word`}, {`a$b`, `a$b`}, {`$`, `$`}, {`x$Q$`, `x$Q$`}, {`$(id)`, `$(id)`}, {`%PATH%`, `%PATH%`},
	{`${`, `${`}, {`${}`, `${}`}, {`${1}`, `${1}`}, {`$A`, `$A`}, {`$$`, `$$`}, {`$${A}`, `${A}`}, {"`id`; $(id) && x", "`id`; $(id) && x"},
	// References.
	{`${A}`, `set`}, {`<${A}|${A}>`, `<set|set>`}, {`${env:A}`, `set`}, {`${EMPTY}`, ``}, {`${NESTED}`, `${A}$$`},
	{`${NOT:-d}`, `d`}, {`${A:-d}`, `set`}, {`${EMPTY:-d}`, `d`}, {`${NOT:-}`, ``}, {`${NOT:-http://h/?a=b}`, `http://h/?a=b`},
	{`${NOT:-${A}}`, `set`}, {`${input:api-key}`, `typed`}, {`${A-d}`, `${A-d}`},
}

func TestChildrenGetTheArgumentsAndVariablesThatWereMeant(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	entry := childEntry(rec)
	env, args := entry["env"].(map[string]string), []string{}
	for i, v := range values {
		env[fmt.Sprint("V", i)] = v.given
		args = append(args, v.given)
	}
	entry["args"] = args
	start(t, testmcp.Config("", map[string]string{"one": text(entry)}), testmcp.WithEnv(variables...))
	started := rec.Wait(t, testmcp.Is(testmcp.Start))
	if got := started.Args[len(started.Args)-len(values):]; len(got) == len(values) {
		for i, v := range values {
			same(t, "the argument "+v.given, got[i], v.want)
			if want := fmt.Sprintf("V%d=%s", i, v.want); !slices.Contains(started.Env, want) {
				t.Errorf("the child's environment lacks %s", want)
			}
		}
	}
}

func TestChildrenGetNoVariablesThatNobodyMeantForThem(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	entry := childEntry(rec)
	entry["inherit_env"] = []string{"WANTED"}
	start(t, testmcp.Config("", map[string]string{"one": text(entry)}),
		testmcp.WithEnv("UNWANTED=1", "WANTED=2", "AWS_SECRET_ACCESS_KEY=3", "MCP_PROXY_TOKEN=4", "MCP_PROXY_CONFIG=/nowhere", "LC_ALL=C", "TZ=UTC"))
	env := map[string]string{}
	for _, kv := range rec.Wait(t, testmcp.Is(testmcp.Start)).Env {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	for _, name := range []string{"UNWANTED", "AWS_SECRET_ACCESS_KEY", "MCP_PROXY_TOKEN", "MCP_PROXY_CONFIG"} {
		if v, ok := env[name]; ok {
			t.Errorf("the child got %s=%s", name, v)
		}
	}
	for name, want := range map[string]string{"WANTED": "2", "LC_ALL": "C", "TZ": "UTC"} {
		if env[name] != want {
			t.Errorf("the child got %s=%q, want %q", name, env[name], want)
		}
	}
	if env["PATH"] == "" || env["HOME"] == "" {
		t.Errorf("the child lacks PATH or HOME: %v", slices.Sorted(maps.Keys(env)))
	}
}

func TestReferencesWorkInEveryFieldThatHoldsText(t *testing.T) {
	t.Parallel()
	rec, web := testmcp.NewRecorder(t), testmcp.ServeHTTP(t, testmcp.Basic("web"), testmcp.HTTPOptions{Path: "/p/mcp"})
	dir := t.TempDir()
	entry := childEntry(rec)
	command := entry["command"].(string)
	check(t, os.WriteFile(filepath.Join(dir, "my.env"), []byte("FROM_FILE='it is $A ${A}'\nWINS=file\n"), 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "token"), []byte("in-a-file\n"), 0o600))
	entry["command"], entry["cwd"], entry["env_file"] = "${BIN}/"+filepath.Base(command), "${DIR}/.", "${DIR}/my.env"
	entry["env"].(map[string]string)["WINS"] = "${A}"
	host := strings.TrimSuffix(web.URL, "/p/mcp")
	p := start(t, testmcp.Config("", map[string]string{
		"one": text(entry),
		"web": text(map[string]any{"url": "${HOST:-http://nowhere/}/${NOT:-p}/mcp", "headers": map[string]string{"X-Team": "${A} & ${NOT:-co}"}, "auth_token": "${file:" + dir + "/token}"}),
	}), testmcp.WithEnv(append(slices.Clone(variables), "BIN="+filepath.Dir(command), "DIR="+dir, "HOST="+host)...))
	started := rec.Wait(t, testmcp.Is(testmcp.Start))
	same(t, "the working directory", started.Dir, dir)
	for _, want := range []string{"FROM_FILE=it is $A ${A}", "WINS=set"} {
		if !slices.Contains(started.Env, want) {
			t.Errorf("the child's environment lacks %s", want)
		}
	}
	if text := p.Client(testmcp.Modern).CallTool("web__echo", `{"text":"hi"}`).Text(); text != "hi" {
		t.Errorf("the call over HTTP gave %q", text)
	}
	head := web.Rec.Wait(t, testmcp.CalledTool("echo")).Header
	same(t, "the header", head.Get("X-Team"), "set & co")
	same(t, "the credential", head.Get("Authorization"), "Bearer in-a-file")
}

// unsetIn puts an unset variable into each field that can hold one.
var unsetIn = map[string]string{
	"command": `{"command":"${NOT}"}`, "args[1]": `{"command":"/bin/cat","args":["-","${NOT}"]}`, "env.K": `{"command":"/bin/cat","env":{"K":"x${env:NOT}"}}`,
	"cwd": `{"command":"/bin/cat","cwd":"/${NOT}"}`, "url": `{"url":"http://127.0.0.1:1/${NOT}"}`, "headers.X-Key": `{"url":"http://127.0.0.1:1/","headers":{"X-Key":"${NOT} ${SECRET}"}}`,
	"auth_token": `{"url":"http://127.0.0.1:1/","auth_token":"${SECRET}${NOT}"}`, "env_file": `{"command":"/bin/cat","env_file":"${NOT}"}`,
}

func TestAnUnsetVariableCostsOneServerAndIsNamed(t *testing.T) {
	t.Parallel()
	servers := map[string]string{"good": testmcp.NewRecorder(t).Entry("basic", nil)}
	ids := map[string]string{}
	for field, entry := range unsetIn {
		id := "bad" + strings.NewReplacer(".", "", "[", "", "]", "").Replace(field)
		ids[id], servers[id] = field, entry
	}
	p := start(t, testmcp.Config("", servers), testmcp.WithEnv(variables...))
	if text := p.Client(testmcp.Legacy).CallTool("good__echo", `{"text":"hi"}`).Text(); text != "hi" {
		t.Errorf("the good server gave %q", text)
	}
	checked := run(t, map[string]string{"mcp.json": testmcp.Config("", servers)}, variables, "check", "--config", "mcp.json")
	if checked.Code != 1 {
		t.Errorf("check: exit code %d, want 1", checked.Code)
	}
	status := p.Status()
	for _, u := range status.At("upstreams").Items() {
		id := u.At("id").Str()
		if id == "good" {
			continue
		}
		where := "mcpServers." + id + "." + ids[id]
		if u.At("state").Str() != "failed" {
			t.Errorf("%s is %s", id, u.At("state"))
		}
		holds(t, "the reason of "+id, u.At("last_error", "message").Str(), ids[id], "variable NOT is not set")
		holds(t, "the log line", p.WaitLog(where+":"), "variable NOT is not set")
		holds(t, "what check says", checked.Stdout, where+": variable NOT is not set")
	}
	for what, said := range map[string]string{"the log": strings.Join(p.Log(), "\n"), "the status": string(status), "check": checked.Stdout + checked.Stderr} {
		if strings.Contains(said, "hunter2") {
			t.Errorf("%s tells a secret:\n%s", what, said)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
