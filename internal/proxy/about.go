package proxy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// What the proxy says of itself: capabilities, instructions, who it is.

// aggregateCapabilities are declared on every endpoint of several servers, whoever is up: a legacy client hears them
// only once, at initialize.
const aggregateCapabilities = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}}`

// single gives the upstream of a view that is one; nil for the others.
func (p *Proxy) single(viewKey string) *upstream.Upstream {
	if id, ok := strings.CutPrefix(viewKey, ServerView("")); ok {
		return p.ups.Get(id)
	}
	return nil
}

// Capabilities are what the proxy declares towards a legacy client of this view. That tasks are run is said where a server
// that is up runs them: it stays true while that server is configured, and a client that was not told loses nothing, since
// the proxy follows tasks for it.
func (p *Proxy) Capabilities(viewKey string) string {
	return p.withTasks(p.capabilities(viewKey), viewKey, wire.Legacy)
}

// capabilities are those that are the same in both eras.
func (p *Proxy) capabilities(viewKey string) string {
	if u := p.single(viewKey); u != nil && u.Peer() != nil {
		own := capabilitiesOf(u.Peer())
		if u.Config().Oversize == config.OversizeResource && !u.Peer().Has("resources") {
			own = strings.TrimSuffix(own, "}") + `,"resources":{}}` // which are the results that the proxy keeps
			own = strings.Replace(own, "{,", "{", 1)
		}
		return own
	}
	return aggregateCapabilities
}

// capabilitiesOf are those of one upstream, as far as they are relayed. Changes of lists are always announced: the proxy
// looks at the lists anew when the upstream is restarted.
func capabilitiesOf(peer *upstream.Peer) string {
	var out []string
	for _, name := range []string{"tools", "prompts"} {
		if peer.Has(name) {
			out = append(out, `"`+name+`":{"listChanged":true}`)
		}
	}
	if peer.Has("resources") {
		text := `"resources":{"listChanged":true`
		if peer.Has("resources", "subscribe") {
			text += `,"subscribe":true`
		}
		out = append(out, text+"}")
	}
	for _, name := range []string{"completions", "logging"} {
		if peer.Has(name) {
			out = append(out, `"`+name+`":{}`)
		}
	}
	return "{" + strings.Join(out, ",") + "}"
}

// ServerInfo is the raw object of who answers a client of this view.
func (p *Proxy) ServerInfo(viewKey string) []byte {
	if u := p.single(viewKey); u != nil {
		if peer := u.Peer(); peer != nil && len(peer.Info) > 0 {
			return peer.Info
		}
	}
	return p.set.Load().info
}

const (
	maxInstructions        = 16 << 10
	maxInstructionsPerPeer = 2 << 10
)

// Instructions are the text for a client of this view: one upstream's own, or what the configuration says and which
// server offers what.
func (p *Proxy) Instructions(viewKey string) string { return p.instructions(&Caller{View: viewKey}) }

func (p *Proxy) instructions(c *Caller) string {
	viewKey := c.View
	if u := p.single(viewKey); u != nil {
		if peer := u.Peer(); peer != nil {
			return peer.Instructions
		}
		return ""
	}
	var parts []string
	v := p.view(c)
	if own := cmp.Or(v.instructions, p.set.Load().instructions); own != "" {
		parts = append(parts, own)
	}
	if text := v.ofStands(); text != "" {
		parts = append(parts, text)
	}
	for _, u := range v.ups {
		parts = append(parts, p.section(v, u))
	}
	return cut(strings.Join(parts, "\n\n"), maxInstructions)
}

// ofStands tells how to come to tools that are not listed, or not whole.
func (v *view) ofStands() string {
	var parts []string
	for _, it := range v.items[Tool] {
		switch {
		case it.stand == nil:
		case it.stand.calls:
			parts = append(parts, "`"+it.Name+"` calls by its name a tool that is not listed.")
		default:
			parts = append(parts, "`"+it.Name+"` finds tools, listed or not, and gives their input schemas.")
		}
	}
	return strings.Join(parts, " ")
}

// section tells of one upstream.
func (p *Proxy) section(v *view, u *upstream.Upstream) string {
	var n [kinds]int
	example := ""
	for k := range kinds {
		for _, it := range v.items[k] {
			if it.Upstream == u {
				n[k]++
				if example == "" && k == Tool {
					example = it.Name
				}
			}
		}
	}
	text := "# " + u.ID + "\n" + fmt.Sprintf("%d tools, %d prompts, %d resources.", n[Tool], n[Prompt], n[Resource]+n[Template])
	if example != "" {
		text += " Its tools are called like " + example + "."
	}
	if peer := u.Peer(); peer != nil && peer.Instructions != "" {
		text += "\n" + cut(peer.Instructions, maxInstructionsPerPeer)
	}
	return text
}

// cut shortens a text to a number of bytes without splitting a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + " …"
}

// discover is the answer to server/discover (2026-07-28, server/discover).
func (p *Proxy) discover(caller *Caller) []byte {
	b := []byte(`{"resultType":"complete","supportedVersions":[`)
	for i, v := range wire.Revisions() {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, v)
	}
	b = append(append(b, `],"capabilities":`...), p.withTasks(p.capabilities(caller.View), caller.View, wire.Modern)...)
	if text := p.instructions(caller); text != "" {
		b = wire.AppendString(append(b, `,"instructions":`...), text)
	}
	// Who is up changes what is said here, so it is not kept for long.
	b = append(b, `,"ttlMs":5000,"cacheScope":"private","_meta":{"`+wire.MetaServerInfo+`":`...)
	return append(append(b, p.ServerInfo(caller.View)...), "}}"...)
}

// tail makes what a modern list carries beside its items.
func (p *Proxy) tail(listings map[string]*listing, v *view, k Kind) []byte {
	ttl := int64(-1)
	for _, u := range v.ups {
		if l := listings[u.ID]; l != nil && len(l.offers[k]) > 0 && (ttl < 0 || l.ttl[k] < ttl) {
			ttl = l.ttl[k]
		}
	}
	return modernTail(max(ttl, 0), p.ServerInfo(v.key))
}
