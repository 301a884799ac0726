package proxy

import (
	"container/list"
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// links remembers for each principal which upstream a URI came from that stands in no list: links need not be listed
// (2025-11-25, server/tools, "Resource Links"). What was not used for longest is forgotten first.
type links struct {
	mu    sync.Mutex
	order *list.List // of *link, the newest first
	known map[linkKey]*link
	held  map[string]*list.List // by principal, of *link, the newest first
}

type linkKey struct{ principal, uri string }

type link struct {
	key      linkKey
	up       *upstream.Upstream
	all, own *list.Element // where it stands among all, and among those of its principal
}

const (
	maxLinks             = 100_000
	maxLinksPerPrincipal = 10_000
	maxLinkedURI         = 2048
)

func newLinks() *links {
	return &links{order: list.New(), known: map[linkKey]*link{}, held: map[string]*list.List{}}
}

// learn notes where a URI came from, and gives the upstream that has it: the first from which it came.
func (l *links) learn(principal, uri string, u *upstream.Upstream) *upstream.Upstream {
	if len(uri) > maxLinkedURI {
		return u
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := linkKey{principal, uri}
	if one := l.known[key]; one != nil {
		l.used(one)
		return one.up
	}
	own := l.held[principal]
	if own == nil {
		own = list.New()
		l.held[principal] = own
	}
	one := &link{key: key, up: u}
	one.all, one.own = l.order.PushFront(one), own.PushFront(one)
	l.known[key] = one
	if own.Len() > maxLinksPerPrincipal {
		l.forget(own.Back())
	} else if l.order.Len() > maxLinks {
		l.forget(l.order.Back())
	}
	return u
}

func (l *links) find(principal, uri string) *upstream.Upstream {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.known[linkKey{principal, uri}]
	if one == nil {
		return nil
	}
	l.used(one)
	return one.up
}

func (l *links) used(one *link) {
	l.order.MoveToFront(one.all)
	l.held[one.key.principal].MoveToFront(one.own)
}

// forget drops the link of an element of either list.
func (l *links) forget(e *list.Element) {
	one := e.Value.(*link)
	own := l.held[one.key.principal]
	l.order.Remove(one.all)
	own.Remove(one.own)
	delete(l.known, one.key)
	if own.Len() == 0 {
		delete(l.held, one.key.principal)
	}
}
