// Package auth tells who is calling. It knows credentials and nothing about sessions, tools or HTTP status codes.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// Why a caller was turned away; Authenticate gives exactly one of these. None of them carries any part of what was sent.
var (
	ErrMissing   = errors.New("no credential was sent")
	ErrMalformed = errors.New("the credential is malformed")
	ErrUnknown   = errors.New("the credential is not known")
)

// Principal is who the caller authenticated as. The zero value is the anonymous caller.
type Principal struct {
	Name string
	// Profile is the only profile this caller may use; empty for no such bound.
	Profile string
}

const (
	authorization = "Authorization"
	scheme        = "bearer"
	keySize       = 32
)

// Authenticator checks credentials against the configuration it was made from. It never changes and may be used by many
// goroutines at once.
type Authenticator struct {
	mode    config.AuthMode
	header  string // canonical
	key     [keySize]byte
	digests [][sha256.Size]byte // of the tokens, in the order of principals
	who     []Principal
}

// New makes the authenticator of one configuration. An empty mode is none, an empty header Authorization.
func New(c config.Auth) *Authenticator {
	a := &Authenticator{mode: c.Mode, header: http.CanonicalHeaderKey(c.Header)}
	if a.mode == "" {
		a.mode = config.AuthNone
	}
	if a.header == "" {
		a.header = authorization
	}
	rand.Read(a.key[:]) // never fails
	for _, t := range c.Tokens {
		a.digests = append(a.digests, a.digest(t.Token.Reveal()))
		a.who = append(a.who, Principal{Name: t.Name, Profile: t.Profile})
	}
	return a
}

// Required tells whether callers need a credential at all.
func (a *Authenticator) Required() bool { return a.mode != config.AuthNone }

// Header is the canonical name of the header that carries the credential. Where a credential is required this header
// is ours: it must not travel on to anybody else.
func (a *Authenticator) Header() string { return a.header }

// Authenticate tells who sent these headers. It does not change them. The error is one of ErrMissing, ErrMalformed and
// ErrUnknown.
func (a *Authenticator) Authenticate(h http.Header) (Principal, error) {
	if !a.Required() {
		return Principal{}, nil
	}
	token, err := a.token(h)
	if err != nil {
		return Principal{}, err
	}
	return a.lookup(token)
}

// token takes the credential out of the header. Two values are refused: which of them a peer on the way looked at is
// anybody's guess.
func (a *Authenticator) token(h http.Header) (string, error) {
	values := h[a.header]
	switch {
	case len(values) == 0:
		return "", ErrMissing
	case len(values) > 1:
		return "", ErrMalformed
	}
	value := strings.TrimSpace(values[0])
	if token, ok := cutBearer(value); ok {
		value = token
	} else if a.header == authorization {
		return "", ErrMalformed
	}
	if value == "" {
		return "", ErrMalformed
	}
	return value, nil
}

// cutBearer removes the scheme, whose case does not matter (RFC 9110, section 11.1).
func cutBearer(s string) (string, bool) {
	if len(s) < len(scheme) || !strings.EqualFold(s[:len(scheme)], scheme) {
		return "", false
	}
	rest := s[len(scheme):]
	if rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return "", false
	}
	return strings.TrimSpace(rest), true
}

// lookup compares with every token and has no early exit. Digests under a key of this process are compared, so the
// time tells neither how long a token is nor how much of it was right.
func (a *Authenticator) lookup(token string) (Principal, error) {
	got, found := a.digest(token), -1
	for i := range a.digests {
		same := subtle.ConstantTimeCompare(got[:], a.digests[i][:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return Principal{}, ErrUnknown
	}
	return a.who[found], nil
}

func (a *Authenticator) digest(token string) [sha256.Size]byte {
	buf := make([]byte, 0, 256) // on the stack for any sane token
	buf = append(buf, a.key[:]...)
	buf = append(buf, token...)
	return sha256.Sum256(buf)
}
