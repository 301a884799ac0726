package config

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// SignIn is how the proxy signs in at a server, where that takes more than auth_token.
type SignIn struct {
	Type SignInType
	// Token is for bearer; Header and Key are for api_key.
	Token  Secret
	Header string
	Key    Secret
	// The rest is for oauth2_client_credentials.
	TokenURL     Secret // may carry credentials in its query
	ClientID     string
	ClientSecret Secret
	Scopes       []string
	Params       map[string]Secret
	// Timeout bounds one request for a token.
	Timeout time.Duration
}

// SignInType says what a server wants to see.
type SignInType string

// The ways of signing in.
const (
	SignInBearer            SignInType = "bearer"
	SignInAPIKey            SignInType = "api_key"
	SignInClientCredentials SignInType = "oauth2_client_credentials"
)

const defaultTokenTimeout = 30 * time.Second

// signInKeys are the keys that each way has, the first of them those that it cannot do without.
var signInKeys = map[SignInType]struct{ needed, more []string }{
	SignInBearer:            {needed: []string{"token"}},
	SignInAPIKey:            {needed: []string{"header", "key"}},
	SignInClientCredentials: {needed: []string{"token_url", "client_id", "client_secret"}, more: []string{"scopes", "params", "timeout"}},
}

var signInFields = []field[SignIn]{
	choiceField("type", "`bearer` sends a fixed token, `api_key` a header of your choice, `oauth2_client_credentials` a token that an authorization server gives for the proxy's own credentials.", `"api_key"`,
		func(s *SignIn) *SignInType { return &s.Type }, []SignInType{SignInBearer, SignInAPIKey, SignInClientCredentials}),
	secretField("token", "For `bearer`: the token.", `"${TOKEN:-none}"`, func(s *SignIn) *Secret { return &s.Token }),
	textField("header", "For `api_key`: the name of the header.", `"X-API-Key"`, func(s *SignIn) *string { return &s.Header }, isSignInHeader),
	secretField("key", "For `api_key`: its value.", `"${API_KEY:-none}"`, func(s *SignIn) *Secret { return &s.Key }),
	{key: "token_url", typ: "string", doc: "For `oauth2_client_credentials`: where tokens are asked for; https, or this machine.", example: `"https://login.example.com/token"`, def: "none",
		read: readTokenURL, show: func(s *shower, canon, key string, src *SignIn) { s.address(canon, key, src.TokenURL) }},
	textField("client_id", "The name of the proxy there.", `"mcp-proxy"`, func(s *SignIn) *string { return &s.ClientID }, notEmpty),
	secretField("client_secret", "Its secret.", `"${CLIENT_SECRET:-none}"`, func(s *SignIn) *Secret { return &s.ClientSecret }),
	textsField("scopes", "What the token is to be good for.", `["mcp:tools"]`, func(s *SignIn) *[]string { return &s.Scopes }, notEmpty),
	{key: "params", typ: "object of strings", doc: "Further members of the request for a token, such as `audience` or `resource`.", example: `{"audience": "https://mcp.example.com"}`, def: "none",
		read: readTokenParams, show: func(s *shower, canon, key string, src *SignIn) { s.secrets(canon, key, namesOf(src.Params)) }},
	durationField("timeout", "How long the authorization server may take.", `"10s"`, time.Millisecond, func(s *SignIn) *time.Duration { return &s.Timeout }),
}

// secretField reads one line that is never shown.
func secretField[T any](key, doc, example string, at func(*T) *Secret) field[T] {
	return field[T]{
		key: key, typ: "string", doc: doc, example: example, def: "none",
		read: func(r *reader, here place, n *node, dst *T) {
			if s, ok := r.text(here, n); ok && r.passes(here, n, s, []check{isCredential}) {
				*at(dst) = Secret(strings.TrimSpace(s))
			}
		},
		show: func(s *shower, canon, key string, src *T) { s.secret(canon, key, *at(src)) },
	}
}

// isSignInHeader accepts headers that may bear a key.
func isSignInHeader(s string) string {
	if wrong := isHeaderName(s); wrong != "" {
		return wrong
	}
	if low := strings.ToLower(s); strings.HasPrefix(low, "mcp-") || slices.Contains(neverForwarded, low) && low != "authorization" && low != "cookie" {
		return "belongs to the protocol or to one connection"
	}
	return ""
}

