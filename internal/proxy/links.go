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
	known map[linkKey]*list.Element
	held  map[string]int // by principal
}

type linkKey struct{ principal, uri string }

type link struct {
	key linkKey
	up  *upstream.Upstream
}

const (
	maxLinks             = 100_000
	maxLinksPerPrincipal = 10_000
	maxLinkedURI         = 2048
)

func newLinks() *links {
	return &links{order: list.New(), known: map[linkKey]*list.Element{}, held: map[string]int{}}
}

// learn notes where a URI came from, and gives the upstream that has it: the first from which it came.
func (l *links) learn(principal, uri string, u *upstream.Upstream) *upstream.Upstream {
	if len(uri) > maxLinkedURI {
		return u
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := linkKey{principal, uri}
	if e := l.known[key]; e != nil {
		l.order.MoveToFront(e)
		return e.Value.(*link).up
	}
	l.known[key] = l.order.PushFront(&link{key, u})
	l.held[principal]++
	if l.held[principal] > maxLinksPerPrincipal {
		l.forgetOldestOf(principal)
	} else if l.order.Len() > maxLinks {
		l.forget(l.order.Back())
	}
	return u
}

func (l *links) find(principal, uri string) *upstream.Upstream {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.known[linkKey{principal, uri}]
	if e == nil {
		return nil
	}
	l.order.MoveToFront(e)
	return e.Value.(*link).up
}

func (l *links) forgetOldestOf(principal string) {
	for e := l.order.Back(); e != nil; e = e.Prev() {
		if e.Value.(*link).key.principal == principal {
			l.forget(e)
			return
		}
	}
}

func (l *links) forget(e *list.Element) {
	k := l.order.Remove(e).(*link).key
	delete(l.known, k)
	if l.held[k.principal]--; l.held[k.principal] == 0 {
		delete(l.held, k.principal)
	}
}
