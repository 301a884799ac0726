package proxy

import (
	"container/list"
	"strconv"
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// methodVisited tells that the page of an elicitation has been visited (2025-11-25, client/elicitation, "Completion
// Notifications for URL Mode Elicitation").
const methodVisited = "notifications/elicitation/complete"

const (
	maxVisits  = 10_000
	maxVisitID = 256 // bytes
)

// visits remembers which session was sent to a page: the news that it has been visited may come outside of any call, and
// names only the elicitation. What was noted first is forgotten first. It is safe for concurrent use.
type visits struct {
	mu    sync.Mutex
	order *list.List // of *visit, the newest first
	known map[visitKey]*list.Element
}

// visitKey names an elicitation: servers may give the same id on connections of different credentials.
type visitKey struct{ upstream, creds, elicitation string }

func visitOf(from source, elicitation string) visitKey {
	return visitKey{from.up.ID, from.creds, elicitation}
}

type visit struct {
	key     visitKey
	session string // empty where the server has given two sessions the same id: then nobody can tell whose it is
}

func newVisits() *visits {
	return &visits{order: list.New(), known: map[visitKey]*list.Element{}}
}

// note notes that a session was told of an elicitation.
func (v *visits) note(from source, elicitation, session string) {
	if session == "" || elicitation == "" || len(elicitation) > maxVisitID {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	key := visitOf(from, elicitation)
	if e := v.known[key]; e != nil {
		if p := e.Value.(*visit); p.session != session {
			p.session = ""
		}
		return
	}
	v.known[key] = v.order.PushFront(&visit{key, session})
	if v.order.Len() > maxVisits {
		delete(v.known, v.order.Remove(v.order.Back()).(*visit).key)
	}
}

// of gives the session that was told of an elicitation; empty where nobody can tell.
func (v *visits) of(from source, elicitation string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.known[visitOf(from, elicitation)]
	if e == nil {
		return ""
	}
	return e.Value.(*visit).session
}

// another says whether a session other than this one was told of the elicitation that a notification is about.
func (v *visits) another(from source, f *wire.Frame, session string) bool {
	s := v.of(from, elicitationOf(f))
	return s != "" && s != session
}

// elicitationOf is what the news of a visited page is about.
func elicitationOf(f *wire.Frame) string {
	id, _ := wire.DecodeString(f.Body.Get(f.Raw, "elicitationId").Of(f.Raw))
	return id
}

// noteVisits notes the pages that an error of a legacy upstream sends a legacy client to.
func (c *call) noteVisits(f *wire.Frame) {
	obj, _ := wire.ObjectAt(f.Raw, f.Error)
	if c.req.Caller.Era != wire.Legacy || c.peer.Era != wire.Legacy || string(obj.Get(f.Raw, "code").Of(f.Raw)) != strconv.Itoa(wire.CodeURLElicitation) {
		return
	}
	data, _ := wire.ObjectAt(f.Raw, obj.Get(f.Raw, "data"))
	for _, e := range wire.Elements(f.Raw, data.Get(f.Raw, "elicitations")) {
		if params, ok := wire.ObjectAt(f.Raw, e); ok {
			id, _ := wire.DecodeString(params.Get(f.Raw, "elicitationId").Of(f.Raw))
			c.p.visits.note(c.req.Caller.source(c.item.Upstream), id, c.req.Caller.Unit)
		}
	}
}
