package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// probeTimeout is how long server/discover may stay unanswered before initialize is tried on the same connection.
const probeTimeout = 3 * time.Second

// clientCapabilities are all that this proxy can bring to a client. A server hides tools from a client that lacks them,
// so the connection that lists declares them, as those of many clients do; a request for somebody who lacks one is
// refused. The connection of one session declares what its client does.
const clientCapabilities = `{"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}}}`

// AllCapabilities is the raw object of what the proxy itself declares towards a modern upstream when it asks for itself.
func AllCapabilities() string { return clientCapabilities }

// initialized is what ends a handshake.
const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

// errUseLegacy means that the probe did not find a modern server.
var errUseLegacy = errors.New("not a modern server")

// handshaker brings a connection to where requests can be sent. It writes raw frames and keeps the raw result: one odd
// field of a server must not cost the server.
type handshaker struct {
	conn    conn
	nextID  func() uint64
	version string // ours
	// declares is the capabilities object that a legacy server is told.
	declares string
}

// run finds out the era where known is nil, and does the handshake.
func (h *handshaker) run(ctx context.Context, known *wire.Era) (*Peer, error) {
	switch {
	case known == nil:
		return h.probe(ctx)
	case *known == wire.Modern:
		return h.discover(ctx)
	default:
		return h.initialize(ctx)
	}
}

type handshake struct {
	peer *Peer
	err  error
}

// probe asks server/discover and falls back to initialize: at once when the answer is no, and after a while when there
// is none. A server that is merely slow to start then has both before it; if initialize succeeds, it holds
// (2026-07-28, versioning, "Backward Compatibility").
func (h *handshaker) probe(ctx context.Context) (*Peer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	discovered := make(chan handshake, 1)
	go func() {
		p, err := h.discover(ctx)
		discovered <- handshake{p, err}
	}()
	timer := time.NewTimer(probeTimeout)
	defer timer.Stop()
	select {
	case d := <-discovered:
		if d.err == nil || !errors.Is(d.err, errUseLegacy) {
			return d.peer, d.err
		}
		return h.initialize(ctx)
	case <-timer.C:
	}
	return h.both(ctx, cancel, discovered)
}

// both waits for the answers to the probe and to initialize, now that both have been asked. A handshake that succeeds
// holds; a server that answers only the probe, and is silent on initialize for as long again, is a modern one.
func (h *handshaker) both(ctx context.Context, cancel context.CancelFunc, discovered chan handshake) (*Peer, error) {
	shaken := make(chan handshake, 1)
	go func() {
		p, err := h.initialize(ctx)
		shaken <- handshake{p, err}
	}()
	var probe *handshake
	var silent <-chan time.Time
	for {
		select {
		case d := <-discovered:
			probe = &d
			if d.err == nil {
				silent = time.After(probeTimeout)
			}
		case <-silent:
			cancel()
			<-shaken
			h.conn.negotiated(probe.peer)
			return probe.peer, nil
		case s := <-shaken:
			var refused *refusedError
			if errors.As(s.err, &refused) && probe == nil {
				d := <-discovered // it may just be slow to start
				probe = &d
			}
			cancel()
			if probe == nil {
				<-discovered
			}
			if refused != nil && probe.err == nil {
				h.conn.negotiated(probe.peer)
				return probe.peer, nil
			}
			if s.err == nil {
				// An answer to the probe may have come last; the handshake holds.
				h.conn.negotiated(s.peer)
			}
			return s.peer, s.err
		}
	}
}

// refusedError is an error answer to initialize.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return "initialize was refused: " + e.text }

func (h *handshaker) discover(ctx context.Context) (*Peer, error) {
	params := h.discoverParams(wire.LatestModern)
	f, err := h.ask(ctx, "server/discover", params)
	if err == nil && wantsAnother(f) {
		f, err = h.ask(ctx, "server/discover", params)
	}
	if err != nil {
		return nil, probeError(err)
	}
	if f.Kind == wire.KindError {
		return nil, fmt.Errorf("%w: %s", errUseLegacy, f.Error.Of(f.Raw))
	}
	var r struct {
		Supported    []string        `json:"supportedVersions"`
		Capabilities json.RawMessage `json:"capabilities"`
		Instructions string          `json:"instructions"`
		Meta         map[string]json.RawMessage
	}
	raw := f.Result.Of(f.Raw)
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", errUseLegacy, err)
	}
	for _, v := range r.Supported {
		if wire.IsModern(v) {
			p := &Peer{Era: wire.Modern, Version: v, Result: raw, Capabilities: r.Capabilities, Instructions: r.Instructions}
			p.named(f.Meta.Get(f.Raw, wire.MetaServerInfo).Of(f.Raw))
			h.conn.negotiated(p)
			return p, nil
		}
	}
	// Some servers answer, but only name revisions of the other era.
	return nil, fmt.Errorf("%w: it supports %s", errUseLegacy, strings.Join(r.Supported, ", "))
}

