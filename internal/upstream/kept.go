package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// KeptPeer is what is kept of a [Peer] over restarts.
type KeptPeer struct {
	Era, Version, Capabilities, Info, Instructions string
}

// ErrNoPeer means that what was kept describes no server that this proxy can speak with.
var ErrNoPeer = errors.New("what was kept is not the description of a server")

// Keep gives what is to be kept of a peer.
func (p *Peer) Keep() KeptPeer {
	return KeptPeer{Era: p.Era.String(), Version: p.Version, Capabilities: string(p.Capabilities), Info: string(p.Info), Instructions: p.Instructions}
}

// Peer makes a peer of what was kept. It trusts nothing of it.
func (k KeptPeer) Peer() (*Peer, error) {
	p := &Peer{Era: wire.Legacy, Version: k.Version, Capabilities: []byte(k.Capabilities), Instructions: k.Instructions}
	if k.Era == wire.Modern.String() {
		p.Era = wire.Modern
	}
	known := wire.IsLegacy
	if p.Era == wire.Modern {
		known = wire.IsModern
	}
	if k.Era != p.Era.String() || !known(k.Version) {
		return nil, fmt.Errorf("%w: it speaks revision %q of the %q era", ErrNoPeer, k.Version, k.Era)
	}
	for _, raw := range []string{k.Capabilities, k.Info} {
		if raw != "" && !json.Valid([]byte(raw)) {
			return nil, fmt.Errorf("%w: a part of it is no JSON", ErrNoPeer)
		}
	}
	if k.Info != "" {
		p.named([]byte(k.Info))
	}
	p.RunsTasks = p.runsTasks()
	return p, nil
}

// CatalogKey identifies what a kept catalog belongs to: the same entry of the configuration. With other arguments,
// variables or headers a server may offer something else.
func (u *Upstream) CatalogKey() string {
	h := sha256.New()
	c := u.cfg
	fmt.Fprintf(h, "%q %q %q %q %q %q", c.ID, u.definition(), c.Protocol, c.Cwd, c.InheritEnv, c.RequestMeta)
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		fmt.Fprintf(h, " e%q %q", name, c.Env[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		fmt.Fprintf(h, " h%q %q", name, c.Headers[name].Reveal())
	}
	fmt.Fprintf(h, " %q", c.AuthToken.Reveal())
	if c.SignIn.Type != "" {
		name, value := c.SignInHeader()
		fmt.Fprintf(h, " s%q %q %q %q %q", name, value.Reveal(), c.SignIn.TokenURL.Reveal(), c.SignIn.ClientID, c.SignIn.Scopes)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Remember tells what was known of the server before this process. It is called before Start.
func (u *Upstream) Remember(p *Peer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.remembered = p
}

// startsIdle begins with all slots idle where the configuration wants that and what the server offers is known already.
func (u *Upstream) startsIdle() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cfg.Start != config.StartLazy || u.remembered == nil {
		return false
	}
	for _, s := range u.shared {
		s.state, s.rested = StateIdle, true
	}
	u.log.Info("upstream is started when it is needed")
	return true
}

// wakeLister lets the slot that lists connect where it never has: now that the server runs for somebody, what was kept of
// its lists can be compared.
func (u *Upstream) wakeLister() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s := u.shared[0]; s.state == StateIdle && !s.started {
		s.lastUse = time.Now()
		u.wake(s)
	}
}
