package upstream

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// Credentials are what one upstream gets of a client's headers and may tell by who calls: the client's own credential, and
// what forward_headers name. A connection over HTTP serves only one set of them. They are immutable; nil stands for none.
type Credentials struct {
	// Key names them without telling them: it is made with a key of this process.
	Key     string
	headers http.Header
}

// credentialKey makes the keys of credentials worthless outside this process.
var credentialKey = sync.OnceValue(func() []byte {
	b := make([]byte, sha256.Size)
	_, _ = rand.Read(b) // never fails
	return b
})

const authorization = "Authorization"

// perRequest are headers that differ from request to request and tell nothing of who calls. A connection is not bound to
// them: each request brings its own.
var perRequest = []string{"X-Request-Id", "Request-Id", "X-Correlation-Id", "Correlation-Id", "Idempotency-Key", "Traceparent", "Tracestate",
	"Baggage", "B3", "X-Amzn-Trace-Id", "X-Cloud-Trace-Context", "X-Client-Trace-Id", "Uber-Trace-Id", "Sentry-Trace"}

// boundHeaders are the names of the headers that are part of the credentials for a server.
func boundHeaders(cfg *config.Server) (out []string) {
	if cfg.ForwardsAuth() {
		out = append(out, authorization)
	}
	static := http.Header{}
	if cfg.Transport != config.TransportStdio {
		static = staticHeaders(cfg)
	}
	for _, name := range cfg.ForwardHeaders {
		if static[name] == nil && !slices.Contains(perRequest, name) && !strings.HasPrefix(name, "X-B3-") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Credentials gives what this upstream gets of these headers of a client, by their canonical names; nil for nothing.
func (u *Upstream) Credentials(of map[string][]string) *Credentials {
	if len(of) == 0 {
		return nil
	}
	var c *Credentials
	for _, name := range u.bound {
		if v := of[name]; len(v) > 0 {
			if c == nil {
				c = &Credentials{headers: http.Header{}}
			}
			c.headers[name] = slices.Clone(v)
		}
	}
	if c != nil {
		c.Key = c.sum(u.bound)
	}
	return c
}

// sum makes the key. Each part is written with its length, so that no two sets are the same text.
func (c *Credentials) sum(names []string) string {
	h := hmac.New(sha256.New, credentialKey())
	part := func(s string) {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	for _, name := range names {
		if v := c.headers[name]; len(v) > 0 {
			part(name)
			var n [4]byte
			binary.BigEndian.PutUint32(n[:], uint32(len(v)))
			h.Write(n[:])
			for _, one := range v {
				part(one)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Headers are the credentials themselves. They must not be changed, and go to their upstream alone.
func (c *Credentials) Headers() map[string][]string {
	if c == nil {
		return nil
	}
	return c.headers
}

// slotKey names the connection that lists and hears news for these credentials, and serves all who have them where
// connections are shared.
func (c *Credentials) slotKey() string {
	if c == nil {
		return ""
	}
	return "credentials/" + c.Key
}

// credentialNames are what the names of headers hold that carry a secret of one caller.
var credentialNames = []string{"auth", "token", "key", "secret", "cookie", "credential"}

// tellsWhom says whether one caller can be told from others by them. Strangers may well agree on a language or a tenant,
// and must not meet in one conversation.
func (c *Credentials) tellsWhom() bool {
	if c == nil {
		return false
	}
	for name := range c.headers {
		lower := strings.ToLower(name)
		if slices.ContainsFunc(credentialNames, func(part string) bool { return strings.Contains(lower, part) }) {
			return true
		}
	}
	return false
}

// key is Key; empty for none.
func (c *Credentials) key() string {
	if c == nil {
		return ""
	}
	return c.Key
}

// secrets are the values that must stand in no text that people read.
func (c *Credentials) secrets() (out []string) {
	add := func(v string) {
		if len(v) >= shortestSecret && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	for _, values := range c.headers {
		for _, v := range values {
			_, credential, _ := strings.Cut(v, " ")
			add(v)
			add(credential)
		}
	}
	return out
}

// Bound gives what connections of this upstream are bound to of these headers of a client; nil for nothing.
func (u *Upstream) Bound(of map[string][]string) *Credentials {
	if u.isPipe() {
		return nil
	}
	return u.Credentials(of)
}

// binding gives the credentials that the connection for a unit is bound to. Over pipes they stand in each message, and
// nothing of them belongs to the connection.
func (u *Upstream) binding(unit Unit) *Credentials {
	if u.isPipe() {
		return nil
	}
	return unit.Credentials
}

// lists says whether this is the connection that lists and hears news for its credentials.
func (s *slot) lists() bool { return s.creds != nil && s.key == s.creds.slotKey() }
