package proxy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

const (
	maxPages = 1000
	maxItems = 20000
)

// listing is what one upstream offers, as it was last heard. It is immutable.
type listing struct {
	offers [kinds][]*offer
	// ttl is for how long each list is fresh, in milliseconds; a legacy server promises nothing.
	ttl  [kinds]int64
	peer *upstream.Peer
	// partial says why a list is not whole; nil where all are.
	partial error
	// someTools says that the list of tools is one that is not whole.
	someTools bool
	// kept says that it is from before this process.
	kept bool
}

// lister fetches the lists of one upstream, raw and with all pages.
type lister struct {
	u     *upstream.Upstream
	lease *upstream.Lease
	log   *zap.Logger
	count *count.Counters
	meta  []byte // request_meta
}

// fetch gathers all kinds. A kind that fails keeps what was known of it before, where that was more.
func (l *lister) fetch(ctx context.Context, before *listing) *listing {
	out := &listing{peer: l.lease.Peer()}
	for k := range kinds {
		if !out.peer.Has(kindInfo[k].capability) {
			continue
		}
		offers, ttl, err := l.all(ctx, k)
		out.ttl[k] = ttl
		if err != nil {
			out.partial = errors.Join(out.partial, fmt.Errorf("%s: %w", kindInfo[k].method, err))
			out.someTools = out.someTools || k == Tool
			if before != nil && len(before.offers[k]) > len(offers) {
				offers = before.offers[k]
			}
		}
		out.offers[k] = offers
	}
	return out
}

// all follows the cursors of one list to its end. A cursor that comes again ends it: some servers never move on. What
// came before a failure is kept.
func (l *lister) all(ctx context.Context, k Kind) (out []*offer, ttl int64, err error) {
	seen := map[string]bool{}
	names := map[string]bool{}
	cursor := []byte(nil)
	for page := 0; ; page++ {
		f, err := l.page(ctx, k, cursor)
		if err != nil {
			return out, 0, err
		}
		if f.Kind == wire.KindError {
			if isMethodNotFound(f) {
				return out, 0, nil
			}
			return out, 0, fmt.Errorf("the server answers %s", l.lease.Mask(string(f.Error.Of(f.Raw))))
		}
		out = l.collect(k, f, out, names)
		if fresh, _ := strconv.ParseInt(string(f.Body.Get(f.Raw, "ttlMs").Of(f.Raw)), 10, 64); page == 0 || fresh < ttl {
			ttl = max(fresh, 0)
		}
		next := f.Body.Get(f.Raw, "nextCursor").Of(f.Raw)
		switch {
		case !isCursor(next):
			return out, ttl, nil
		case seen[string(next)]:
			l.log.Warn("a list does not move on; what was unique of it is kept", zap.String("list", kindInfo[k].method))
			l.count.Limit(count.LimitPages)
			return out, ttl, nil
		case page >= maxPages || len(out) > maxItems:
			l.count.Limit(count.LimitItems)
			return out, 0, fmt.Errorf("more than %d pages or %d items", maxPages, maxItems)
		}
		cursor = next
		seen[string(next)] = true
	}
}

// isCursor says whether there is a next page: not where it is absent, null or empty. Some servers count their pages; such
// a number is given back as it came.
func isCursor(next []byte) bool {
	return len(next) > 2 && next[0] == '"' || len(next) > 0 && (next[0] == '-' || next[0] >= '0' && next[0] <= '9')
}

func (l *lister) collect(k Kind, f *wire.Frame, out []*offer, names map[string]bool) []*offer {
	for _, e := range wire.Elements(f.Raw, f.Body.Get(f.Raw, kindInfo[k].list)) {
		o, err := parseOffer(k, e.Of(f.Raw))
		if err != nil {
			l.log.Warn("an item is left out of the list", zap.String("list", kindInfo[k].method), zap.Error(err))
			l.count.Repair(l.u.ID, count.RepairToolLeftOut)
			continue
		}
		if names[o.wire] {
			continue
		}
		names[o.wire] = true
		o.mend(l.count, l.u.ID)
		if o.withheld != "" {
			l.log.Warn("an item is withheld: no client could accept it", zap.String("kind", k.String()), zap.String("name", o.wire), zap.String("why", o.withheld))
		}
		out = append(out, o)
	}
	return out
}

func isMethodNotFound(f *wire.Frame) bool {
	obj, ok := wire.ObjectAt(f.Raw, f.Error)
	return ok && string(obj.Get(f.Raw, "code").Of(f.Raw)) == strconv.Itoa(wire.CodeMethodNotFound)
}

// page asks for one page.
func (l *lister) page(ctx context.Context, k Kind, cursor []byte) (*wire.Frame, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // what has not been asked must not be cancelled
	}
	id := l.u.NextID()
	b := wire.AppendUpstreamID([]byte(`{"jsonrpc":"2.0","id":`), id)
	b = append(b, `,"method":"`+kindInfo[k].method+`","params":{`...)
	meta := ownMeta(l.lease.Peer(), l.meta)
	if cursor != nil {
		b = append(append(b, `"cursor":`...), cursor...)
		if meta != "" {
			b = append(b, ',')
		}
	}
	if meta != "" {
		b = append(b, `"_meta":`+meta...)
	}
	b = append(b, "}}"...)
	ctx, cancel := context.WithTimeoutCause(ctx, l.u.Config().CallTimeout, CauseInactivity)
	defer cancel()
	return answered(ctx, l.lease, &upstream.Outgoing{ID: id, Method: kindInfo[k].method, Frame: b})
}

// ownMeta is the _meta of a request of our own: what the era demands, and what the configuration adds.
func ownMeta(peer *upstream.Peer, configured []byte) string {
	return metaOf(peer, strings.TrimSuffix(upstream.AllCapabilities(), "}")+`,"extensions":{"`+tasksExtension+`":{}}}`, configured)
}

// metaOf is the _meta of a request of our own that declares these capabilities.
func metaOf(peer *upstream.Peer, caps string, configured []byte) string {
	var inner string
	if peer.Era == wire.Modern {
		inner = `"` + wire.MetaProtocolVersion + `":"` + peer.Version + `","` + wire.MetaClientInfo + `":` + clientInfo + `,"` +
			wire.MetaClientCapabilities + `":` + caps
	}
	if obj, ok := wire.ObjectAt(configured, wire.Span{End: len(configured)}); ok && len(obj.Members) > 0 {
		if inner != "" {
			inner += ","
		}
		inner += string(configured[obj.Start+1 : obj.End-1])
	}
	if inner == "" {
		return ""
	}
	return "{" + inner + "}"
}

const clientInfo = `{"name":"mcp-proxy","version":"1"}`
