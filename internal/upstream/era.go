package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// definition identifies what the era belongs to: another command or URL may be another server.
func (u *Upstream) definition() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q", u.cfg.Transport, u.cfg.Command, u.cfg.Args, u.cfg.URL.Reveal())
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// knownEra is the era to speak; nil where it has to be found.
func (u *Upstream) knownEra() *wire.Era {
	era := wire.Legacy
	switch {
	case u.cfg.Protocol == config.ProtocolModern:
		era = wire.Modern
		return &era
	case u.cfg.Protocol == config.ProtocolLegacy, u.cfg.Transport == config.TransportSSE, u.speaksSSE.Load():
		return &era
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.era
}

func (u *Upstream) rememberedEra() *wire.Era {
	if u.opts.Memory == nil {
		return nil
	}
	word, ok := u.opts.Memory.Era(u.definition())
	if !ok {
		return nil
	}
	for _, e := range []wire.Era{wire.Legacy, wire.Modern} {
		if e.String() == word {
			return &e
		}
	}
	return nil
}

func (u *Upstream) learnEra(e wire.Era) {
	u.mu.Lock()
	known := u.era != nil && *u.era == e
	u.era = &e
	u.mu.Unlock()
	if !known && u.opts.Memory != nil && u.cfg.Protocol == config.ProtocolAuto {
		u.opts.Memory.SetEra(u.definition(), e.String())
	}
}

func (u *Upstream) forgetEra() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.era = nil
}
