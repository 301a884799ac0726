package proxy

import (
	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// ownEvent is what a connection that is somebody's own tells of itself.
type ownEvent uint8

const (
	ownSays ownEvent = iota
	ownReady
	ownEnded
)

// ownNews hears of connections that are somebody's own: what came on them outside any call, and that they come and go.
func (p *Proxy) ownNews(u *upstream.Upstream, of upstream.Owner, f *wire.Frame, what ownEvent) bool {
	key, ok := overlayOf(u, of)
	switch {
	case what == ownReady && ok:
		p.overlays.renewed(key)
	case what == ownEnded && ok:
		p.overlays.ended(key)
	case what != ownSays:
	case f.Method == "notifications/resources/updated" && of.Lists:
		if uri, ok := wire.DecodeString(f.Body.Get(f.Raw, "uri").Of(f.Raw)); ok {
			p.updated(source{u, of.Credentials}, uri)
		}
	case f.Method == methodVisited && of.Unit == "":
		p.catalog.onVisited(source{u, of.Credentials}, f)
	case ok && isListChanged(f.Method):
		p.overlays.changed(key)
	default:
		return false
	}
	return true
}

// overlayOf names the overlay that a connection lists for; false where it lists for none.
func overlayOf(u *upstream.Upstream, of upstream.Owner) (overlayKey, bool) {
	switch u.Config().CatalogScope {
	case config.ScopePrincipal:
		return overlayKey{u, of.Credentials}, of.Lists
	case config.ScopeSession:
		return overlayKey{u, of.Unit + "/" + of.Credentials}, of.Unit != ""
	}
	return overlayKey{}, false
}

func isListChanged(method string) bool {
	for k := range kinds {
		if kindInfo[k].changed == method {
			return true
		}
	}
	return false
}
