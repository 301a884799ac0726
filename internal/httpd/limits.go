package httpd

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/auth"
)

const (
	inFlightRetry = time.Second

	// What is still read of a body beyond the limit: a client that is cut off in the middle of sending sees a broken
	// connection in place of our answer.
	drainBytes = 8 << 20
	drainTime  = 2 * time.Second
)

// bound turns requests away while too many are being served.
func (d *Door) bound(next guarded) guarded {
	limit := int64(d.opt.Proxy.Limits.MaxInFlight)
	if limit <= 0 {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request, who auth.Principal) {
		if isStanding(r) {
			next(w, r, who)
			return
		}
		defer d.inFlight.Add(-1)
		if d.inFlight.Add(1) > limit {
			d.opt.Limit("in_flight")
			refuse(w, refusal{status: http.StatusServiceUnavailable, code: codeInternal, reason: "overloaded",
				message:    fmt.Sprintf("The proxy serves %d requests already (proxy.limits.max_in_flight).", limit),
				retryAfter: inFlightRetry})
			return
		}
		next(w, r, who)
	}
}

// isStanding tells requests apart that stay open for as long as the client lives. They wait and do no work; how many
// there may be is bounded as streams. A header that lies gains nothing: it is refused when the body is read.
func isStanding(r *http.Request) bool {
	if r.Method == http.MethodGet {
		return true
	}
	m := r.Header["Mcp-Method"]
	return len(m) == 1 && m[0] == "subscriptions/listen"
}

// limitBody bounds the body. One that says itself that it is too long is refused before it is read.
func (d *Door) limitBody(next guarded) guarded {
	limit := d.opt.Proxy.Limits.MaxBodyBytes
	if limit <= 0 {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request, who auth.Principal) {
		if r.ContentLength == 0 {
			next(w, r, who)
			return
		}
		b := &limitedBody{src: r.Body, left: limit, limit: limit, w: w, count: d.opt.Limit}
		if r.ContentLength > limit {
			rest := b.left + drainBytes // as of one that does not say its length
			if r.Header.Get("Expect") != "" {
				rest = 0
			}
			b.over(rest)
			refuse(w, refusal{status: http.StatusRequestEntityTooLarge, code: codeInvalidRequest, reason: "invalid",
				message: fmt.Sprintf("The body has %d bytes, the limit is %d (proxy.limits.max_body_bytes).", r.ContentLength, limit)})
			return
		}
		r.Body = b
		next(w, r, who)
	}
}

// limitedBody is http.MaxBytesReader with two differences: it counts, and it reads on for a while past the limit, so
// that the client gets to hear why it is refused and can keep its connection. Like any body, it has one reader.
type limitedBody struct {
	src         io.ReadCloser
	left, limit int64
	err         error // sticky
	w           http.ResponseWriter
	count       func(string)
}

// Read gives at most limit bytes, then a *http.MaxBytesError.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	// One byte more than allowed tells a body of exactly the limit from a longer one.
	if int64(len(p))-1 > b.left {
		p = p[:b.left+1]
	}
	n, err := b.src.Read(p)
	if int64(n) <= b.left {
		b.left -= int64(n)
		b.err = err
		return n, err
	}
	n = int(b.left)
	b.left = 0
	b.over(drainBytes)
	b.err = &http.MaxBytesError{Limit: b.limit}
	return n, b.err
}

// Close closes the body itself.
func (b *limitedBody) Close() error { return b.src.Close() }

// over counts and reads on, so many bytes and so long at most. A client that waits for "100 Continue" has sent nothing
// yet, and reading would ask it to: of it nothing is read.
func (b *limitedBody) over(rest int64) {
	b.count("body")
	rc := http.NewResponseController(b.w)
	if rest == 0 || rc.SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, b.src, rest)
	rc.SetReadDeadline(time.Time{})
}
