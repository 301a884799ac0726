package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Why the id of a session is not accepted. Clients are told the same in every case.
var (
	errNotOurs   = errors.New("the session id is none that this server has sealed")
	errExpired   = errors.New("the session has reached its greatest age")
	errOtherUser = errors.New("the session belongs to another principal or endpoint")
)

// uniqueID tells sessions apart. It is inside the seal, so a client cannot know it.
type uniqueID [18]byte

func newUnique() (u uniqueID) {
	_, _ = rand.Read(u[:]) // never fails
	return u
}

// unit is what upstreams know the session by; the same after a restart.
func (u uniqueID) unit() string { return "session/" + u.text() }

func (u uniqueID) text() string { return hex.EncodeToString(u[:]) }

// claims are what the id of a session says about it. Nothing in them has a form that a client chose.
type claims struct {
	version string // negotiated
	caps    proxy.Caps
	issued  time.Time
	expires time.Time
	unique  uniqueID
}

// sealedRevisions gives revisions their number inside the seal. New ones are appended: a number must not change.
var sealedRevisions = []string{wire.Rev20241105, wire.Rev20250326, wire.Rev20250618, wire.Rev20251125}

const (
	sealFormat   = 1  // of what is inside; another format gets another number
	sealNonce    = 12 // bytes, of AES-GCM
	sealTag      = 16
	sealHash     = 16 // bytes that are left of a keyed hash
	sealedBytes  = 1 + 2 + 1 + 8 + 8 + len(uniqueID{}) + 2*sealHash
	idBytes      = 1 + sealNonce + sealedBytes + sealTag
	sealInfo     = "mcp-proxy session id"
	sealHashInfo = "mcp-proxy session owner"
)

// idText is the encoding of ids: visible ASCII, and exactly one text for the same bytes.
var idText = base64.RawURLEncoding.Strict()

// sealer makes session ids and opens them: tokens of one size that carry what a restarted process must know. The first
// key seals, all of them open. It is safe for concurrent use.
type sealer struct{ keys []sealKey }

type sealKey struct {
	aead cipher.AEAD
	hash []byte
}

// newSealer makes a sealer of secrets of any length; without any it makes a key of its own, which nobody else has.
func newSealer(secrets [][]byte) (*sealer, error) {
	if len(secrets) == 0 {
		own := make([]byte, 32)
		_, _ = rand.Read(own) // never fails
		secrets = [][]byte{own}
	}
	s := &sealer{}
	for _, secret := range secrets {
		k, err := newSealKey(secret)
		if err != nil {
			return nil, fmt.Errorf("making a key of session ids: %w", err)
		}
		s.keys = append(s.keys, k)
	}
	return s, nil
}

func newSealKey(secret []byte) (k sealKey, err error) {
	key, err := hkdf.Key(sha256.New, secret, nil, sealInfo, 32)
	if err != nil {
		return k, err
	}
	if k.hash, err = hkdf.Key(sha256.New, secret, nil, sealHashInfo, 32); err != nil {
		return k, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return k, err
	}
	k.aead, err = cipher.NewGCM(block)
	return k, err
}

// owner is the keyed hash of who may use the session and where. It tells nothing about either without the key.
func (k sealKey) owner(view, principal string) (out [2 * sealHash]byte) {
	for i, text := range []string{view, principal} {
		h := hmac.New(sha256.New, k.hash)
		_, _ = h.Write([]byte{byte(i)}) // a hash takes everything
		_, _ = h.Write([]byte(text))
		copy(out[i*sealHash:], h.Sum(nil)[:sealHash])
	}
	return out
}

// seal makes the id of a session.
func (s *sealer) seal(c claims, view, principal string) string {
	k := s.keys[0]
	id := make([]byte, 1+sealNonce, idBytes)
	id[0] = sealFormat
	_, _ = rand.Read(id[1:]) // never fails
	in := make([]byte, 0, sealedBytes)
	in = append(in, byte(slices.Index(sealedRevisions, c.version)))
	in = binary.BigEndian.AppendUint16(in, uint16(c.caps))
	in = append(in, 0) // room for what a later version may want to know
	in = binary.BigEndian.AppendUint64(in, uint64(c.issued.Unix()))
	in = binary.BigEndian.AppendUint64(in, uint64(c.expires.Unix()))
	in = append(in, c.unique[:]...)
	owner := k.owner(view, principal)
	in = append(in, owner[:]...)
	return idText.EncodeToString(k.aead.Seal(id, id[1:], in, id[:1]))
}

// open reads the id of a session that this principal brings to this endpoint.
func (s *sealer) open(id, view, principal string, now time.Time) (claims, error) {
	var c claims
	if len(id) != idText.EncodedLen(idBytes) {
		return c, errNotOurs
	}
	b, err := idText.DecodeString(id)
	if err != nil || len(b) != idBytes || b[0] != sealFormat {
		return c, errNotOurs
	}
	for _, k := range s.keys {
		in, err := k.aead.Open(nil, b[1:1+sealNonce], b[1+sealNonce:], b[:1])
		if err != nil {
			continue
		}
		return c, c.read(in, k.owner(view, principal), now)
	}
	return c, errNotOurs
}

// read takes what is inside an id apart.
func (c *claims) read(in []byte, owner [2 * sealHash]byte, now time.Time) error {
	if int(in[0]) >= len(sealedRevisions) {
		return errNotOurs
	}
	c.version = sealedRevisions[in[0]]
	c.caps = proxy.Caps(binary.BigEndian.Uint16(in[1:]))
	c.issued = time.Unix(int64(binary.BigEndian.Uint64(in[4:])), 0)
	c.expires = time.Unix(int64(binary.BigEndian.Uint64(in[12:])), 0)
	n := copy(c.unique[:], in[20:])
	switch {
	case !hmac.Equal(in[20+n:], owner[:]):
		return errOtherUser
	case !now.Before(c.expires):
		return errExpired
	}
	return nil
}
