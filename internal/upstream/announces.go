package upstream

import "github.com/mcp-proxy/mcp-proxy/internal/wire"

// Announces says whether changes of the server's lists are heard of: it says that it tells of them, and there is a stream
// on which it can, or a subscription that it has not refused. A server without a connection has nothing to tell.
func (u *Upstream) Announces() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.shared[0]
	if s.conn == nil || s.peer == nil {
		return true
	}
	for _, list := range []string{"tools", "prompts", "resources"} {
		if s.peer.Has(list) && !s.peer.Has(list, "listChanged") {
			return false
		}
	}
	if s.peer.Era == wire.Modern {
		return !s.deaf
	}
	h, overHTTP := s.conn.(*httpConn)
	return !overHTTP || h.stands.Load()
}
