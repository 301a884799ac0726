package proxy

import (
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// logLevels are the levels of the protocol, the most verbose first (RFC 5424).
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// levels keeps the most verbose level that any client has asked for: a shared server has only one, and each client gets
// what it asked for of what comes.
type levels struct {
	mu   sync.Mutex
	most string
}

// want notes a level, and tells it where it is more verbose than all before. Two that come together are told in order.
func (l *levels) want(level string, tell func(level string)) {
	at := slices.Index(logLevels, level)
	l.mu.Lock()
	defer l.mu.Unlock()
	if at < 0 || l.most != "" && at >= slices.Index(logLevels, l.most) {
		return
	}
	l.most = level
	tell(level)
}

// now gives the most verbose level that any client has asked for; empty for none.
func (l *levels) now() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.most
}

// setLevel answers logging/setLevel of a legacy client. It asks nobody: a server that knows no levels must not cost the
// client its connection.
func (c *call) setLevel() (Answer, Outcome) {
	f := c.req.Frame
	level, ok := wire.DecodeString(f.Body.Get(f.Raw, "level").Of(f.Raw))
	if !ok || !slices.Contains(logLevels, level) {
		return Failure(c.rawID(), wire.CodeInvalidParams, "logging/setLevel: params.level must be one of the levels from debug to emergency", nil), Invalid
	}
	if c.req.SetLogLevel != nil {
		c.req.SetLogLevel(level)
	}
	c.p.wantLevel(level)
	return Result(c.rawID(), []byte("{}")), OK
}

// wantLevel tells the upstreams when somebody wants more than before.
func (p *Proxy) wantLevel(level string) {
	p.levels.want(level, func(level string) {
		for _, u := range p.ups.All() {
			u.SetLogLevel(level)
		}
	})
}

// passesLevel says whether a log message is one that the client asked for.
func passesLevel(f *wire.Frame, wanted string) bool {
	least := slices.Index(logLevels, wanted)
	level, _ := wire.DecodeString(f.Body.Get(f.Raw, "level").Of(f.Raw))
	return least >= 0 && slices.Index(logLevels, level) >= least
}

// strayLog keeps a log message that belongs to nobody in our own log: a stranger must not get it.
func (c *catalog) strayLog(u *upstream.Upstream, f *wire.Frame) {
	c.count.Drop(count.DropLog)
	if e := c.log.Check(zap.DebugLevel, "log message of an upstream"); e != nil {
		data := f.Body.Get(f.Raw, "data").Of(f.Raw)
		if len(data) > 500 {
			data = data[:500]
		}
		e.Write(zap.String("upstream", u.ID), zap.ByteString("data", data))
	}
}
