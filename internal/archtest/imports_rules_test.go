package archtest

import (
	"slices"
	"strings"
	"testing"
)

// TestForbidden plants imports and looks whether the rules see them.
func TestForbidden(t *testing.T) {
	ours := func(rel string) string { return modulePath + "/" + rel }
	const sdk = "github.com/modelcontextprotocol/go-sdk/"
	tests := []struct {
		room, path string
		ok         bool
	}{
		{"cmd/mcp-proxy", ours("internal/app"), true},
		{"cmd/mcp-proxy", ours("internal/demo"), true},
		{"cmd/mcp-proxy", ours("internal/session"), false},
		{"mcpproxy", ours("internal/app"), true},
		{"mcpproxy", ours("internal/clients"), false},
		{"internal/app", ours("internal/upstream"), true},
		{"internal/app", ours("internal/demo"), true},
		{"internal/app", ours("internal/clients"), false},
		{"internal/app", ours("internal/testmcp"), false},
		{"internal/httpd", ours("internal/session"), true},
		{"internal/httpd", ours("internal/proxy"), false},
		{"internal/session", ours("internal/proxy"), true},
		{"internal/session", ours("internal/httpd"), false},
		{"internal/session", ours("internal/upstream"), false},
		{"internal/proxy", ours("internal/upstream"), true},
		{"internal/proxy", ours("internal/session"), false},
		{"internal/upstream", ours("internal/wire"), true},
		{"internal/upstream", ours("internal/upstream/further"), true},
		{"internal/proxy", ours("internal/proxy/search"), true},
		{"internal/session", ours("internal/proxy/search"), false},
		{"internal/app", ours("internal/proxy/search"), false},
		{"internal/proxy/search", ours("internal/proxy"), false},
		{"internal/proxy/search", ours("internal/wire"), false},
		{"internal/upstream", ours("internal/proxy"), false},
		{"internal/upstream", ours("internal/count"), true},
		{"internal/wire", ours("internal/config"), false},
		{"internal/config", ours("internal/app"), false},
		{"internal/auth", ours("internal/session"), false},
		{"internal/count", ours("internal/state"), false},
		{"internal/session", ours("elsewhere"), false},
		{"test", ours("internal/testmcp"), true},

		{"internal/httpd", "github.com/go-chi/chi/v5", true},
		{"internal/session", "github.com/go-chi/chi/v5/middleware", false},
		{"internal/upstream/process", "os/exec", true},
		{"internal/upstream", "os/exec", false},
		{"internal/clients", "os/exec", false},
		{"internal/testmcp", "os/exec", true},
		{"internal/config", "go.yaml.in/yaml/v4", true},
		{"internal/clients", "github.com/tailscale/hujson", false},
		{"test", "go.yaml.in/yaml/v4", true},
		{"internal/session", sdk + "mcp", true},
		{"internal/demo", sdk + "mcp", true},
		{"internal/httpd", sdk + "mcp", false},
		{"internal/wire", sdk + "jsonrpc", true},
		{"internal/httpd", sdk + "auth", false},
		{"internal/credentials", sdk + "auth/extauth", true},
		{"internal/proxy", "net/http", false},
		{"internal/proxy/search", "net/http", false},
		{"internal/upstream", "net/http", true},
		{"internal/proxy", "net/http/httptrace", true},
		{"internal/session", "testing", false},
		{"internal/session", "encoding/json", true},
	}
	for _, tt := range tests {
		if why := forbidden(tt.room, tt.path); (why == "") != tt.ok {
			t.Errorf("forbidden(%q, %q) = %q, want allowed = %v", tt.room, tt.path, why, tt.ok)
		}
	}
}

func TestViolationsNamesUnlistedRoom(t *testing.T) {
	got := violations([]pkg{{ImportPath: modulePath + "/internal/attic", Imports: []string{"fmt"}}})
	if len(got) != 1 || !strings.Contains(got[0], "is in no room") {
		t.Errorf("violations = %q, want one about a package in no room", got)
	}
}

// TestTableNamesRooms keeps the tables free of names that were mistyped.
func TestTableNamesRooms(t *testing.T) {
	known := func(where, name string) {
		if _, ok := rooms[name]; !ok && name != anyRoom {
			t.Errorf("%s names %q, which is no room", where, name)
		}
	}
	for room, allowed := range rooms {
		for _, name := range allowed {
			known(room, name)
		}
	}
	for target, who := range onlyWired {
		known("onlyWired", target)
		for _, name := range who {
			known("onlyWired", name)
		}
	}
	for _, c := range confinements {
		for _, name := range slices.Concat(c.only, c.never) {
			known(c.path, name)
		}
		if (c.only == nil) == (c.never == nil) {
			t.Errorf("%s needs exactly one of only and never", c.path)
		}
	}
}
