package proxy

import (
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// A library of both eras may let an old server end a call with a demand for more input, as only new ones do: it has asked
// its client for the first round itself, and has no words of the old era for the next. A modern client knows how to go on.
// The server's state goes to it sealed, as all states of ours, and comes back to the server as it was.

// demandsInput says whether a result demands more input of the client. In the old era no result says of itself that it
// does; one that has questions in it is no other.
func (c *call) demandsInput(f *wire.Frame) bool {
	kind := f.Body.Get(f.Raw, "resultType")
	if kind.Ok() || c.peer.Era == wire.Modern {
		return string(kind.Of(f.Raw)) == typeInput
	}
	requests, ok := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, requestsMember))
	return ok && len(requests.Members) > 0
}

// keepTheirs puts a state of ours in the place of the upstream's.
func (c *call) keepTheirs(p *wire.Patch, f *wire.Frame) {
	state := f.Body.Get(f.Raw, stateMember)
	ours := requestState{kind: stateTheirs, theirs: state.Of(f.Raw)}
	expires := time.Now().Add(c.item.Upstream.Config().Elicitation.Timeout)
	sealed := wire.AppendString(nil, c.p.parked.seal(ours, expires, c.binding()))
	if state.Ok() {
		p.Replace(state, sealed)
	} else {
		p.Insert(&f.Body, stateMember, sealed)
	}
}

// bringTheirs puts the upstream's state back.
func (c *call) bringTheirs(p *wire.Patch) {
	f := c.req.Frame
	if len(c.theirs.theirs) == 0 {
		p.Remove(&f.Body, stateMember)
		return
	}
	p.Replace(f.Body.Get(f.Raw, stateMember), c.theirs.theirs)
}
