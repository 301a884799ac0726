package clients

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func someHome(t *testing.T) Home {
	t.Helper()
	dir := t.TempDir()
	return Home{Dir: dir, Config: filepath.Join(dir, ".config")}
}

var someProxy = Connection{Name: DefaultName, URL: "http://127.0.0.1:8080/mcp", Program: "/opt/mcp-proxy"}

func TestEveryClientGetsAnEntryThatItsFileKeeps(t *testing.T) {
	for _, client := range ClientNames() {
		for _, variable := range []string{"", "PROXY_TOKEN"} {
			h, c := someHome(t), someProxy
			c.TokenEnv = variable
			p, err := Connect(client, c, h)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(p.Text, c.URL) || p.After == "" || strings.Contains(p.Text, "PROXY_TOKEN") != (variable != "") {
				t.Errorf("%s: %+v", client, p)
			}
			backup, changed, err := p.Write()
			if err != nil || !changed || backup != "" {
				t.Fatalf("%s: %q, %v, %v", client, backup, changed, err)
			}
			tt, _ := targetOf(client)
			text, _ := os.ReadFile(p.File)
			servers, err := config.ServersIn(text, tt.object, tt.toml)
			if err != nil || !strings.Contains(string(servers[DefaultName]), c.URL) {
				t.Errorf("%s: the file is %s (%v)", client, text, err)
			}
			if backup, changed, err := p.Write(); err != nil || changed || backup != "" {
				t.Errorf("%s: a second time: %q, %v, %v", client, backup, changed, err)
			}
			if info, err := os.Stat(p.File); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", client, info.Mode(), err)
			}
		}
	}
	if _, err := Connect("notepad", someProxy, someHome(t)); !errors.Is(err, ErrClient) || !strings.Contains(err.Error(), "cursor") {
		t.Errorf("an unknown client: %v", err)
	}
}

// What a shell would make of a command is what the client gets: the token stays in its variable.
func TestTheCommandOfAClientKeepsTheTokenOut(t *testing.T) {
	c := someProxy
	c.URL, c.Name, c.TokenEnv = "http://127.0.0.1:8080/mcp?a=1&b=$HOME", "it's mine", "PROXY_TOKEN"
	p, err := Connect("claude-code", c, someHome(t))
	if err != nil {
		t.Fatal(err)
	}
	want := `claude mcp add --transport http --scope user 'it'\''s mine' 'http://127.0.0.1:8080/mcp?a=1&b=$HOME' --header 'Authorization: Bearer ${PROXY_TOKEN}'`
	if p.Command != want {
		t.Errorf("the command is\n%s, not\n%s", p.Command, want)
	}
	c = someProxy
	if p, err := Connect("claude-code", c, someHome(t)); err != nil || p.Command != "claude mcp add --transport http --scope user mcp-proxy http://127.0.0.1:8080/mcp" {
		t.Errorf("the command is %s, %v", p.Command, err)
	}
}

func TestWhatWasInTheFileStaysAndIsKept(t *testing.T) {
	h := someHome(t)
	p, err := Connect("cursor", someProxy, h)
	if err != nil {
		t.Fatal(err)
	}
	const before = "{\"mcpServers\":{\"mine\":{\"command\":\"x\",\"args\":[\"1.10\"]}},\"n\":1.10} // mine\n"
	there := filepath.Join(h.Dir, "real.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(p.File), 0o700), os.WriteFile(there, []byte(before), 0o640), os.Symlink(there, p.File),
		os.WriteFile(there+".bak", []byte("older"), 0o600)); err != nil {
		t.Fatal(err)
	}
	backup, changed, err := p.Write()
	if err != nil || !changed || backup != there+".bak1" {
		t.Fatalf("%q, %v, %v", backup, changed, err)
	}
	kept, _ := os.ReadFile(backup)
	after, _ := os.ReadFile(p.File)
	info, _ := os.Lstat(p.File)
	if string(kept) != before || !strings.Contains(string(after), `{"command":"x","args":["1.10"]}`) || !strings.HasSuffix(string(after), "\"n\":1.10} // mine\n") {
		t.Errorf("kept %s\nafter %s", kept, after)
	}
	if info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
	if info, _ := os.Stat(there); info.Mode().Perm() != 0o640 {
		t.Errorf("the file is %v", info.Mode())
	}
}

func TestABrokenFileIsLeftAsItIs(t *testing.T) {
	h := someHome(t)
	p, err := Connect("gemini", someProxy, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(p.File), 0o700), os.WriteFile(p.File, []byte(`{"mcpServers":`), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, changed, err := p.Write(); err == nil || changed || !strings.Contains(err.Error(), p.File) {
		t.Errorf("%v, %v", changed, err)
	}
	left, _ := os.ReadDir(filepath.Dir(p.File))
	if text, _ := os.ReadFile(p.File); string(text) != `{"mcpServers":` || len(left) != 1 {
		t.Errorf("the file is %s, beside it %v", text, left)
	}
}

func TestImport(t *testing.T) {
	h := someHome(t)
	for file, text := range map[string]string{
		".cursor/mcp.json": `{"mcpServers":{
			"files":{"command":"npx","args":["-y","server-filesystem"]}, // mine
			"same":{"url":"https://x/mcp"}, "mcp-proxy":{"url":"http://127.0.0.1:8080/mcp"}, "bridge":{"command":"/opt/mcp-proxy","args":["stdio"]}}}`,
		".codex/config.toml":    "[mcp_servers.files]\ncommand = \"uvx\"\n[mcp_servers.same]\nurl = \"https://x/mcp\"\n",
		".gemini/settings.json": `{"theme":"dark"}`,
	} {
		path := filepath.Join(h.Dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := Import([]string{"cursor", "codex", "gemini"}, h)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		MCPServers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err := json.Unmarshal(out.Text, &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"files": `{"command":"npx","args":["-y","server-filesystem"]}`, "files-codex": `{"command":"uvx"}`, "same": `{"url":"https://x/mcp"}`,
	} {
		if s := string(compact(got.MCPServers[name])); s != want {
			t.Errorf("%s is %s", name, s)
		}
	}
	if len(got.MCPServers) != 3 || len(out.Notes) != 7 {
		t.Errorf("%d servers, notes %q", len(got.MCPServers), out.Notes)
	}
	// What is imported is a configuration.
	file := filepath.Join(h.Dir, "mcp-proxy.json")
	if err := os.WriteFile(file, out.Text, 0o600); err != nil {
		t.Fatal(err)
	}
	if l := config.Load(config.Options{Path: file}); l.Config == nil || len(l.Config.Servers) != 3 {
		t.Errorf("loading it: %+v", l)
	}
	for _, names := range [][]string{{"notepad"}, {"zed"}} {
		if out, err := Import(names, h); err == nil {
			t.Errorf("%v: %s", names, out.Text)
		}
	}
}