func readTokenURL(r *reader, at place, n *node, s *SignIn) {
	text, ok := r.text(at, n)
	if !ok || !r.passes(at, n, text, []check{isHTTPURL}) {
		return
	}
	if u, err := url.Parse(text); err == nil && u.Scheme != "https" && !isLoopback(u.Hostname()) {
		r.mistake(at, n.line, "sends the secret through the network for everybody to read; it must begin with https:// unless it is this machine")
		return
	}
	s.TokenURL = Secret(text)
}

func readTokenParams(r *reader, at place, n *node, s *SignIn) {
	s.Params = map[string]Secret{}
	r.textMap(at, n, func(at place, m member, value string) {
		if slices.Contains([]string{"grant_type", "scope", "client_id", "client_secret"}, m.key) {
			r.mistake(at, m.line, "is sent in any case")
			return
		}
		s.Params[m.key] = Secret(value)
	})
}

// readSignIn reads the key auth.
func readSignIn(r *reader, at place, n *node, d *draft) {
	switch {
	case !r.isObject(at, n):
		return
	case n.get("type") == nil && n.get("CLIENT_ID") != nil:
		r.warn(at, n.line, "is a way of signing in that this version does not know; the server is contacted without it")
		return
	}
	s := SignIn{Timeout: defaultTokenTimeout}
	before := len(r.problems)
	readFields(r, at, n, signInFields, &s)
	if n.get("type") == nil {
		r.mistake(at, n.line, "needs a type; known are bearer, api_key, oauth2_client_credentials")
		return
	}
	if len(r.problems) > before {
		return // what is missing may be what is wrong
	}
	keys := signInKeys[s.Type]
	for _, key := range keys.needed {
		if m := n.get(key); m == nil || m.value.kind == kindNull {
			r.mistake(at, n.line, "%s needs %s", s.Type, key)
		}
	}
	for _, m := range n.members {
		if m.key != "type" && !slices.Contains(keys.needed, m.key) && !slices.Contains(keys.more, m.key) {
			r.mistake(at.member(m), m.line, "is not for %s", s.Type)
		}
	}
	d.SignIn = s
}

func showSignIn(s *shower, canon, key string, d *draft) {
	if d.SignIn.Type == "" {
		return
	}
	keys := signInKeys[d.SignIn.Type]
	own := []field[SignIn]{signInFields[0]}
	for _, f := range signInFields[1:] {
		if slices.Contains(keys.needed, f.key) || slices.Contains(keys.more, f.key) {
			own = append(own, f)
		}
	}
	showGroup(s, canon, key, own, &d.SignIn)
}

// SignInHeader is the header that is sent with every request and always the same, by which the server knows the proxy.
// Its name is empty where there is none.
func (s *Server) SignInHeader() (name string, value Secret) {
	switch {
	case s.AuthToken != "":
		return authorization, "Bearer " + s.AuthToken
	case s.SignIn.Type == SignInBearer:
		return authorization, "Bearer " + s.SignIn.Token
	case s.SignIn.Type == SignInAPIKey:
		return s.SignIn.Header, s.SignIn.Key
	}
	return "", ""
}

// Secrets are the secret values of all that belongs to signing in.
func (s *SignIn) Secrets() []Secret {
	out := []Secret{s.Token, s.Key, s.ClientSecret}
	for _, v := range s.Params {
		out = append(out, v)
	}
	return out
}

// header is the name of the header that this way of signing in sends.
func (s *SignIn) header() string {
	switch s.Type {
	case "":
		return ""
	case SignInAPIKey:
		return s.Header
	}
	return authorization
}

// checkSignIn refuses a credential that is given twice.
func (r *reader) checkSignIn(at place, entry *node, d *draft) {
	u, err := url.Parse(d.URL.Reveal())
	hasUser := err == nil && u.User != nil
	for _, way := range [2]struct{ key, header string }{{"auth_token", authorization}, {"auth", d.SignIn.header()}} {
		key, header := way.key, way.header
		m := entry.get(key)
		if m == nil || header == "" {
			continue
		}
		for name := range d.Headers {
			if strings.EqualFold(name, header) {
				r.mistake(at.member(*m), m.line, "says the same as the header %s; keep one", header)
			}
		}
		if hasUser && strings.EqualFold(header, authorization) {
			r.mistake(at.member(*m), m.line, "says the same as the user in the url; keep one")
		}
		if key == "auth" && d.AuthToken != "" && strings.EqualFold(header, authorization) {
			r.mistake(at.member(*m), m.line, "says the same as auth_token; keep one")
		}
	}
}