// discoverParams are those of server/discover in this revision.
func (h *handshaker) discoverParams(revision string) string {
	return `{"_meta":{"` + wire.MetaProtocolVersion + `":"` + revision + `","` + wire.MetaClientInfo + `":` + h.clientInfo() + `,"` +
		wire.MetaClientCapabilities + `":` + clientCapabilities + `}}`
}

// wantsAnother says whether an answer refuses the revision and yet names the one that was asked with: the server is of this
// era, and a client tries again with a revision that it names (2026-07-28, versioning).
func wantsAnother(f *wire.Frame) bool {
	if f.Kind != wire.KindError {
		return false
	}
	var e struct {
		Code int64 `json:"code"`
		Data struct {
			Supported []string `json:"supported"`
		} `json:"data"`
	}
	err := json.Unmarshal(f.Error.Of(f.Raw), &e)
	return err == nil && e.Code == wire.CodeUnsupportedRevision && slices.ContainsFunc(e.Data.Supported, wire.IsModern)
}

// probeError tells what an error of the path means for the era: a plain refusal by HTTP status is a legacy server's
// answer, trouble with credentials or the server itself says nothing about the era.
func probeError(err error) error {
	var se *statusError
	if errors.As(err, &se) && se.code/100 == 4 && se.code != 401 && se.code != 403 && se.code != 429 {
		return fmt.Errorf("%w: %w", errUseLegacy, err)
	}
	if errors.As(err, &se) && se.code/100 == 2 {
		return fmt.Errorf("%w: %w", errUseLegacy, err)
	}
	return atStage("probe", err)
}

func (h *handshaker) clientInfo() string {
	v, _ := json.Marshal(h.version)
	return `{"name":"mcp-proxy","version":` + string(v) + `}`
}

func (h *handshaker) initialize(ctx context.Context) (*Peer, error) {
	params := `{"protocolVersion":"` + wire.LatestLegacy + `","capabilities":` + h.declares + `,"clientInfo":` + h.clientInfo() + `}`
	f, err := h.ask(ctx, "initialize", params)
	if err != nil {
		return nil, atStage("handshake", err)
	}
	if f.Kind == wire.KindError {
		return nil, atStage("handshake", &refusedError{string(f.Error.Of(f.Raw))})
	}
	var r struct {
		Version      string          `json:"protocolVersion"`
		Capabilities json.RawMessage `json:"capabilities"`
		Instructions string          `json:"instructions"`
	}
	raw := f.Result.Of(f.Raw)
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, atStage("handshake", fmt.Errorf("the answer to initialize is not understood: %w", err))
	}
	if !wire.IsLegacy(r.Version) {
		return nil, atStage("handshake", fmt.Errorf("the server wants to speak revision %q, which this proxy does not know", r.Version))
	}
	p := &Peer{Era: wire.Legacy, Version: r.Version, Result: raw, Capabilities: r.Capabilities, Instructions: r.Instructions}
	p.named(f.Body.Get(f.Raw, "serverInfo").Of(f.Raw))
	h.conn.negotiated(p)
	if err := h.conn.Notify(ctx, []byte(initialized)); err != nil {
		return nil, atStage("handshake", err)
	}
	return p, nil
}

// ask sends a request of our own and waits for its answer. It is not cancelled when ctx ends: initialize must not be,
// and a connection whose handshake fails is closed anyway.
func (h *handshaker) ask(ctx context.Context, method, params string) (*wire.Frame, error) {
	return h.askAs(ctx, &Outgoing{Method: method}, params)
}

// askQuietly asks beside the calls of others: no question and no log message of the server can belong to it.
func (h *handshaker) askQuietly(ctx context.Context, method, params string) (*wire.Frame, error) {
	return h.askAs(ctx, &Outgoing{Method: method, Quiet: true}, params)
}

func (h *handshaker) askAs(ctx context.Context, out *Outgoing, params string) (*wire.Frame, error) {
	id := h.nextID()
	frame := append([]byte(`{"jsonrpc":"2.0","id":`), wire.AppendUpstreamID(nil, id)...)
	out.ID, out.Frame = id, append(frame, `,"method":"`+out.Method+`","params":`+params+`}`...)
	x, err := h.conn.Start(ctx, out)
	if err != nil {
		return nil, err
	}
	defer x.Close(false)
	for {
		f, err := x.Next(ctx)
		if err != nil {
			return nil, err
		}
		switch f.Kind {
		case wire.KindResponse, wire.KindError:
			return f, nil
		case wire.KindRequest:
			_ = x.Respond(ctx, Refusal(f))
		}
	}
}

// named keeps what the server calls itself, for status pages.
func (p *Peer) named(info []byte) {
	var v struct{ Name, Version string }
	if len(info) > 0 && info[0] == '{' {
		p.Info = info
	}
	if json.Unmarshal(info, &v) == nil {
		p.Name, p.Software = v.Name, v.Version
	}
}
