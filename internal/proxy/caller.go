package proxy

import (
	"context"
	"errors"
	"strconv"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Caller is who makes a request, as far as the middle has to know. It is immutable while a request runs.
type Caller struct {
	Era     wire.Era
	Version string // the negotiated or stated revision
	View    string // which selection of the catalog: see ViewKey
	// Principal is who the client authenticated as; empty for anybody.
	Principal string
	// Unit tells this caller's connections apart at upstreams that are not shared; empty for nobody in particular.
	Unit string
	// Caps is what the client can be asked for.
	Caps Caps
	// LogLevel is the least level that the client asked for, in this request or for its session; empty for no log messages.
	LogLevel string
	// Headers are those that came with the request, by their canonical names; nil where the transport has none. Only what the
	// configuration of an upstream names is taken from them.
	Headers map[string][]string

	own []owned // the overlays that it may have
}

// Request is one request of a client.
type Request struct {
	Caller *Caller
	Frame  *wire.Frame
	Sink   Sink
	// Subscriptions are those of a legacy client; nil where it has none.
	Subscriptions *Subscriptions
	// SetLogLevel keeps the level that a legacy client sets; nil where there is nothing to keep it in.
	SetLogLevel func(level string)
	// Param gives the value of a Mcp-Param header, decoded, and whether it is there and well-formed; nil where the
	// transport has no headers.
	Param func(name string) (value string, ok bool)
}

// Sink takes what belongs to a request before its answer.
type Sink interface {
	// Notify sends a notification to the client. The frame may be reused after it returns.
	Notify(frame []byte)
	// Ask brings a request of an upstream to a legacy client, on the stream of the request that caused it, and waits for
	// the client's answer, which is a response or an error frame. It fails with ErrCannotAsk where there is no stream to
	// the client, and with the cause of ctx where that ends first; the client is then told that the question is over.
	Ask(ctx context.Context, method string, params []byte) (*wire.Frame, error)
}

// ErrCannotAsk means that nothing leads to the client on which it could be asked.
var ErrCannotAsk = errors.New("the client cannot be asked: it takes no event stream")

// ViewAll is the view of everything.
const ViewAll = ""

// ServerView is the view of one upstream by its wire names.
func ServerView(id string) string { return "server/" + id }

// ProfileView is the view of a profile.
func ProfileView(name string) string { return "profile/" + name }

// unit is what upstreams know the caller by. A session has an end that upstreams are told of, a principal has none.
func (c *Caller) unit() upstream.Unit {
	return upstream.Unit{Key: c.Unit, Ends: c.Era == wire.Legacy, Principal: c.Principal}
}

// source is the connection of an upstream that the caller's calls share with those of others.
func (c *Caller) source(u *upstream.Upstream) source {
	return source{up: u, creds: keyOf(u.Bound(c.Headers))}
}

// credentials names what the owner of the item gets of the caller's credentials; empty for nothing.
func (c *call) credentials() string {
	return keyOf(c.item.Upstream.Credentials(c.req.Caller.Headers))
}

// unit is the caller's, with what is known of the call.
func (c *call) unit() upstream.Unit {
	u := c.req.Caller.unit()
	u.Credentials = c.item.Upstream.Credentials(c.req.Caller.Headers)
	cfg := c.item.Upstream.Config()
	u.Beside = cfg.TrustAnnotations && c.item.offer.readOnly
	if peer := c.item.Upstream.Peer(); cfg.Sharing == config.SharingSession && (peer == nil || peer.Era == wire.Legacy) {
		caps := c.req.Caller.Caps
		u.Capabilities = string(caps.legacy())
		if u.Key != "" && !u.Ends {
			u.Key += "/" + strconv.FormatUint(uint64(caps), 16) // a principal may use several clients, which differ
		}
	}
	return u
}
