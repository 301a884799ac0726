package clients

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// target is one client whose file of settings is known.
type target struct {
	name, title string
	file        func(h Home) string
	object      string // that holds the servers
	toml        bool
	entry       func(c *Connection) map[string]any
	// command is what the client's own command line does it with; nil for none.
	command func(c *Connection) string
	after   string // what is to be done then
}

// Home is where the files of settings lie.
type Home struct {
	Dir     string // the user's directory
	Config  string // for settings of programs, as the system has it
	Windows bool
}

// HomeOf is the home of this system.
func HomeOf(dir, config string) Home {
	return Home{Dir: dir, Config: config, Windows: runtime.GOOS == "windows"}
}

func (h Home) in(parts ...string) string { return filepath.Join(append([]string{h.Dir}, parts...)...) }

func (h Home) inConfig(parts ...string) string {
	return filepath.Join(append([]string{h.Config}, parts...)...)
}

// targets are the clients that can be connected, in the order in which they are named to people.
func targets() []target {
	return []target{
		{
			name: "claude-code", title: "Claude Code", object: "mcpServers",
			file:    func(h Home) string { return h.in(".claude.json") },
			entry:   func(c *Connection) map[string]any { return c.web("url", "http", "Bearer ${%s}") },
			command: claudeCommand, after: "Start a new session of Claude Code; /mcp shows the connection.",
		},
		{
			name: "claude-desktop", title: "Claude Desktop", object: "mcpServers",
			file:  func(h Home) string { return h.inConfig("Claude", "claude_desktop_config.json") },
			entry: (*Connection).bridge, after: "Restart Claude Desktop.",
		},
		{
			name: "cursor", title: "Cursor", object: "mcpServers",
			file:  func(h Home) string { return h.in(".cursor", "mcp.json") },
			entry: func(c *Connection) map[string]any { return c.web("url", "", "Bearer ${env:%s}") },
			after: "Cursor notices by itself; its settings show the connection under MCP.",
		},
		{
			name: "vscode", title: "VS Code", object: "servers",
			file:  func(h Home) string { return h.inConfig("Code", "User", "mcp.json") },
			entry: func(c *Connection) map[string]any { return c.web("url", "http", "Bearer ${env:%s}") },
			after: "Run \"MCP: List Servers\" in VS Code and start it.",
		},
		{
			name: "windsurf", title: "Windsurf", object: "mcpServers",
			file:  func(h Home) string { return h.in(".codeium", "windsurf", "mcp_config.json") },
			entry: func(c *Connection) map[string]any { return c.web("serverUrl", "", "Bearer ${env:%s}") },
			after: "Refresh the servers in Windsurf's settings.",
		},
		{
			name: "codex", title: "Codex", object: "mcp_servers", toml: true,
			file: func(h Home) string { return h.in(".codex", "config.toml") },
			entry: func(c *Connection) map[string]any {
				e := map[string]any{"url": c.URL}
				if c.TokenEnv != "" {
					e["bearer_token_env_var"] = c.TokenEnv
				}
				return e
			},
			after: "Start a new session of Codex.",
		},
		{
			name: "gemini", title: "Gemini CLI", object: "mcpServers",
			file:  func(h Home) string { return h.in(".gemini", "settings.json") },
			entry: func(c *Connection) map[string]any { return c.web("httpUrl", "", "Bearer ${%s}") },
			after: "Start a new session of Gemini CLI; /mcp shows the connection.",
		},
		{
			name: "zed", title: "Zed", object: "context_servers",
			file:  zedFile,
			entry: zedEntry, after: "Zed notices by itself; its agent settings show the connection.",
		},
	}
}

func zedFile(h Home) string {
	if h.Windows {
		return h.inConfig("Zed", "settings.json")
	}
	return h.in(".config", "zed", "settings.json")
}

// zedEntry goes through the bridge where a token is wanted: Zed replaces no variables.
func zedEntry(c *Connection) map[string]any {
	if c.TokenEnv != "" {
		return c.bridge()
	}
	return map[string]any{"url": c.URL}
}

// claudeCommand leaves the variable to the client: what the shell makes of it would stand in the file.
func claudeCommand(c *Connection) string {
	s := "claude mcp add --transport http --scope user " + shellWord(c.Name) + " " + shellWord(c.URL)
	if c.TokenEnv != "" {
		s += " --header " + shellWord("Authorization: Bearer ${"+c.TokenEnv+"}")
	}
	return s
}

// shellWord is a text as a shell takes it for one word.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+,=", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// web is an entry of a client that speaks HTTP. bearer is how it writes the value of a variable into a header.
func (c *Connection) web(url, kind, bearer string) map[string]any {
	e := map[string]any{url: c.URL}
	if kind != "" {
		e["type"] = kind
	}
	if c.TokenEnv != "" {
		e["headers"] = map[string]any{"Authorization": fmt.Sprintf(bearer, c.TokenEnv)}
	}
	return e
}

// bridge is an entry of a client that only launches commands.
func (c *Connection) bridge() map[string]any {
	args := []string{"stdio", "--url", c.URL}
	if c.TokenEnv != "" {
		args = append(args, "--token-env", c.TokenEnv)
	}
	return map[string]any{"command": c.Program, "args": args}
}

func entryJSON(e map[string]any) json.RawMessage {
	b, _ := json.Marshal(e) // strings and slices of them
	return b
}
