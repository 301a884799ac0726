package proxy

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// statePrefix marks the request state that is ours.
const statePrefix = "mcp-proxy."

const (
	maxParked             = 10_000
	maxParkedPerPrincipal = 100
	maxParkedPerUpstream  = 100
	// joinedFor is how long the answer of a retry is kept for the same retry again.
	joinedFor = 30 * time.Second
	// parkPatience is how long a question waits for others to be answered where as many calls are parked as may be.
	parkPatience = 5 * time.Second
	// maxJoinedBytes bounds what is kept so in all.
	maxJoinedBytes = 16 << 20
)

// What a request state of ours stands for.
const (
	stateParked byte = iota + 1
	stateAgain       // nothing is kept: the call is simply made again
	stateTheirs      // the call is made again with the upstream's own state
)

// requestState is what is sealed in a request state of ours.
type requestState struct {
	kind   byte
	id     [16]byte // of the parked call, and its round
	round  uint32
	theirs []byte // the upstream's own state, as it wrote it; empty for none
}

// parkings keeps the parked calls and seals what leads to them. Its key dies with the process, as they do.
type parkings struct {
	aead cipher.AEAD

	mu          sync.Mutex
	calls       map[[16]byte]*parkedCall
	reserved    int
	byPrincipal map[string]int
	byUpstream  map[string]int
	freed       chan struct{}  // closed, and replaced, when a place becomes free
	refused     map[string]int // questions for which there was no place, by upstream
	// joined are the retries that run now, and the answers of the last ones: the same retry again gets the same answer.
	joined map[retryKey]*joinedRetry
	kept   int // bytes of the answers
}

type retryKey struct {
	id    [16]byte
	round uint32
}

type joinedRetry struct {
	answers [32]byte // the hash of what the client brought
	done    chan struct{}
	frame   []byte
	code    int
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
	return &parkings{aead: aead, calls: map[[16]byte]*parkedCall{}, byPrincipal: map[string]int{}, byUpstream: map[string]int{}, refused: map[string]int{}, freed: make(chan struct{}), joined: map[retryKey]*joinedRetry{}}
}

func (k *parkings) seal(s requestState, expires time.Time, binding []byte) string {
	plain := append([]byte{s.kind}, s.id[:]...)
	plain = binary.BigEndian.AppendUint32(plain, s.round)
	plain = binary.BigEndian.AppendUint64(plain, uint64(expires.Unix()))
	plain = append(plain, s.theirs...)
	nonce := make([]byte, k.aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return statePrefix + base64.RawURLEncoding.EncodeToString(k.aead.Seal(nonce, nonce, plain, binding))
}

func (k *parkings) open(state string, binding []byte) (s requestState, ok bool) {
	text, ours := strings.CutPrefix(state, statePrefix)
	b, err := base64.RawURLEncoding.DecodeString(text)
	if !ours || err != nil || len(b) < k.aead.NonceSize() {
		return s, false
	}
	plain, err := k.aead.Open(nil, b[:k.aead.NonceSize()], b[k.aead.NonceSize():], binding)
	if err != nil || len(plain) < 1+16+4+8 || time.Now().Unix() > int64(binary.BigEndian.Uint64(plain[21:])) {
		return s, false
	}
	s.kind, s.round, s.theirs = plain[0], binary.BigEndian.Uint32(plain[17:]), plain[29:]
	copy(s.id[:], plain[1:])
	return s, true
}

// await is reserve, but waits a little for a place that somebody gives back.
func (k *parkings) await(ctx context.Context, c *call) bool {
	t := time.NewTimer(parkPatience)
	defer t.Stop()
	for {
		k.mu.Lock()
		freed := k.freed
		k.mu.Unlock()
		if k.reserve(c) {
			return true
		}
		select {
		case <-freed:
		case <-t.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// refuse notes that there was no place for questions of this upstream.
func (k *parkings) refuse(up string, questions int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused[up] += questions
}

// remark tells of the questions that were refused for want of a place, and what helps; empty for none.
func (k *parkings) remark(cfg *config.Server) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.refused[cfg.ID]
	if n == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of its questions were refused, because as many calls as may already wait for their clients to come back", n)
	if cfg.Sharing == config.SharingCall {
		text += `; with "sharing": "call" that is one less than "instances"`
	}
	return text
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
	if k.reserved >= maxParked || k.byPrincipal[who] >= maxParkedPerPrincipal || k.byUpstream[c.up] >= limit {
		return false
	}
	k.reserved++
	k.byPrincipal[who]++
	k.byUpstream[c.up]++
	return true
}

func (k *parkings) free(c *call) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer func() {
		close(k.freed)
		k.freed = make(chan struct{})
	}()
	k.reserved--
	who := c.req.Caller.Principal
	if k.byPrincipal[who]--; k.byPrincipal[who] <= 0 {
		delete(k.byPrincipal, who)
	}
	if k.byUpstream[c.up]--; k.byUpstream[c.up] <= 0 {
		delete(k.byUpstream, c.up)
	}
}

// publish makes a parked call one that can be taken up. From here on it belongs to whoever takes it.
func (k *parkings) publish(pk *parkedCall, timeout time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls[pk.id] = pk
	// What ends this round must not end the next: the client may come back in the same moment.
	round, ctx := pk.round, pk.c.ctx
	pk.timer = time.AfterFunc(timeout, func() { pk.abandon(round, CauseClientGone) })
	pk.detach = context.AfterFunc(ctx, func() {
		cause := CauseClientGone
		errors.As(context.Cause(ctx), &cause)
		pk.abandon(round, cause)
	})
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

// stop ends all parked calls.
func (k *parkings) stop() {
	k.mu.Lock()
	all := map[*parkedCall]uint32{}
	for _, pk := range k.calls {
		all[pk] = pk.round
	}
	k.mu.Unlock()
	for pk, round := range all {
		pk.abandon(round, CauseShutdown)
	}
}

// join notes a retry under way; first is false where the same one is running or has just run. It is nil where the state
// has been used with other answers.
func (k *parkings) join(key retryKey, answers [32]byte) (j *joinedRetry, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if j := k.joined[key]; j != nil {
		if j.answers != answers {
			return nil, false
		}
		return j, false
	}
	j = &joinedRetry{answers: answers, done: make(chan struct{})}
	k.joined[key] = j
	return j, true
}

// leave gives the answer of a retry to those who wait for it, and keeps it for a while where there is room.
func (k *parkings) leave(key retryKey, j *joinedRetry, frame []byte, code int) {
	j.frame, j.code = append([]byte(nil), frame...), code
	close(j.done)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(frame) == 0 || k.kept+len(frame) > maxJoinedBytes {
		delete(k.joined, key)
		return
	}
	k.kept += len(frame)
	time.AfterFunc(joinedFor, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.joined, key)
		k.kept -= len(j.frame)
	})
}
