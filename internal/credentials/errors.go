package credentials

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/oauth2"
)

// maxDetail bounds what is repeated of an authorization server's words, in bytes.
const maxDetail = 512

var errSlow = errors.New("it does not answer in time")

// Error says why there is no token. Its text has no part of a secret.
type Error struct {
	// Denied says that the authorization server has refused, so that asking again does not help.
	Denied bool
	text   string
}

func (e *Error) Error() string { return "needs authorization: " + e.text }

// explain makes the error that others see of one of the library's, which may repeat what was sent.
func (t *Tokens) explain(err error) *Error {
	host := t.config.TokenURL
	if u, parseErr := url.Parse(host); parseErr == nil {
		host = u.Host
	}
	e := &Error{text: "no token from " + host + ": "}
	var answer *oauth2.RetrieveError
	var broken *url.Error
	switch {
	case errors.As(err, &answer):
		e.Denied = answer.Response.StatusCode >= 400 && answer.Response.StatusCode < 500 && answer.Response.StatusCode != 429
		e.text += fmt.Sprintf("it answers %d", answer.Response.StatusCode)
		for _, detail := range []string{answer.ErrorCode, answer.ErrorDescription} {
			if detail != "" {
				e.text += ", " + t.clean(detail)
			}
		}
	case errors.Is(err, context.Canceled):
		e.text += "the proxy is ending"
	case errors.As(err, &broken):
		e.text += t.clean(broken.Err.Error()) // without the URL, which may have a secret in it
	default:
		e.text += t.clean(strings.TrimPrefix(err.Error(), "oauth2: "))
	}
	return e
}

// clean cuts a text, and takes the secret out of it in the forms in which it was sent.
func (t *Tokens) clean(text string) string {
	for _, secret := range []string{t.config.ClientSecret, url.QueryEscape(t.config.ClientSecret)} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "<secret>")
		}
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail], "") + "…"
	}
	return text
}
