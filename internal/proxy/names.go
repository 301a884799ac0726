package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// namer gives items their exposed names. In the modes always and none a name is a pure function of the configuration
// and the wire name, so that no other server and no order of arrival changes it.
type namer struct {
	naming  config.Naming
	servers map[string]string // id → what stands for {server}
}

func newNamer(n config.Naming, servers []*config.Server) *namer {
	out := &namer{naming: n, servers: map[string]string{}}
	taken := map[string]int{}
	for _, s := range servers {
		taken[sanitize(s.ID)]++
	}
	for _, s := range servers {
		clean := sanitize(s.ID)
		if clean != s.ID && taken[clean] > 1 {
			clean += "_" + shortHash(s.ID)
		}
		out.servers[s.ID] = clean
	}
	return out
}

// Why a name is not the plain one.
const (
	whyCharacters = "characters"
	whyLength     = "length"
	whyConflict   = "conflict"
)

// name gives the exposed name of an item, and why it differs from what template and prefix would give.
func (n *namer) name(s *config.Server, wireName string, conflict bool) (name, why string) {
	template := n.naming.Template
	switch {
	case s.ToolPrefix != nil:
		template = escapeTemplate(*s.ToolPrefix) + "{tool}"
	case n.naming.Mode == config.NamingNone, n.naming.Mode == config.NamingOnConflict && !conflict:
		template = "{tool}"
	}
	tool := sanitize(wireName)
	full := fillTemplate(template, n.servers[s.ID], tool)
	clean := sanitize(full)
	if tool != wireName || clean != full {
		why = whyCharacters
		clean += "_" + shortHash(s.ID+"\x00"+wireName)
	}
	if limit := n.naming.MaxLength; len(clean) > limit {
		why = whyLength
		hash := longHash(s.ID + "\x00" + wireName)
		clean = clean[:limit-len(hash)-1] + "_" + hash
	}
	if conflict && why == "" {
		why = whyConflict
	}
	return clean, why
}

// suffixed gives a name that is taken a suffix of its own.
func (n *namer) suffixed(s *config.Server, wireName, name string) string {
	hash := longHash(s.ID + "\x00" + wireName)
	if limit := n.naming.MaxLength - len(hash) - 1; len(name) > limit {
		name = name[:limit]
	}
	return name + "_" + hash
}

// fillTemplate replaces the placeholders once; what it puts in is not looked at again.
func fillTemplate(template, server, tool string) string {
	return strings.NewReplacer("{server}", server, "{tool}", tool, "{{", "{").Replace(template)
}

func escapeTemplate(s string) string { return strings.ReplaceAll(s, "{", "{{") }

// sanitize replaces what model APIs refuse in a name.
func sanitize(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

func shortHash(s string) string { return hashOf(s, 2) }
func longHash(s string) string  { return hashOf(s, 4) }

func hashOf(s string, n int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:n])
}

// ExampleName shows how the names of an upstream's tools will look.
func (p *Proxy) ExampleName(s *config.Server) string {
	stand := "TOOL"
	if s.Agent != nil {
		stand = s.Agent.Name
	}
	name, _ := p.set.Load().names.name(s, stand, false)
	return name
}
