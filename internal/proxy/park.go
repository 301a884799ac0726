package proxy

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// A legacy upstream asks while it works on a call; a modern client cannot be asked, but can be told that input is
// required, and then calls again. In between the call is parked: it keeps its slot and its exchange with the upstream,
// and what the client brings back leads to it (2026-07-28, basic/patterns/mrtr).

// parkedCall is a call that waits for its client to come back.
type parkedCall struct {
	c     *call
	id    [16]byte
	round uint32 // of the state that leads to it now
	// questions are those of the upstream that wait, by the key that the client knows them by.
	keys      []string
	questions map[string]*wire.Frame
	timer     *time.Timer
	detach    func() bool
}

// binding is what a state is bound to: who may bring it, and with which request.
func (c *call) binding() []byte {
	f := c.req.Frame
	h := sha256.New()
	for _, part := range [][]byte{[]byte(c.req.Caller.Principal), []byte(c.credentials()), []byte(c.req.Caller.View), []byte(f.Method), []byte(c.item.Name), f.Body.Get(f.Raw, "arguments").Of(f.Raw)} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return h.Sum(nil)
}

// mayPark gives a call that can be parked a life of its own: it does not end with the HTTP request that brought it.
// Completion is the one request that goes to upstreams and knows no further rounds.
func (c *call) mayPark() {
	if c.req.Caller.Era != wire.Modern || c.peer.Era != wire.Legacy && !c.followable() || c.req.Caller.Caps == 0 || c.method == "completion/complete" {
		return
	}
	outer := c.ctx
	ctx, cancel := context.WithCancelCause(c.p.base)
	c.ctx, c.cancel = ctx, cancel
	c.link(outer)
	c.longest.Stop()
	c.longest = time.AfterFunc(c.item.Upstream.Config().MaxCallTime, func() { cancel(CauseMaxTime) })
}

// link lets the end of a request end the call.
func (c *call) link(outer context.Context) {
	cancel := c.cancel
	c.unlink = context.AfterFunc(outer, func() { cancel(context.Cause(outer)) })
}

// park keeps the call and answers its request with what the upstream asks. ok is false where it cannot be kept; then the
// questions have been refused.
func (c *call) park() (_ Answer, ok bool) {
	pk := &parkedCall{c: c, questions: map[string]*wire.Frame{}}
	_, _ = rand.Read(pk.id[:]) // never fails
	asked := c.questions
	c.questions = nil
	c.clock.hold()
	if !c.p.parked.await(c.ctx, c) {
		c.clock.free()
		c.p.count.Limit(count.LimitParked)
		c.p.parked.refuse(c.up, len(asked))
		for _, f := range asked {
			c.refuseAsk(f)
		}
		return Answer{}, false
	}
	for i, f := range asked {
		key := "q" + strconv.Itoa(i+1)
		pk.keys = append(pk.keys, key)
		pk.questions[key] = f
	}
	return pk.wait(), true
}

// wait puts a call aside until its client comes back, its time is over or it ends otherwise.
func (pk *parkedCall) wait() Answer {
	c := pk.c
	pk.round++
	timeout := c.item.Upstream.Config().Elicitation.Timeout
	state := c.p.parked.seal(requestState{kind: stateParked, id: pk.id, round: pk.round}, time.Now().Add(timeout), c.binding())
	answer := Result(c.rawID(), pk.inputRequired(state))
	c.parked = true
	c.unlink()
	c.publish = func() { c.p.parked.publish(pk, timeout) }
	return answer
}

// inputRequired is the result that tells a client what is asked.
func (pk *parkedCall) inputRequired(state string) []byte {
	c := pk.c
	b := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, key := range pk.keys {
		if i > 0 {
			b = append(b, ',')
		}
		q := pk.questions[key]
		b = wire.AppendString(b, key)
		b = wire.AppendString(append(b, `:{"method":`...), q.Method)
		params := c.questioner().params(q.Method, q.Raw, q.Params, q.Body)
		if len(params) == 0 {
			params = []byte("{}") // roots/list needs none, but some clients fail on a question without
		}
		b = append(append(append(b, `,"params":`...), params...), '}')
	}
	b = wire.AppendString(append(b, `},"requestState":`...), state)
	b = append(b, `,"_meta":{"`+wire.MetaServerInfo+`":`...)
	return append(append(b, c.p.ServerInfo(c.req.Caller.View)...), "}}"...)
}

// abandon ends a call whose client has not come back in this round, or that has ended while it was parked. The upstream
// is told what it asked for in vain.
func (pk *parkedCall) abandon(round uint32, cause Cause) {
	c := pk.c
	if c.p.parked.take(pk.id, round) == nil {
		return
	}
	outcome := Cancelled
	if cause == CauseClientGone {
		outcome = Timeout
	}
	for _, key := range pk.keys {
		q := pk.questions[key]
		c.p.metrics.serverRequest(c.up, q.Method, outcome)
		c.lease.Reply(c.x, abandoned(q))
	}
	c.cancel(cause)
	c.p.metrics.cancelled(c.up, cause)
	c.lease.Cancel(c.upID, cause.Error())
	c.stopReading()
	c.x.Close(true)
	c.p.parked.free(c)
	c.release()
}

// abandoned is the answer to a question whose person never came.
func abandoned(q *wire.Frame) []byte {
	member := `"error":{"code":-1,"message":"nobody answered in time"}`
	if q.Method == methodElicit {
		member = `"result":{"action":"cancel"}`
	}
	out := append([]byte(`{"jsonrpc":"2.0","id":`), q.ID.Of(q.Raw)...)
	return append(append(append(out, ','), member...), '}')
}

