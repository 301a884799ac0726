package credentials

import (
	"io"
	"net/http"
)

// Transport sends requests with a token of Tokens. One that is answered 401 has not been carried out: it is sent once more
// with another token.
type Transport struct {
	Base   http.RoundTripper
	Tokens *Tokens
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, token, err := t.send(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || req.Body != nil && req.GetBody == nil || !t.Tokens.Refused(token) {
		return resp, err
	}
	again := req
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return resp, nil //nolint:nilerr // the first answer stands
		}
		again = req.Clone(req.Context())
		again.Body = body
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxDiscard) // so that its connection can be used again
	_ = resp.Body.Close()
	resp, _, err = t.send(again)
	return resp, err
}

// maxDiscard is how much of the answer that is not looked at is read, in bytes.
const maxDiscard = 64 << 10

// send sends a request with the token that there is.
func (t *Transport) send(req *http.Request) (*http.Response, string, error) {
	token, err := t.Tokens.Token(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as the contract of RoundTripper wants it
		}
		return nil, "", err
	}
	with := req.Clone(req.Context()) // a RoundTripper does not change the request
	with.Header.Set("Authorization", "Bearer "+token)
	resp, err := t.Base.RoundTrip(with)
	return resp, token, err
}

// CloseIdleConnections closes those of the transport below.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
