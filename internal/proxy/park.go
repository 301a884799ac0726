package proxy

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// A legacy upstream asks while it works on a call; a modern client cannot be asked, but can be told that input is
// required, and then calls again. In between the call is parked: it keeps its slot and its exchange with the upstream,
// and what the client brings back leads to it (2026-07-28, basic/patterns/mrtr).

// statePrefix marks the request state that is ours; any other belongs to an upstream.
const statePrefix = "mcp-proxy."

const (
	maxParked             = 10_000
	maxParkedPerPrincipal = 100
	maxParkedPerUpstream  = 100
)

// What a request state of ours stands for.
const (
	stateParked byte = iota + 1
	stateAgain       // nothing is kept: the call is simply made again
)

// parkedCall is a call that waits for its client to come back.
type parkedCall struct {
	c     *call
	id    [16]byte
	round uint32
	// questions are those of the upstream that wait, by the key that the client knows them by.
	keys      []string
	questions map[string]*wire.Frame
	timer     *time.Timer
	detach    func() bool
}

// parkings keeps the parked calls and seals what leads to them. Its key dies with the process, as they do.
type parkings struct {
	aead cipher.AEAD

	mu          sync.Mutex
	calls       map[[16]byte]*parkedCall
	byPrincipal map[string]int
	byUpstream  map[string]int
	// joined are the retries that run now: the same one again waits for the same answer.
	joined map[string]*joinedRetry
}

type joinedRetry struct {
	done  chan struct{}
	frame []byte
	code  int
}

func newParkings() *parkings {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("proxy: " + err.Error()) // the key has the right length
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic("proxy: " + err.Error())
	}
	return &parkings{aead: aead, calls: map[[16]byte]*parkedCall{}, byPrincipal: map[string]int{}, byUpstream: map[string]int{}, joined: map[string]*joinedRetry{}}
}

// binding is what a state is bound to: who may bring it, and with which request.
func (c *call) binding() []byte {
	f := c.req.Frame
	h := sha256.New()
	for _, part := range [][]byte{[]byte(c.req.Caller.Principal), []byte(c.req.Caller.View), []byte(f.Method), []byte(c.item.Name), f.Body.Get(f.Raw, "arguments").Of(f.Raw)} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return h.Sum(nil)
}

func (k *parkings) seal(kind byte, id [16]byte, round uint32, expires time.Time, binding []byte) string {
	plain := append([]byte{kind}, id[:]...)
	plain = binary.BigEndian.AppendUint32(plain, round)
	plain = binary.BigEndian.AppendUint64(plain, uint64(expires.Unix()))
	nonce := make([]byte, k.aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return statePrefix + base64.RawURLEncoding.EncodeToString(k.aead.Seal(nonce, nonce, plain, binding))
}

func (k *parkings) open(state string, binding []byte) (kind byte, id [16]byte, round uint32, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(state, statePrefix))
	if err != nil || len(b) < k.aead.NonceSize() {
		return 0, id, 0, false
	}
	plain, err := k.aead.Open(nil, b[:k.aead.NonceSize()], b[k.aead.NonceSize():], binding)
	if err != nil || len(plain) != 1+16+4+8 || time.Now().Unix() > int64(binary.BigEndian.Uint64(plain[21:])) {
		return 0, id, 0, false
	}
	copy(id[:], plain[1:])
	return plain[0], id, binary.BigEndian.Uint32(plain[17:]), true
}

