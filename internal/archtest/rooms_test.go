package archtest

import (
	"path"
	"strings"
)

// modulePath is the import path of this module.
const modulePath = "github.com/mcp-proxy/mcp-proxy"

// anyRoom in a list of allowed imports stands for every room but the ones in testsOnly.
const anyRoom = "*"

// leaves may be imported by every room below the wiring; they import no room themselves.
var leaves = []string{"internal/count", "internal/state", "internal/pins"}

// rooms is the import table: the production imports that a room may have from this module, besides the leaves and the rooms
// within it. A room within another is that one's own: nobody else imports it. A room that is listed and does not exist is
// fine; one that exists must be listed.
var rooms = map[string][]string{
	"cmd/mcp-proxy":               {"internal/app", "internal/clients", "internal/config", "internal/obs", "internal/demo"},
	"mcpproxy":                    {"internal/app", "internal/config"},
	"internal/app":                {anyRoom},
	"internal/clients":            {"internal/lines", "internal/config", "internal/wire"},
	"internal/httpd":              {"internal/session", "internal/auth", "internal/wire", "internal/config"},
	"internal/session":            {"internal/proxy", "internal/lines", "internal/wire", "internal/config"},
	"internal/proxy":              {"internal/upstream", "internal/wire", "internal/config"},
	"internal/proxy/allow":        {"internal/config"},
	"internal/proxy/search":       {},
	"internal/upstream":           {"internal/credentials", "internal/wire", "internal/config"},
	"internal/upstream/process":   {"internal/config"},
	"internal/upstream/roundtrip": {},
	"internal/agents":             {"internal/wire", "internal/config"},
	"internal/credentials":        {},
	"internal/lines":              {"internal/wire"},
	"internal/wire":               {},
	"internal/config":             {},
	"internal/auth":               {"internal/config"},
	"internal/obs":                {"internal/config"},
	"internal/count":              {},
	"internal/state":              {},
	"internal/pins":               {},
	"internal/demo":               {},
	"internal/archtest":           {},
	"internal/testmcp":            {"internal/wire"},
	"test":                        {anyRoom, "internal/testmcp"},
	"bench":                       {anyRoom, "internal/testmcp"},
}

// testsOnly are the rooms that no production package may import.
var testsOnly = []string{"internal/archtest", "internal/testmcp", "test", "bench"}

// onlyWired are rooms that nobody but the named rooms may import, whatever else the table allows.
var onlyWired = map[string][]string{
	"internal/app":     {"cmd/mcp-proxy", "mcpproxy", "test", "bench"},
	"internal/clients": {"cmd/mcp-proxy", "test", "bench"},
	"internal/agents":  {"internal/app"},
	"internal/demo":    {"cmd/mcp-proxy", "internal/app", "test", "bench"},
}

// confinement says where packages from outside this module may be imported by production code.
type confinement struct {
	path   string   // an import path; it covers everything below it, unless exact is set
	exact  bool     // only the path itself
	only   []string // the rooms that may import it; nil when never holds
	never  []string // the rooms that must not import it; nil when only holds
	reason string
}

var confinements = []confinement{
	{path: "github.com/go-chi/chi", only: []string{"internal/httpd"}, reason: "routing is the door's business"},
	{path: "os/exec", only: []string{"internal/upstream/process"}, reason: "children have one owner"},
	{path: "go.yaml.in/yaml", only: []string{"internal/config"}, reason: "configuration is read in one place"},
	{path: "github.com/pelletier/go-toml", only: []string{"internal/config"}, reason: "configuration is read in one place"},
	{path: "github.com/tailscale/hujson", only: []string{"internal/config"}, reason: "configuration is read in one place"},
	{
		path: "github.com/modelcontextprotocol/go-sdk/mcp",
		only: []string{
			"internal/session", "internal/proxy", "internal/upstream", "internal/clients", "internal/app", "internal/demo", "internal/agents", "mcpproxy",
		},
		reason: "relayed traffic stays raw; the typed structs lose members",
	},
	{
		path:   "github.com/modelcontextprotocol/go-sdk/auth",
		only:   []string{"internal/auth", "internal/credentials"},
		reason: "tokens are checked in auth and fetched in credentials",
	},
	{
		path:   "github.com/modelcontextprotocol/go-sdk/oauthex",
		only:   []string{"internal/auth", "internal/credentials"},
		reason: "tokens are checked in auth and fetched in credentials",
	},
	{path: "golang.org/x/oauth2", only: []string{"internal/credentials"}, reason: "tokens are fetched in one place"},
	{path: "go.opentelemetry.io/otel/exporters", only: []string{"internal/obs"}, reason: "rooms get a tracer, not an exporter"},
	{path: "go.opentelemetry.io/otel/sdk", only: []string{"internal/obs"}, reason: "rooms get a tracer, not a provider"},
	{
		path: "net/http", exact: true,
		never:  []string{"internal/proxy", "internal/wire", "internal/config", "internal/count", "internal/state", "internal/pins"},
		reason: "the middle and the leaves below it know no transport",
	},
	{path: "testing", never: []string{anyRoom}, reason: "production code does not link the test framework"},
	{path: "go.uber.org/goleak", never: []string{anyRoom}, reason: "production code does not link the test framework"},
}

// roomOf names the room of an import path of this module, or "" for a path that is not ours or in no room.
func roomOf(path string) string {
	rel, ours := strings.CutPrefix(path, modulePath+"/")
	if !ours {
		return ""
	}
	return innermost(rel)
}

// innermost names the room that a folder of this module lies in; of one within another the inner one.
func innermost(rel string) (room string) {
	for name := range rooms {
		if within(rel, name) && len(name) > len(room) {
			room = name
		}
	}
	return room
}

// around names the room that one lies within, or "".
func around(room string) string { return innermost(path.Dir(room)) }

// within reports whether path is root or lies below it.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}
