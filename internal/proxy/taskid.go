package proxy

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// The id of a task is made by its server, and two servers may make the same. Clients know a task by a sealed id that
// says which server made it and where it is kept, and that opens only for the principal and the endpoint that it was
// made for. Equal tasks have equal ids, because clients compare them.

// taskPrefix marks the task ids that are ours.
const taskPrefix = "mcp-proxy-task."

const (
	taskFormat     = 1 // of what is inside; another format gets another number
	taskHead       = 1 + 8 + 2 + 2
	taskSealInfo   = "mcp-proxy task id"
	taskNonceInfo  = "mcp-proxy task id nonce"
	maxTaskID      = 1024 // bytes, of a server's own id
	maxSealedTask  = 4096
	maxTaskSharers = 1<<16 - 1
)

var (
	errNotOurTask = errors.New("the task id is none that this proxy has sealed for this principal and endpoint")
	errTaskTooBig = errors.New("the server gives its task an id that is too long")
)

// taskRef is what a task id stands for.
type taskRef struct {
	upstream string
	place    upstream.Place // without the unit, which is the caller's
	id       string         // the server's own
}

// taskSealer makes task ids and opens them. The first key seals, all of them open. It is safe for concurrent use.
type taskSealer struct{ keys []taskKey }

type taskKey struct {
	aead  cipher.AEAD
	nonce []byte
}

var taskText = base64.RawURLEncoding.Strict()

// newTaskSealer makes a sealer of secrets of any length; without any it makes a key of its own, which dies with the process.
func newTaskSealer(secrets [][]byte) *taskSealer {
	if len(secrets) == 0 {
		own := make([]byte, 32)
		_, _ = rand.Read(own) // never fails
		secrets = [][]byte{own}
	}
	s := &taskSealer{}
	for _, secret := range secrets {
		s.keys = append(s.keys, newTaskKey(secret))
	}
	return s
}

func newTaskKey(secret []byte) taskKey {
	derived := func(info string) []byte {
		key, err := hkdf.Key(sha256.New, secret, nil, info, 32)
		if err != nil {
			panic("proxy: " + err.Error()) // the length is one that the hash can give
		}
		return key
	}
	block, err := aes.NewCipher(derived(taskSealInfo))
	if err != nil {
		panic("proxy: " + err.Error()) // the key has the right length
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic("proxy: " + err.Error())
	}
	return taskKey{aead, derived(taskNonceInfo)}
}

// taskOwner is what a task id is bound to.
func taskOwner(c *Caller) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(c.Principal)))
	return append(append(b, c.Principal...), c.View...)
}

// seal makes the id that the caller knows a task by.
func (s *taskSealer) seal(c *Caller, r taskRef) (string, error) {
	if r.id == "" || len(r.id) > maxTaskID || len(r.upstream) > maxTaskID {
		return "", errTaskTooBig
	}
	in := binary.BigEndian.AppendUint64([]byte{taskFormat}, r.place.Generation)
	in = binary.BigEndian.AppendUint16(in, uint16(min(r.place.Index, maxTaskSharers)))
	in = binary.BigEndian.AppendUint16(in, uint16(len(r.upstream)))
	in = append(append(in, r.upstream...), r.id...)
	k, owner := s.keys[0], taskOwner(c)
	// The nonce follows from what is sealed: the same task has the same id, and no nonce is used for two texts.
	h := hmac.New(sha256.New, k.nonce)
	for _, part := range [][]byte{owner, in} {
		_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part)))) // a hash takes everything
		_, _ = h.Write(part)
	}
	nonce := h.Sum(nil)[:k.aead.NonceSize()]
	return taskPrefix + taskText.EncodeToString(k.aead.Seal(nonce, nonce, in, owner)), nil
}

// open reads the id of a task that a caller brings.
func (s *taskSealer) open(c *Caller, id string) (taskRef, error) {
	text, ours := strings.CutPrefix(id, taskPrefix)
	if !ours || len(id) > maxSealedTask {
		return taskRef{}, errNotOurTask
	}
	b, err := taskText.DecodeString(text)
	if err != nil {
		return taskRef{}, errNotOurTask
	}
	owner := taskOwner(c)
	for _, k := range s.keys {
		n := k.aead.NonceSize()
		if len(b) < n {
			break
		}
		if in, err := k.aead.Open(nil, b[:n], b[n:], owner); err == nil {
			return readTaskRef(in)
		}
	}
	return taskRef{}, errNotOurTask
}

func readTaskRef(in []byte) (r taskRef, err error) {
	if len(in) <= taskHead || in[0] != taskFormat {
		return r, errNotOurTask
	}
	r.place.Generation = binary.BigEndian.Uint64(in[1:])
	r.place.Index = int(binary.BigEndian.Uint16(in[9:]))
	name := int(binary.BigEndian.Uint16(in[11:]))
	if len(in) <= taskHead+name {
		return r, errNotOurTask
	}
	r.upstream, r.id = string(in[taskHead:taskHead+name]), string(in[taskHead+name:])
	return r, nil
}
