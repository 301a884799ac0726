package upstream

import (
	"strconv"
	"sync"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream/process"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// connPeer hears what one connection says that belongs to no call. Its methods must not block.
type connPeer interface {
	Notification(f *wire.Frame)
	// Refused hears of a request that was refused because it belongs to no call, or nobody can tell to which of several.
	Refused(f *wire.Frame, several bool)
	// Missed hears that the stream for such news was broken: what was said meanwhile has not been heard.
	Missed()
}

// env is what every connection of an upstream needs.
type env struct {
	id     string
	log    *zap.Logger
	count  *count.Counters
	budget *Budget
	peer   connPeer
	limits wire.Limits
	// maxFrame bounds one message of the upstream, in bytes.
	maxFrame int
	own      bool          // the connection is used for one client only
	declares string        // the capabilities object that a legacy server is told
	asides   *asides       // nil where nobody in particular is meant by what comes outside of calls
	home     *process.Home // of its processes; nil where it has none
	noisy    *sync.Once
	moved    *sync.Once // the advice about a redirect
	mask     *masker
	creds    *Credentials // that the connection is bound to; nil for none
	callers  bool         // the server gets the credentials of callers, and refuses theirs
	stayLost bool         // a lost session is not replaced on the same connection
}

// noise logs the first foreign line of an upstream; all are counted.
func (e *env) noise(what string, line []byte) {
	e.noisy.Do(func() {
		text := e.mask.Clip(string(line), 200)
		e.log.Warn("the upstream writes what is no message; it is ignored, further ones without a word",
			zap.String("what", what), zap.String("text", strconv.QuoteToASCII(text)))
	})
}

// parse scans a frame of the upstream, counting repairs. The frame owns raw, which is used again when the frame is given
// back.
func (e *env) parse(raw []byte) (*wire.Frame, error) {
	f := wire.GetFrame()
	if err := wire.ParseInto(f, raw, wire.Upstream, e.limits); err != nil {
		return nil, err
	}
	if f.Repaired {
		e.count.Repair(e.id, count.RepairUTF8)
	}
	if f.Amended {
		e.count.Repair(e.id, count.RepairEnvelope)
	}
	return f, nil
}
