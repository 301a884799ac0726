package upstream

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// reaction is what a server does about one request: answers after a while, fails, or (zero) says nothing at all.
type reaction struct {
	after  time.Duration
	answer string // members beside jsonrpc and id
	err    error
	first  string // the answer to the first request, where it is another
	before string // a frame that comes before the answer
}

// scriptConn is a connection whose server follows a script.
type scriptConn struct {
	t      *testing.T
	script map[string]reaction
	notify error

	mu        sync.Mutex
	sent      []string
	responded []string
	peer      *Peer
}

func (c *scriptConn) Start(_ context.Context, out *Outgoing) (Exchange, error) {
	return &scriptExchange{c: c, out: out}, nil
}

func (c *scriptConn) Notify(_ context.Context, frame []byte) error {
	c.note(string(frame))
	return c.notify
}

func (c *scriptConn) note(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, s)
}

func (c *scriptConn) methods() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.sent, " ")
}

func (c *scriptConn) negotiated(p *Peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peer = p
}

func (c *scriptConn) Cancel(context.Context, uint64, string) error { return nil }
func (c *scriptConn) Done() <-chan struct{}                        { return nil }
func (c *scriptConn) Err() error                                   { return nil }
func (c *scriptConn) Close()                                       {}
func (c *scriptConn) opened()                                      {}

type scriptExchange struct {
	c      *scriptConn
	out    *Outgoing
	before bool
}

