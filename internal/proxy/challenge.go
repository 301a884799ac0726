package proxy

import (
	"errors"
	"fmt"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// A server that gets the credentials of its callers may ask a caller for one. On the endpoint of a single server its
// question is passed on, so that the client can sign in there. Where there are several, a client would take it for the
// question of them all: it gets an error that says where to sign in.

// asks says whether a challenge is passed on as it is to clients of this view.
func (v *view) asks(u *upstream.Upstream) bool { return len(v.ups) == 1 && v.ups[0] == u }

// denied answers for a credential that the upstream did not take.
func (c *call) denied(ch *upstream.Challenge, err error) (Answer, Outcome) {
	u := c.item.Upstream
	relayed := c.p.view(c.req.Caller).asks(u)
	if !relayed {
		err = fmt.Errorf("%w; sign in at %s", err, serverPath(u.ID))
	}
	a, o := pathFault(c.rawID(), c.up, c.item.Wire, c.requestID(), &upstream.Error{Upstream: u.ID, Reason: upstream.ReasonDenied, Err: err})
	if relayed {
		a.challenge(ch)
	}
	return a, o
}

// unauthorized is the HTTP status that asks for a credential.
const unauthorized = 401

// asksForCredential gives the answer for a caller without a credential, or with one that is not taken, on the endpoint of a
// server that wants one.
func (c *call) asksForCredential() (Answer, bool) {
	return c.p.asksForCredential(c.req.Caller, c.rawID(), c.method, c.requestID)
}

func (p *Proxy) asksForCredential(c *Caller, id []byte, method string, requestID func() string) (Answer, bool) {
	v := p.view(c)
	if len(v.ups) != 1 {
		return Answer{}, false
	}
	u := v.ups[0]
	ch := p.asked(u, c)
	if ch == nil {
		return Answer{}, false
	}
	err := &upstream.Error{Upstream: u.ID, Reason: upstream.ReasonDenied, Err: errCredential}
	a, _ := pathFault(id, u.ID, method, requestID(), err)
	a.challenge(ch)
	return a, a.Status != 0
}

var errCredential = errors.New("the server wants a credential of the client's own (Authorization), which is passed on to it")

// asked is the challenge that waits for a caller; nil for none.
func (p *Proxy) asked(u *upstream.Upstream, c *Caller) *upstream.Challenge {
	if u.Credentials(c.Headers) == nil {
		return u.AsksCallers()
	}
	if own, ok := c.ownOf(u); ok {
		return upstream.ChallengeOf(p.overlays.failure(own.key))
	}
	return nil
}

// Asks gives the answer to a request that the session room answers itself, where the server behind an endpoint of one server
// is known to want a credential that this caller does not bring.
func (p *Proxy) Asks(c *Caller, id []byte, method string) (Answer, bool) {
	return p.asksForCredential(c, id, method, p.requestID)
}

// serverPath is the endpoint of one server.
func serverPath(id string) string { return "/servers/" + id + "/mcp" }

// challenge lets an answer carry the question for a credential, where HTTP can still bring it. One that forbids without
// saying what it wants is no question.
func (a *Answer) challenge(ch *upstream.Challenge) {
	switch {
	case len(ch.Authenticate) > 0:
		a.Status, a.Authenticate = ch.Status, ch.Authenticate
	case ch.Status == unauthorized:
		a.Status, a.Authenticate = ch.Status, []string{"Bearer"} // RFC 9110, section 15.5.2 demands one
	}
}