// mayPark gives a call that can be parked a life of its own: it does not end with the HTTP request that brought it.
func (c *call) mayPark() {
	if c.req.Caller.Era != wire.Modern || c.peer.Era != wire.Legacy || c.req.Caller.Caps == 0 {
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
// question has been refused.
func (c *call) park(f *wire.Frame) (_ Answer, ok bool) {
	pk := &parkedCall{c: c, keys: []string{"q1"}, questions: map[string]*wire.Frame{"q1": f}}
	_, _ = rand.Read(pk.id[:]) // never fails
	if !c.p.parked.reserve(c) {
		c.p.count.Limit(count.LimitParked)
		c.refuseAsk(f)
		return Answer{}, false
	}
	c.clock.hold()
	return c.p.parked.wait(pk), true
}

// reserve counts a call that is to be parked; false over a bound. A slot that serves one call at a time is not given away
// for the last of them.
func (k *parkings) reserve(c *call) bool {
	cfg := c.item.Upstream.Config()
	limit := maxParkedPerUpstream
	if cfg.Sharing == config.SharingCall {
		limit = max(1, cfg.Instances-1)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	who := c.req.Caller.Principal
	if len(k.calls) >= maxParked || k.byPrincipal[who] >= maxParkedPerPrincipal || k.byUpstream[c.up] >= limit {
		return false
	}
	k.byPrincipal[who]++
	k.byUpstream[c.up]++
	return true
}

func (k *parkings) free(c *call) {
	k.mu.Lock()
	defer k.mu.Unlock()
	who := c.req.Caller.Principal
	if k.byPrincipal[who]--; k.byPrincipal[who] <= 0 {
		delete(k.byPrincipal, who)
	}
	if k.byUpstream[c.up]--; k.byUpstream[c.up] <= 0 {
		delete(k.byUpstream, c.up)
	}
}

// wait puts a call aside until its client comes back, its time is over or it ends otherwise.
func (k *parkings) wait(pk *parkedCall) Answer {
	c := pk.c
	pk.round++
	timeout := c.item.Upstream.Config().Elicitation.Timeout
	state := k.seal(stateParked, pk.id, pk.round, time.Now().Add(timeout), c.binding())
	answer := Result(c.rawID(), pk.inputRequired(c, state))
	c.parked = true
	if c.unlink != nil {
		c.unlink()
	}
	c.publish = func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.calls[pk.id] = pk
		pk.timer = time.AfterFunc(timeout, func() { k.abandon(pk, true) })
		pk.detach = context.AfterFunc(c.ctx, func() { k.abandon(pk, false) })
	}
	return answer
}

// inputRequired is the result that tells a client what is asked.
func (pk *parkedCall) inputRequired(c *call, state string) []byte {
	b := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, key := range pk.keys {
		if i > 0 {
			b = append(b, ',')
		}
		q := pk.questions[key]
		b = wire.AppendString(b, key)
		b = wire.AppendString(append(b, `:{"method":`...), q.Method)
		if params := c.downParams(q.Method, q.Raw, q.Params, q.Body); len(params) > 0 {
			b = append(append(b, `,"params":`...), params...)
		}
		b = append(b, '}')
	}
	b = wire.AppendString(append(b, `},"requestState":`...), state)
	b = append(b, `,"_meta":{"`+wire.MetaServerInfo+`":`...)
	return append(append(b, c.p.ServerInfo(c.req.Caller.View)...), "}}"...)
}

// take gives the parked call that a state leads to, and takes it out; nil where it is not there any more.
func (k *parkings) take(id [16]byte, round uint32) *parkedCall {
	k.mu.Lock()
	defer k.mu.Unlock()
	pk := k.calls[id]
	if pk == nil || pk.round != round {
		return nil
	}
	pk.timer.Stop()
	pk.detach()
	delete(k.calls, id)
	return pk
}

// abandon ends a call whose client has not come back, or that has ended while it was parked. The upstream is told what it
// asked for in vain.
func (k *parkings) abandon(pk *parkedCall, late bool) {
	if k.take(pk.id, pk.round) == nil {
		return
	}
	c := pk.c
	cause := CauseClientGone
	if late {
		for _, q := range pk.questions {
			c.p.metrics.serverRequest(c.up, q.Method, Timeout)
			c.lease.Reply(c.x, abandoned(q))
		}
		c.cancel(cause)
	} else if ended, ok := context.Cause(c.ctx).(Cause); ok {
		cause = ended
	}
	c.p.metrics.cancelled(c.up, cause)
	c.lease.Cancel(c.upID, cause.Error())
	c.x.Close(true)
	k.free(c)
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

// stop ends all parked calls.
func (k *parkings) stop() {
	k.mu.Lock()
	var all []*parkedCall
	for _, pk := range k.calls {
		all = append(all, pk)
	}
	k.mu.Unlock()
	for _, pk := range all {
		pk.c.cancel(CauseShutdown)
		k.abandon(pk, false)
	}
}

// resume goes on with a parked call when its client brings what was asked. ok is false where the request brings no state
// of ours, or one that only says to begin anew.
func (c *call) resume() (_ Answer, _ Outcome, ok bool) {
	f := c.req.Frame
	state, _ := wire.DecodeString(f.Body.Get(f.Raw, stateMember).Of(f.Raw))
	if c.req.Caller.Era != wire.Modern || !strings.HasPrefix(state, statePrefix) {
		return Answer{}, OK, false
	}
	kind, id, round, good := c.p.parked.open(state, c.binding())
	switch {
	case !good:
		return Failure(c.rawID(), wire.CodeInvalidParams, f.Method+": params.requestState is none that is valid for this request now; make the request anew without it", nil), Invalid, true
	case kind == stateAgain:
		return Answer{}, OK, false
	}
	name := hex.EncodeToString(id[:]) + "/" + strconv.FormatUint(uint64(round), 10)
	join, first := c.p.parked.join(name)
	if !first {
		return c.await(join)
	}
	pk := c.p.parked.take(id, round)
	if pk == nil {
		c.p.parked.leave(name, join, nil, 0)
		return Failure(c.rawID(), wire.CodeInvalidParams, f.Method+": what params.requestState leads to is over; make the request anew without it", nil), Invalid, true
	}
	a, o := pk.goOn(c)
	c.publish, pk.c.publish = pk.c.publish, nil
	c.p.parked.leave(name, join, a.Bytes(), a.Code)
	return a, o, true
}

// join notes a retry under way; first is false where the same one is running already.
func (k *parkings) join(name string) (j *joinedRetry, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if j := k.joined[name]; j != nil {
		return j, false
	}
	j = &joinedRetry{done: make(chan struct{})}
	k.joined[name] = j
	return j, true
}

// joinedFor is how long the answer of a retry is kept for the same retry again.
const joinedFor = 30 * time.Second

func (k *parkings) leave(name string, j *joinedRetry, frame []byte, code int) {
	j.frame, j.code = append([]byte(nil), frame...), code
	close(j.done)
	time.AfterFunc(joinedFor, func() {
		k.mu.Lock()
		delete(k.joined, name)
		k.mu.Unlock()
	})
}

// await gives a retry that came twice the answer of the first.
func (c *call) await(j *joinedRetry) (Answer, Outcome, bool) {
	select {
	case <-j.done:
	case <-c.ctx.Done():
		return Answer{Ended: true}, Cancelled, true
	}
	f, err := wire.Parse(append([]byte(nil), j.frame...), wire.Upstream, wire.Limits{})
	if err != nil {
		return Failure(c.rawID(), wire.CodeInvalidParams, c.method+": params.requestState has been used", nil), Invalid, true
	}
	a := Whole(withID(f, c.rawID()))
	a.Code = j.code
	return a, OK, true
}

// goOn brings the client's answers to the upstream and follows the call on behalf of the new request.
func (pk *parkedCall) goOn(now *call) (Answer, Outcome) {
	c := pk.c
	f := now.req.Frame
	c.parked = false
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
		return c.p.parked.wait(pk), OK // what is missing is asked again
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

// urlsNeeded turns a legacy upstream's error that says which pages must be visited first into what a modern client knows:
// input that is required. When it comes back, the call is simply made again.
func (c *call) urlsNeeded(f *wire.Frame) (Answer, bool) {
	obj, _ := wire.ObjectAt(f.Raw, f.Error)
	if c.req.Caller.Era != wire.Modern || c.peer.Era != wire.Legacy || string(obj.Get(f.Raw, "code").Of(f.Raw)) != strconv.Itoa(wire.CodeURLElicitation) || c.req.Caller.Caps&CapElicitURL == 0 {
		return Answer{}, false
	}
	data, _ := wire.ObjectAt(f.Raw, obj.Get(f.Raw, "data"))
	b := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, e := range wire.Elements(f.Raw, data.Get(f.Raw, "elicitations")) {
		params, ok := wire.ObjectAt(f.Raw, e)
		if !ok {
			continue
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `"url`+strconv.Itoa(i+1)+`":{"method":"elicitation/create","params":`...)
		b = append(append(b, c.downParams(methodElicit, f.Raw, e, params)...), '}')
	}
	expires := time.Now().Add(c.item.Upstream.Config().Elicitation.Timeout)
	state := c.p.parked.seal(stateAgain, [16]byte{}, 0, expires, c.binding())
	b = wire.AppendString(append(b, `},"requestState":`...), state)
	return Result(c.rawID(), append(b, '}')), true
}
