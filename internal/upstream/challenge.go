package upstream

import (
	"errors"
	"net/http"
)

// Challenge is how a server refuses the credential of a caller, or asks for one (RFC 9110, section 11.6.1).
type Challenge struct {
	Status int
	// Authenticate are the values of its WWW-Authenticate headers.
	Authenticate []string
}

const (
	maxChallenges     = 4
	maxChallengeBytes = 4 << 10
)

// ChallengeOf gives the challenge that caused an error; nil for none. Only servers that get the credentials of callers
// have any: what others say about credentials concerns those of the configuration.
func ChallengeOf(err error) *Challenge {
	var se *statusError
	if errors.As(err, &se) {
		return se.challenge
	}
	return nil
}

// refusal is the error of an answer that carries no message.
func (c *httpConn) refusal(resp *http.Response, text string) *statusError {
	e := &statusError{code: resp.StatusCode, text: text}
	if e.code != http.StatusUnauthorized && e.code != http.StatusForbidden {
		return e
	}
	if !c.env.callers {
		e.text += " (check auth, auth_token and headers)"
		return e
	}
	e.challenge = &Challenge{Status: e.code}
	for _, v := range resp.Header.Values("Www-Authenticate") {
		if len(e.challenge.Authenticate) < maxChallenges && len(v) <= maxChallengeBytes {
			e.challenge.Authenticate = append(e.challenge.Authenticate, v)
		}
	}
	switch {
	case c.env.creds == nil || c.env.creds.headers[authorization] == nil:
		e.text += " (the server wants the client's own Authorization, and the request has none)"
	default:
		e.text += " (the server does not accept the client's own Authorization)"
	}
	return e
}

// deniedOr gives the reason of an error: one that the caller's credential causes is nobody else's trouble.
func deniedOr(r Reason, err error) Reason {
	if ChallengeOf(err) != nil {
		return ReasonDenied
	}
	return r
}