// resume goes on with a parked call when its client brings what was asked. ok is false where the request brings no state
// of ours, or one that only says to begin anew. A modern upstream makes its own states, and one that looks like ours may be
// of another proxy behind it; those of ours are of tasks that are followed for the client.
func (c *call) resume() (_ Answer, _ Outcome, ok bool) {
	f := c.req.Frame
	span := f.Body.Get(f.Raw, stateMember)
	peer := c.item.Upstream.Peer()
	if c.req.Caller.Era != wire.Modern || !span.Ok() {
		return Answer{}, OK, false
	}
	state, _ := wire.DecodeString(span.Of(f.Raw))
	if peer == nil && !strings.HasPrefix(state, statePrefix) {
		return Answer{}, OK, false // the upstream has not been there yet; it will tell whether it knows it
	}
	opened, good := c.p.parked.open(state, c.binding())
	switch {
	case !good && peer != nil && peer.Era == wire.Modern:
		return Answer{}, OK, false
	case !good:
		a, o := c.badState("is none that is valid for this request now")
		return a, o, true
	case opened.kind == stateTheirs:
		c.theirs = &opened
		return Answer{}, OK, false
	case opened.kind == stateAgain && declined(f):
		text := c.up + "::" + c.item.Wire + ": the client declined to visit the pages that the server asks for"
		return Failure(c.rawID(), wire.CodeInternal, text, nil), RPCError, true
	case opened.kind == stateAgain:
		return Answer{}, OK, false
	}
	a, o := c.rejoin(opened.id, opened.round)
	return a, o, true
}

// badState refuses a request because of the state it brings.
func (c *call) badState(why string) (Answer, Outcome) {
	return Failure(c.rawID(), wire.CodeInvalidParams, c.method+": params.requestState "+why+"; make the request anew without it", nil), Invalid
}

// rejoin brings the answers of the client to the parked call. A state leads to it once: the same answers again wait for
// what the first ones bring, and others come too late.
func (c *call) rejoin(id [16]byte, round uint32) (Answer, Outcome) {
	f := c.req.Frame
	retry := retryKey{id, round}
	join, first := c.p.parked.join(retry, sha256.Sum256(f.Body.Get(f.Raw, answersMember).Of(f.Raw)))
	switch {
	case join == nil:
		return c.badState("has been used with other answers")
	case !first:
		return c.await(join)
	}
	pk := c.p.parked.take(id, round)
	if pk == nil {
		c.p.parked.leave(retry, join, nil, 0)
		return c.badState("leads to what is over")
	}
	a, o := pk.goOn(c)
	if publish := pk.c.publish; publish != nil {
		pk.c.publish = nil
		publish() // before anybody gets the state that leads there
	}
	c.p.parked.leave(retry, join, a.Bytes(), a.Code)
	return a, o
}

// await gives a retry that came twice the answer of the first.
func (c *call) await(j *joinedRetry) (Answer, Outcome) {
	select {
	case <-j.done:
	case <-c.ctx.Done():
		var cause Cause
		if errors.As(context.Cause(c.ctx), &cause) && cause.outcome() == Uncertain {
			return pathFault(c.rawID(), c.up, c.item.Wire, c.requestID(), cause)
		}
		return Answer{Ended: true}, Cancelled
	}
	f, err := wire.Parse(append([]byte(nil), j.frame...), wire.Upstream, wire.Limits{})
	if err != nil {
		return c.badState("has been used")
	}
	a := Whole(withID(f, c.rawID()))
	a.Code = j.code
	return a, OK
}

// goOn brings the client's answers to the upstream and follows the call on behalf of the new request.
func (pk *parkedCall) goOn(now *call) (Answer, Outcome) {
	c := pk.c
	f := now.req.Frame
	c.parked = false
	c.repeated = true // what a person has been asked for is not asked again
	c.req, c.began, c.id = now.req, now.began, now.id
	c.token = nil
	if token := f.Meta.Get(f.Raw, "progressToken"); token.Ok() {
		c.token = append([]byte(nil), token.Of(f.Raw)...)
	}
	c.link(now.ctx)
	answers, _ := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, answersMember))
	var missing []string
	for _, key := range pk.keys {
		q := pk.questions[key]
		v := answers.Get(f.Raw, key)
		if !v.Ok() {
			missing = append(missing, key)
			continue
		}
		c.deliver(q, v.Of(f.Raw))
		delete(pk.questions, key)
	}
	if pk.keys = missing; len(missing) > 0 {
		return pk.wait(), OK // what is missing is asked again
	}
	c.clock.free()
	c.p.parked.free(c)
	defer func() {
		if !c.parked {
			c.release()
		}
	}()
	r, a, o := c.follow()
	if r == nil {
		return a, o
	}
	return c.result(r)
}

// deliver sends a client's answer up.
func (c *call) deliver(q *wire.Frame, result []byte) {
	outcome := OK
	if q.Method == methodElicit && !acceptable(q.Body.Get(q.Raw, "requestedSchema").Of(q.Raw), result) {
		outcome, result = Invalid, []byte(`{"action":"decline"}`)
	}
	c.p.metrics.serverRequest(c.up, q.Method, outcome)
	out := append([]byte(`{"jsonrpc":"2.0","id":`), q.ID.Of(q.Raw)...)
	out = append(append(out, `,"result":`...), result...)
	c.lease.Reply(c.x, append(out, '}'))
}
