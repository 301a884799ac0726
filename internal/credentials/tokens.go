package credentials

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/time/rate"
)

// renewEarly is how long before its end a token is renewed; one that lives shorter than twice that, at half of its life.
const renewEarly = time.Minute

// After a failure the authorization server is asked again with these delays, which double.
const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// An upstream that refuses token after token does not make us ask for others at the pace of its calls.
const (
	refusedBurst = 3
	refusedPause = 10 * time.Second
)

// ClientCredentials are the proxy's own, by which it gets tokens (RFC 6749, section 4.4).
type ClientCredentials struct {
	TokenURL     string
	ClientID     string
	ClientSecret string
	Scopes       []string
	// Params are further members of the request, such as audience or resource.
	Params map[string]string
	// Timeout bounds one request for a token.
	Timeout time.Duration
	// Transport makes the requests; nil for the default one.
	Transport http.RoundTripper
}

// Tokens gives one token to everybody who asks. It is safe for concurrent use.
type Tokens struct {
	config  clientcredentials.Config
	client  *http.Client
	timeout time.Duration
	refused *rate.Limiter

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	token    string
	given    [2]string // the newest tokens, for Hide
	renew    time.Time // when another is fetched; zero for never
	expires  time.Time // zero for never
	fetching chan struct{}
	failed   error // why there is no other token
	retry    time.Time
	delay    time.Duration
}

// New makes the source of tokens for these credentials. It asks for nothing yet.
func New(c ClientCredentials) *Tokens {
	params := url.Values{}
	for name, value := range c.Params {
		params.Set(name, value)
	}
	t := &Tokens{
		config: clientcredentials.Config{TokenURL: c.TokenURL, ClientID: c.ClientID, ClientSecret: c.ClientSecret, Scopes: c.Scopes, EndpointParams: params},
		client: &http.Client{
			Transport: c.Transport,
			// A secret goes to nobody but whom the configuration names.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		timeout: c.Timeout,
		refused: rate.NewLimiter(rate.Every(refusedPause), refusedBurst),
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// Stop ends what is being fetched and waits for it. Afterwards there are no tokens.
func (t *Tokens) Stop() {
	t.cancel()
	t.wg.Wait()
}

// Token gives a token that is good for a while, and waits for one where there is none. It fails with an *Error, or with the
// cause of ctx. While an old token is still good nobody waits for the next.
func (t *Tokens) Token(ctx context.Context) (string, error) {
	for {
		token, wait, err := t.current(time.Now())
		if wait == nil {
			return token, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// current gives the token there is, or what to wait for, and sees to it that the next is fetched in time.
func (t *Tokens) current(now time.Time) (token string, wait <-chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	good := t.token != "" && (t.expires.IsZero() || now.Before(t.expires))
	if good && (t.renew.IsZero() || now.Before(t.renew)) {
		return t.token, nil, nil
	}
	if t.fetching == nil && !now.Before(t.retry) {
		t.fetch()
	}
	switch {
	case good:
		return t.token, nil, nil
	case t.fetching != nil:
		return "", t.fetching, nil
	}
	return "", nil, t.failed
}

// Refused says that an upstream does not take the token. Whoever asks next gets another; false where that is not to be
// expected, because others have been refused just now.
func (t *Tokens) Refused(token string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if token != t.token {
		return true // there is another already, or one is on its way
	}
	if !t.refused.Allow() {
		return false
	}
	t.token = ""
	return true
}

// Hide takes the tokens that are or were just in use out of a text that people read.
func (t *Tokens) Hide(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, token := range t.given {
		if token != "" {
			text = strings.ReplaceAll(text, token, "<secret>")
		}
	}
	return text
}

// fetch asks for a token in the background: whoever needed it may go away, and others wait as well. t.mu is held.
func (t *Tokens) fetch() {
	done := make(chan struct{})
	t.fetching = done
	t.wg.Go(func() {
		defer close(done)
		token, err := t.ask()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.fetching = nil
		t.took(token, err, time.Now())
	})
}

// ask makes the request.
func (t *Tokens) ask() (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeoutCause(t.ctx, t.timeout, errSlow)
	defer cancel()
	token, err := t.config.Token(context.WithValue(ctx, oauth2.HTTPClient, t.client))
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	switch {
	case err != nil:
	case token.Type() != "Bearer":
		err = errors.New("it gives a token of another type than Bearer")
	case !token.Expiry.IsZero() && !token.Expiry.After(time.Now()):
		err = errors.New("it gives a token whose time is over")
	}
	return token, err
}

// took notes how a request ended. t.mu is held.
func (t *Tokens) took(token *oauth2.Token, err error, now time.Time) {
	if err != nil {
		t.delay = min(max(2*t.delay, firstRetry), lastRetry)
		t.retry = now.Add(t.delay)
		t.failed = t.explain(err)
		return
	}
	t.token, t.expires, t.renew = token.AccessToken, token.Expiry, time.Time{}
	t.failed, t.retry, t.delay = nil, time.Time{}, 0
	t.given[0], t.given[1] = t.token, t.given[0]
	if !t.expires.IsZero() {
		t.renew = t.expires.Add(-min(renewEarly, t.expires.Sub(now)/2))
	}
}
