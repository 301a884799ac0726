package proxy

import (
	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// overlayKey names an overlay: an upstream, and what its lists depend on.
type overlayKey struct {
	up *upstream.Upstream
	id string // the key of credentials, of a session or of both; never what a client wrote
}

// owned is an overlay that a caller may have.
type owned struct {
	key     overlayKey
	unit    upstream.Unit
	session bool
}

// owns gives the overlays that a caller may have, in the order of the configuration.
func (p *Proxy) owns(c *Caller) (out []owned) {
	s := p.set.Load()
	if len(s.scoped) == 0 || c.Headers == nil && c.Unit == "" {
		return nil
	}
	for _, u := range s.scoped {
		if !s.takes(c.View, u) {
			continue
		}
		unit := upstream.Unit{Key: c.Unit, Ends: c.Era == wire.Legacy, Principal: c.Principal, Credentials: u.Credentials(c.Headers)}
		o := owned{key: overlayKey{up: u}, unit: unit}
		if u.Config().CatalogScope == config.ScopeSession {
			// Modern lists do not depend on a connection.
			if o.session = c.Era == wire.Legacy && c.Unit != ""; !o.session {
				continue
			}
			o.key.id = c.Unit + "/" + keyOf(u.Bound(c.Headers))
		} else {
			o.key.id = keyOf(unit.Credentials)
		}
		if o.key.id != "" {
			out = append(out, o)
		}
	}
	return out
}

func keyOf(c *upstream.Credentials) string {
	if c == nil {
		return ""
	}
	return c.Key
}

// personal gives a request's caller with the overlays that it may have.
func (p *Proxy) personal(c *Caller) *Caller {
	own := p.owns(c)
	if len(own) == 0 {
		return c
	}
	with := *c
	with.own = own
	return &with
}

// ownOf gives the overlay that a caller may have of an upstream.
func (c *Caller) ownOf(u *upstream.Upstream) (owned, bool) {
	for _, o := range c.own {
		if o.key.up == u {
			return o, true
		}
	}
	return owned{}, false
}
