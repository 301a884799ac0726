package upstream

import (
	"context"
	"net/http"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Outgoing is one request to an upstream, complete: its frame carries the id that [Upstream.NextID] gave.
type Outgoing struct {
	ID     uint64
	Method string
	// Name is what the request is about (tool, prompt, URI); modern HTTP mirrors it in a header.
	Name string
	// Frame is the message without its line end. The connection may append to it.
	Frame []byte
	// Task is the task that the request asks about for as long as it runs, so that what the server asks for the task finds
	// it on a channel that several calls share; empty for none.
	Task string
	// Quiet says that the request is the proxy's own and asks for nothing that the server could have a question about.
	Quiet bool
	// Progress says that the client wants to hear of progress.
	Progress bool
	// Params are the further headers of modern HTTP that mirror annotated arguments.
	Params []Param
	// Headers are those of the client's request that the upstream gets as well; over stdio they stand in the frame.
	Headers http.Header
	// Pauser, if there is one, hears that the server has ended the stream of its answer before that was there.
	Pauser Pauser
}

// Pauser may end its own stream as a server has ended that of an answer. The server wants its client back for the answer
// after retry (2025-11-25, transports, "Sending Messages to the Server"); we come back for it in any case.
type Pauser interface {
	Pause(retry time.Duration)
}

// Param is one Mcp-Param header (2026-07-28, streamable HTTP, "Custom Headers from Tool Parameters").
type Param struct{ Name, Value string }

// Exchange is one request under way. It is used by one goroutine.
type Exchange interface {
	// Next gives the next frame of this call in its order: notifications, requests of the upstream, and last its answer.
	// The first call sends the request. ctx must be the same for all calls; its cause is returned when it ends.
	Next(ctx context.Context) (*wire.Frame, error)
	// Respond answers a request of the upstream that Next gave.
	Respond(ctx context.Context, frame []byte) error
	// Close ends the interest in the call. cancelled says that it was given up before its answer.
	Close(cancelled bool)
}

// conn is one live connection with an upstream.
type conn interface {
	Start(ctx context.Context, out *Outgoing) (Exchange, error)
	Notify(ctx context.Context, frame []byte) error
	// Cancel tells the upstream that a request is given up, where its era has a message for that.
	Cancel(ctx context.Context, id uint64, reason string) error
	// Done is closed when the connection is of no more use; Err then tells why.
	Done() <-chan struct{}
	Err() error
	// Close ends it and waits until nothing of it runs any more.
	Close()
	// negotiated is told what the handshake found, before anything further is sent.
	negotiated(p *Peer)
	// opened is called once the handshake is complete.
	opened()
}

// Peer is what the handshake told of an upstream.
type Peer struct {
	Era     wire.Era
	Version string // the revision spoken on this connection
	// Result is the raw result of initialize or server/discover.
	Result []byte
	// Capabilities is the raw capabilities object of it.
	Capabilities []byte
	// Info is the raw serverInfo object of it; nil where there is none.
	Info         []byte
	Name         string // of Info, for status pages only
	Software     string
	Instructions string
	// RunsTasks says whether the server runs calls of tools as tasks, in the manner of its era.
	RunsTasks bool
}

// Has says whether a capability is declared; path goes down into objects.
func (p *Peer) Has(path ...string) bool {
	raw := p.Capabilities
	for i, name := range path {
		obj, ok := wire.ObjectAt(raw, wire.Span{End: len(raw)})
		if !ok {
			return false
		}
		v := obj.Get(raw, name)
		if !v.Ok() {
			return false
		}
		if raw = v.Of(raw); i == len(path)-1 {
			return string(raw) != "false" && string(raw) != "null"
		}
	}
	return false
}