func (x *scriptExchange) Next(ctx context.Context) (*wire.Frame, error) {
	r, ok := x.c.script[x.out.Method]
	if !x.before {
		x.c.note(x.out.Method)
		x.before = true
		if r.before != "" {
			return parsed(x.c.t, r.before), nil
		}
	}
	if !ok {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	select {
	case <-time.After(r.after):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r.err != nil {
		return nil, r.err
	}
	id := string(wire.AppendUpstreamID(nil, x.out.ID))
	answer := r.answer
	if r.first != "" && x.c.methods() == x.out.Method {
		answer = r.first
	}
	return parsed(x.c.t, `{"jsonrpc":"2.0","id":`+id+`,`+answer+`}`), nil
}

func (x *scriptExchange) Respond(_ context.Context, frame []byte) error {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	x.c.responded = append(x.c.responded, string(frame))
	return nil
}

func (x *scriptExchange) Close(bool) {}

func shake(ctx context.Context, c *scriptConn, known *wire.Era) (*Peer, error) {
	n := uint64(0)
	var mu sync.Mutex
	h := &handshaker{conn: c, version: `1 "x"`, declares: clientCapabilities, nextID: func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		n++
		return n
	}}
	return h.run(ctx, known)
}

const (
	modernAnswer = `"result":{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}},"instructions":"read me","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"srv","version":"9"}}}`
	legacyAnswer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"old","version":"2"},"instructions":"hello"}`
	noMethod     = `"error":{"code":-32601,"message":"no such method"}`

	refusesRevision = `"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"]}}`
)

// Every answer that a server may give to the two ways of beginning leads to an era or to an error that says why.
func TestWhatHandshakesFind(t *testing.T) {
	initOK, initNo := reaction{answer: legacyAnswer}, reaction{answer: `"error":{"code":-32602,"message":"unsupported"}`}
	for _, c := range []struct {
		name       string
		discover   reaction
		initialize reaction
		want       string // era, or part of the error
		sent       string
	}{
		{"a modern server", reaction{answer: modernAnswer}, initNo, "modern", "server/discover"},
		{"no such method", reaction{answer: noMethod}, initOK, "legacy", "server/discover initialize"},
		{"not initialized", reaction{answer: `"error":{"code":-32002,"message":"Server not initialized"}`}, initOK, "legacy", "server/discover initialize"},
		{"any other error", reaction{answer: `"error":{"code":-32602,"message":"Invalid request parameters"}`}, initOK, "legacy", "server/discover initialize"},
		{"an empty result", reaction{answer: `"result":{}`}, initOK, "legacy", "server/discover initialize"},
		{"a result of another shape", reaction{answer: `"result":{"supportedVersions":"2026-07-28"}`}, initOK, "legacy", "server/discover initialize"},
		{"only revisions of the other era", reaction{answer: `"result":{"supportedVersions":["2025-11-25"]}`}, initOK, "legacy", "server/discover initialize"},
		{"only revisions to come", reaction{answer: `"result":{"supportedVersions":["2031-01-01"]}`}, initNo, "initialize was refused", "server/discover initialize"},
		{"a revision refused, none of ours named", reaction{answer: `"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2025-11-25"]}}`}, initOK, "legacy", "server/discover initialize"},
		{"a revision refused twice", reaction{answer: refusesRevision}, initOK, "legacy", "server/discover server/discover initialize"},
		{"a revision refused once", reaction{first: refusesRevision, answer: modernAnswer}, initNo, "modern", "server/discover server/discover"},
		{"HTTP 400", reaction{err: &statusError{code: 400}}, initOK, "legacy", "server/discover initialize"},
		{"HTTP 404", reaction{err: &statusError{code: 404}}, initOK, "legacy", "server/discover initialize"},
		{"HTTP 405", reaction{err: &statusError{code: 405}}, initOK, "legacy", "server/discover initialize"},
		{"HTTP 202 without an answer", reaction{err: &statusError{code: 202}}, initOK, "legacy", "server/discover initialize"},
		{"HTTP 401", reaction{err: &statusError{code: 401}}, initOK, "probe: HTTP 401", "server/discover"},
		{"HTTP 403", reaction{err: &statusError{code: 403}}, initOK, "probe: HTTP 403", "server/discover"},
		{"HTTP 429", reaction{err: &statusError{code: 429}}, initOK, "probe: HTTP 429", "server/discover"},
		{"HTTP 500", reaction{err: &statusError{code: 500}}, initOK, "probe: HTTP 500", "server/discover"},
		{"a lost connection", reaction{err: errors.New("lost")}, initOK, "probe: lost", "server/discover"},
		{"both refused", reaction{answer: noMethod}, initNo, "initialize was refused", "server/discover initialize"},
		{"a revision that nobody knows", reaction{answer: noMethod}, reaction{answer: `"result":{"protocolVersion":"1999-01-01"}`}, `revision "1999-01-01"`, "server/discover initialize"},
		{"a handshake without a revision", reaction{answer: noMethod}, reaction{answer: `"result":{}`}, `revision ""`, "server/discover initialize"},
		{"a handshake of another shape", reaction{answer: noMethod}, reaction{answer: `"result":{"protocolVersion":5}`}, "not understood", "server/discover initialize"},
		{"a handshake that is lost", reaction{answer: noMethod}, reaction{err: errors.New("lost")}, "handshake: lost", "server/discover initialize"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := &scriptConn{t: t, script: map[string]reaction{"server/discover": c.discover, "initialize": c.initialize}}
			peer, err := shake(t.Context(), conn, nil)
			var got string
			if err != nil {
				got = err.Error()
			} else {
				got = peer.Era.String()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			sent := conn.methods()
			if peer != nil && peer.Era == wire.Legacy {
				sent = strings.TrimSuffix(sent, ` {"jsonrpc":"2.0","method":"notifications/initialized"}`)
				if sent == conn.methods() {
					t.Error("the server is not told that the handshake is complete")
				}
			}
			if sent != c.sent {
				t.Errorf("sent %q, want %q", sent, c.sent)
			}
			if conn.peer != peer {
				t.Error("the connection was told something else")
			}
		})
	}
}

func TestWhatAPeerTells(t *testing.T) {
	conn := &scriptConn{t: t, script: map[string]reaction{"server/discover": {answer: modernAnswer}, "initialize": {answer: legacyAnswer}}}
	modern, legacy := wire.Modern, wire.Legacy
	p, err := shake(t.Context(), conn, &modern)
	if err != nil || p.Version != wire.Rev20260728 || p.Name != "srv" || p.Software != "9" || p.Instructions != "read me" || !p.Has("tools") || p.Has("tools", "listChanged") {
		t.Errorf("modern: %+v, %v", p, err)
	}
	p, err = shake(t.Context(), conn, &legacy)
	if err != nil || p.Version != wire.Rev20250618 || p.Name != "old" || p.Software != "2" || p.Instructions != "hello" || !p.Has("tools", "listChanged") || p.Has("prompts") {
		t.Errorf("legacy: %+v, %v", p, err)
	}
}

func TestCapabilitiesOfAPeer(t *testing.T) {
	p := &Peer{Capabilities: []byte(`{"tools":{"listChanged":true,"off":false,"nothing":null},"logging":{},"odd":3}`)}
	for path, want := range map[string]bool{
		"tools": true, "tools listChanged": true, "tools off": false, "tools nothing": false, "tools other": false,
		"logging": true, "logging x": false, "odd": true, "odd x": false, "prompts": false,
	} {
		if got := p.Has(strings.Fields(path)...); got != want {
			t.Errorf("Has(%s) = %v", path, got)
		}
	}
	if new(Peer).Has("tools") || p.Has() {
		t.Error("what was never said is declared")
	}
}

// A server that does not answer the probe is asked to initialize after three seconds, on the same connection, and
// whatever it answers to the probe later does not matter any more.
func TestAServerThatDoesNotAnswerTheProbe(t *testing.T) {
	for _, c := range []struct {
		name       string
		discover   *reaction
		initialize *reaction
		want       string
		took       time.Duration
	}{
		{"it never does", nil, &reaction{answer: legacyAnswer}, "legacy", 3 * time.Second},
		{"it does both, slowly", &reaction{after: 4 * time.Second, answer: modernAnswer}, &reaction{after: 2 * time.Second, answer: legacyAnswer}, "legacy", 5 * time.Second},
		{"it refuses the probe late", &reaction{after: 4 * time.Second, answer: noMethod}, &reaction{after: 2 * time.Second, answer: legacyAnswer}, "legacy", 5 * time.Second},
		{"a modern one that is slow", &reaction{after: 9 * time.Second, answer: modernAnswer}, &reaction{after: 6 * time.Second, answer: noMethod}, "modern", 9 * time.Second},
		{"it refuses both, slowly", &reaction{after: 9 * time.Second, answer: noMethod}, &reaction{after: time.Second, answer: noMethod}, "initialize was refused", 9 * time.Second},
		{"it is lost meanwhile", nil, &reaction{err: errors.New("lost")}, "handshake: lost", 3 * time.Second},
		{"it never says anything", nil, nil, "too long", 15 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := &scriptConn{t: t, script: map[string]reaction{}}
				if c.discover != nil {
					conn.script["server/discover"] = *c.discover
				}
				if c.initialize != nil {
					conn.script["initialize"] = *c.initialize
				}
				ctx, cancel := context.WithTimeoutCause(t.Context(), 15*time.Second, errors.New("too long"))
				defer cancel()
				began := time.Now()
				peer, err := shake(ctx, conn, nil)
				var got string
				if err != nil {
					got = err.Error()
				} else {
					got = peer.Era.String()
				}
				if !strings.Contains(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
				if !strings.HasPrefix(conn.methods(), "server/discover initialize") {
					t.Errorf("sent %q", conn.methods())
				}
				if peer != nil && conn.peer != peer {
					t.Errorf("the connection speaks %v", conn.peer.Era)
				}
			})
		})
	}
}

// A server that asks something before it has answered must not wait for ever.
func TestRequestsDuringTheHandshakeAreRefused(t *testing.T) {
	conn := &scriptConn{t: t, script: map[string]reaction{"initialize": {answer: legacyAnswer, before: `{"jsonrpc":"2.0","id":"r","method":"roots/list"}`}}}
	legacy := wire.Legacy
	if _, err := shake(t.Context(), conn, &legacy); err != nil {
		t.Fatal(err)
	}
	if len(conn.responded) != 1 || !strings.Contains(conn.responded[0], "-32601") {
		t.Errorf("the server was told %q", conn.responded)
	}
	conn.notify = errors.New("cannot")
	if _, err := shake(t.Context(), conn, &legacy); err == nil {
		t.Error("a handshake that could not be completed succeeds")
	}
}
