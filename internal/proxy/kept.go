package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// Memory keeps catalogs of upstreams over restarts. What it gives may be anything.
type Memory interface {
	Catalog(key string) []byte
	SetCatalog(key string, b []byte) error
}

// keptFormat is the format of kept catalogs; one of another format is not read.
const keptFormat = 1

// keptListing is a listing as it is kept: the items as they came, in strings so that not a byte of them changes.
type keptListing struct {
	Format int               `json:"format"`
	ID     string            `json:"id"` // for people who look into the file
	Peer   upstream.KeptPeer `json:"peer"`
	TTL    [kinds]int64      `json:"ttl"`
	Items  [kinds][]string   `json:"items"`
}

var (
	errKeptFormat = errors.New("it has another format")
	errKeptItems  = errors.New("it has too many items")
)

// encode makes what is kept of a listing.
func (l *listing) encode(id string) ([]byte, error) {
	k := keptListing{Format: keptFormat, ID: id, Peer: l.peer.Keep(), TTL: l.ttl}
	for kind := range kinds {
		for _, o := range l.offers[kind] {
			k.Items[kind] = append(k.Items[kind], string(o.raw))
		}
	}
	return json.Marshal(k)
}

// decodeListing reads what was kept. It trusts nothing of it.
func decodeListing(b []byte, c *count.Counters, id string) (*listing, error) {
	var k keptListing
	if err := json.Unmarshal(b, &k); err != nil {
		return nil, err
	}
	if k.Format != keptFormat {
		return nil, errKeptFormat
	}
	peer, err := k.Peer.Peer()
	if err != nil {
		return nil, err
	}
	l := &listing{peer: peer, ttl: k.TTL, kept: true}
	for kind := range kinds {
		if len(k.Items[kind]) > maxItems+1 {
			return nil, errKeptItems
		}
		seen := map[string]bool{}
		for i, text := range k.Items[kind] {
			if !json.Valid([]byte(text)) {
				return nil, fmt.Errorf("%s %d is no JSON", kind, i)
			}
			o, err := parseOffer(kind, []byte(text))
			if err != nil {
				return nil, fmt.Errorf("%s %d: %w", kind, i, err)
			}
			if seen[o.wire] {
				continue
			}
			seen[o.wire] = true
			o.mend(c, id)
			l.offers[kind] = append(l.offers[kind], o)
		}
	}
	return l, nil
}

// restore takes what an upstream was heard to offer before this process for what it offers, until it has been listed. c.mu
// is held, or nobody else knows the catalog yet.
func (c *catalog) restore(u *upstream.Upstream) {
	if c.memory == nil || u.Config().Problem != nil || c.listings[u.ID] != nil {
		return
	}
	b := c.memory.Catalog(u.CatalogKey())
	if len(b) == 0 {
		return
	}
	l, err := decodeListing(b, c.count, u.ID)
	if err != nil {
		c.log.Warn("a kept catalog is of no use and is fetched again", zap.String("upstream", u.ID), zap.Error(err))
		return
	}
	u.Remember(l.peer)
	c.listings[u.ID] = l
}

// keep keeps a whole listing for the next start, where it differs from what is kept.
func (r *refresher) keep(c *catalog, l *listing) {
	if c.memory == nil || l.partial != nil {
		return
	}
	b, err := l.encode(r.u.ID)
	if err == nil {
		key := r.u.CatalogKey()
		if string(c.memory.Catalog(key)) == string(b) {
			return
		}
		err = c.memory.SetCatalog(key, b)
	}
	if err != nil {
		c.log.Warn("the catalog of an upstream is not kept", zap.String("upstream", r.u.ID), zap.Error(err))
	}
}

// settleLists waits like settle, unless something is known of every upstream already.
func (p *Proxy) settleLists(ctx context.Context) {
	select {
	case <-p.catalog.settled:
	default:
		if !p.catalog.known() {
			p.settle(ctx)
		}
	}
}

// known says whether there is a listing of every upstream.
func (c *catalog) known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.all() {
		if c.listings[r.u.ID] == nil {
			return false
		}
	}
	return true
}

// fresh says whether the lists of an upstream have been fetched by this process, or will not be before a call needs it.
func (p *Proxy) fresh(id string) bool {
	l := p.catalog.listing(id)
	u := p.ups.Get(id)
	return l != nil && (!l.kept || u != nil && u.Idle()) || p.listsForNobody(id)
}
