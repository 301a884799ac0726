package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// variables is an environment for tests.
type variables map[string]string

func (v variables) get(name string) (string, bool) {
	value, ok := v[name]
	return value, ok
}

func loadText(t *testing.T, text string, env variables) *Loaded {
	t.Helper()
	return Load(Options{WorkDir: t.TempDir(), Text: []byte(text), Source: "test.json", Getenv: env.get})
}

// nest wraps a value into the objects of a path such as proxy.auth.tokens[].
func nest(path, value string) (root, text string) {
	steps := strings.Split(path, ".")
	for i := len(steps) - 1; i > 0; i-- {
		name, list := strings.CutSuffix(steps[i], "[]")
		if list {
			value = "[" + value + "]"
		}
		value = fmt.Sprintf("{%q: %s}", name, value)
	}
	return steps[0], value
}

const clientCredentials = `"type": "oauth2_client_credentials", "token_url": "https://h/token", "client_id": "i", "client_secret": "s"`

// companions are what a key needs beside it so that its example is a good configuration.
var companions = map[string]string{
	"mcpServers.a.command": ``, "mcpServers.a.url": ``, "mcpServers.a.headers": `"url": "http://h/mcp"`, "mcpServers.a.auth_token": `"url": "http://h/mcp"`,
	"mcpServers.a.message_url": `"url": "http://h/sse"`,
	"mcpServers.a.type":        `"url": "http://h/mcp"`, "mcpServers.a.forward_caller_auth": `"url": "http://h/mcp"`,
	"mcpServers.a.catalog_scope": `"command": "/x", "forward_headers": ["X-User"]`, "mcpServers.a": `"command": "/x"`,
	"proxy.auth.tokens[].name": `"token": "t"`, "proxy.auth.tokens[].token": `"name": "n"`, "proxy.auth.tokens[].profile": `"name": "n", "token": "t"`,
	"proxy.profiles.readers": `"servers": ["a"]`, "proxy.profiles.readers.servers": ``,
	"agents.a": `"kind": "command", "command": "/x"`, "agents.a.kind": `"command": "/x"`,
	"agents.a.model": `"kind": "openai", "url": "http://h/v1"`, "agents.a.api": `"kind": "openai", "url": "http://h/v1", "model": "m"`,
	"agents.a.request":       `"kind": "openai", "url": "http://h/v1", "model": "m"`,
	"mcpServers.a.auth.type": `"header": "X-API-Key", "key": "k"`, "mcpServers.a.auth.token": `"type": "bearer"`,
	"mcpServers.a.auth.header": `"type": "api_key", "key": "k"`, "mcpServers.a.auth.key": `"type": "api_key", "header": "X-API-Key"`,
	"mcpServers.a.auth.token_url":     `"type": "oauth2_client_credentials", "client_id": "i", "client_secret": "s"`,
	"mcpServers.a.auth.client_id":     `"type": "oauth2_client_credentials", "token_url": "https://h/token", "client_secret": "s"`,
	"mcpServers.a.auth.client_secret": `"type": "oauth2_client_credentials", "token_url": "https://h/token", "client_id": "i"`,
	"mcpServers.a.auth":               `"url": "http://h/mcp"`,
	"mcpServers.a.auth.scopes":        clientCredentials, "mcpServers.a.auth.params": clientCredentials, "mcpServers.a.auth.timeout": clientCredentials,
	"agents.a.tool": `"kind": "mcp", "command": "/x"`, "agents.a.argument": `"kind": "mcp", "command": "/x"`,
}

// TestEveryKeyIsRead proves that no key is accepted without effect: the example of each changes what is loaded.
func TestEveryKeyIsRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "my.env"), []byte("FROM_FILE=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(text string) *Loaded {
		return Load(Options{WorkDir: dir, Text: []byte(text), Source: "test", Getenv: variables{"HOME": dir}.get})
	}
	for _, table := range referenceTables() {
		for _, row := range table.rows {
			t.Run(table.path+"."+row.key, func(t *testing.T) {
				without, with := sampleConfigs(table.path, row)
				base, changed := load(without), load(with)
				if errs := changed.Errors(); len(errs) > 0 {
					t.Fatalf("%s: %v", with, errs)
				}
				if reflect.DeepEqual(base.Config, changed.Config) {
					t.Errorf("the example changes nothing: %s", with)
				}
			})
		}
	}
}

// sampleConfigs are a configuration without a key, and the same with its example.
func sampleConfigs(path string, row docRow) (without, with string) {
	beside, special := companions[path+"."+row.key]
	if !special {
		beside = companions[path]
	}
	inner := fmt.Sprintf("{%q: %s}", row.key, row.example)
	if beside != "" {
		inner = fmt.Sprintf("{%s, %q: %s}", beside, row.key, row.example)
	}
	root, value := nest(path, inner)
	_, empty := nest(path, "{"+beside+"}")
	servers := `"github": {"command": "/x"}, "a": {"command": "/x"}`
	if root == "mcpServers" && path != "mcpServers.a" {
		command := strings.NewReplacer(`{"a": {`, `{"a": {"command": "/x", `)
		return `{"mcpServers": ` + command.Replace(empty) + `}`, `{"mcpServers": ` + command.Replace(value) + `}`
	}
	if root == "agents" {
		return `{"agents": ` + empty + `}`, `{"agents": ` + value + `}`
	}
	if root == "mcpServers" {
		return `{"mcpServers": ` + empty + `}`, `{"mcpServers": ` + value + `}`
	}
	if row.key == "allow_stdio" {
		servers = `"github": {"url": "http://h/mcp"}`
	}
	// The profile that a token's example names.
	if strings.HasSuffix(path, "tokens[]") {
		value = strings.TrimSuffix(value, "}") + `, "profiles": {"readers": {"servers": ["a"]}}}`
		empty = strings.TrimSuffix(empty, "}") + `, "profiles": {"readers": {"servers": ["a"]}}}`
	}
	return `{"mcpServers": {` + servers + `}, "proxy": ` + empty + `}`, `{"mcpServers": {` + servers + `}, "proxy": ` + value + `}`
}
