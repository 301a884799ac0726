package credentials

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	secret  = "hunter2/+ x"
	endless = 0
)

// authority is an authorization server in this process. It gives token-1, token-2 and so on.
type authority struct {
	mu     sync.Mutex
	asked  []url.Values // what it was asked, with the credentials of the header among it
	life   time.Duration
	takes  time.Duration
	answer func(n int) (status int, contentType, body string) // in place of a token
}

func (a *authority) RoundTrip(req *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(text))
	if err != nil {
		return nil, err
	}
	if basic, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Basic "); ok {
		user, err := base64.StdEncoding.DecodeString(basic)
		if err != nil {
			return nil, err
		}
		form.Set("basic", string(user))
	}
	a.mu.Lock()
	a.asked = append(a.asked, form)
	n, life, takes, answer := len(a.asked), a.life, a.takes, a.answer
	a.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
	status, kind, body := http.StatusOK, "application/json", fmt.Sprintf(`{"access_token":"token-%d","token_type":"bearer","expires_in":%d}`, n, int(life.Seconds()))
	if answer != nil {
		status, kind, body = answer(n)
	}
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}, "Location": {"https://elsewhere.example/"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

func (a *authority) times() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

func (a *authority) set(change func(a *authority)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

func refuses(int) (int, string, string) {
	return http.StatusUnauthorized, "application/json", `{"error":"invalid_client"}`
}

// from makes tokens of an authority that end with the test.
func from(t *testing.T, a *authority) *Tokens {
	t.Helper()
	tokens := New(ClientCredentials{TokenURL: "https://login.example/token?tenant=1", ClientID: "me", ClientSecret: secret,
		Scopes: []string{"read", "write"}, Params: map[string]string{"resource": "https://mcp.example/mcp"}, Timeout: 30 * time.Second, Transport: a})
	t.Cleanup(tokens.Stop)
	return tokens
}

// gives fails the test unless the next token is this one, and is there without delay.
func gives(t *testing.T, tokens *Tokens, want string) {
	t.Helper()
	began := time.Now()
	got, err := tokens.Token(t.Context())
	if got != want || err != nil || time.Since(began) > 0 {
		t.Errorf("after %v it gives %q, %v, want %q", time.Since(began), got, err, want)
	}
}

func TestWhatIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &authority{}
		gives(t, from(t, a), "token-1")
		const want = "basic=me%3Ahunter2%252F%252B%2Bx&grant_type=client_credentials&resource=https%3A%2F%2Fmcp.example%2Fmcp&scope=read+write"
		if got := a.asked[0].Encode(); got != want {
			t.Errorf("it was asked %s, want %s", got, want)
		}
	})
}

func TestManyWhoNeedATokenCauseOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &authority{takes: time.Second, life: time.Hour}
		tokens := from(t, a)
		impatient, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 50 {
			ctx := t.Context()
			if i == 0 {
				ctx = impatient
			}
			wg.Go(func() {
				got, err := tokens.Token(ctx)
				if i > 0 && (got != "token-1" || err != nil) || i == 0 && !errors.Is(err, context.Canceled) {
					t.Errorf("the caller %d gets %q, %v", i, got, err)
				}
			})
		}
		synctest.Wait()
		cancel() // whoever came first goes away, and the others do not notice
		wg.Wait()
		if n := a.times(); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

// A token is renewed a minute before its end, or half way to it, while the old one is still in use.
func TestTokensAreRenewedInTime(t *testing.T) {
	for _, c := range []struct{ life, good time.Duration }{{time.Hour, 59 * time.Minute}, {30 * time.Second, 15 * time.Second}, {endless, 1000 * time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			a := &authority{life: c.life}
			tokens := from(t, a)
			gives(t, tokens, "token-1")
			a.set(func(a *authority) { a.takes = time.Second })
			time.Sleep(c.good - 1)
			gives(t, tokens, "token-1")
			if c.life == endless {
				return
			}
			time.Sleep(time.Nanosecond)
			gives(t, tokens, "token-1")
			time.Sleep(time.Second)
			synctest.Wait()
			gives(t, tokens, "token-2")
		})
	}
}

// Where there is no other token the old one serves to its end; then whoever asks hears why, and the authorization server is
// asked again after delays that grow.
func TestAnAuthorityThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &authority{life: time.Hour}
		tokens := from(t, a)
		gives(t, tokens, "token-1")
		a.set(func(a *authority) { a.answer = refuses })
		time.Sleep(time.Hour - time.Second)
		gives(t, tokens, "token-1")
		time.Sleep(time.Second)
		before := a.times()
		for range 600 {
			if got, err := tokens.Token(t.Context()); got != "" || !strings.Contains(err.Error(), "needs authorization: no token from login.example: it answers 401, invalid_client") {
				t.Fatalf("it gives %q, %v", got, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := a.times() - before; n < 4 || n > 6 { // after 2, 4, 8, 16 and 30 seconds
			t.Errorf("%d requests in a minute", n)
		}
		a.set(func(a *authority) { a.answer = nil })
		time.Sleep(lastRetry)
		if got, err := tokens.Token(t.Context()); !strings.HasPrefix(got, "token-") || err != nil {
			t.Errorf("afterwards it gives %q, %v", got, err)
		}
	})
}

func TestATokenThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &authority{life: time.Hour}
		tokens := from(t, a)
		gives(t, tokens, "token-1")
		for _, who := range []string{"the first", "another"} {
			if !tokens.Refused("token-1") {
				t.Errorf("%s who is refused hears that there is no other", who)
			}
		}
		gives(t, tokens, "token-2")
		if got := tokens.Hide("token-1, token-2 and token-3"); got != "<secret>, <secret> and token-3" {
			t.Errorf("of two tokens it leaves %q", got)
		}
		if !tokens.Refused("token-1") {
			t.Error("one that came late is not told of the new one")
		}
		gives(t, tokens, "token-2")
		// A server that takes none of them.
		n := 0
		for range 100 {
			token, err := tokens.Token(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tokens.Refused(token) {
				n++
			}
		}
		if n != refusedBurst-1 || a.times() != refusedBurst+1 {
			t.Errorf("%d times there was to be another, %d requests", n, a.times())
		}
		time.Sleep(refusedPause)
		if token, _ := tokens.Token(t.Context()); !tokens.Refused(token) {
			t.Error("later there is no other either")
		}
	})
}

func TestWhyThereIsNoToken(t *testing.T) {
	with := func(status int, kind, body string) func(int) (int, string, string) {
		return func(int) (int, string, string) { return status, kind, body }
	}
	const json = "application/json"
	for name, c := range map[string]struct {
		answer func(int) (int, string, string)
		takes  time.Duration
		want   string
		denied bool
	}{
		"a refusal":             {with(400, json, `{"error":"invalid_scope","error_description":"no  such\nscope"}`), 0, "it answers 400, invalid_scope, no such scope", true},
		"one with the secret":   {with(401, json, `{"error":"e","error_description":"me:hunter2/+ x or hunter2%2F%2B+x"}`), 0, "it answers 401, e, me:<secret> or <secret>", true},
		"too many":              {with(429, json, `{}`), 0, "it answers 429", false},
		"a page":                {with(502, "text/html", "<h1>hunter2/+ x</h1>"), 0, "it answers 502", false},
		"a redirect":            {with(302, "text/html", ""), 0, "it answers 302", false},
		"no token":              {with(200, json, `{"token_type":"bearer"}`), 0, "server response missing access_token", false},
		"no JSON":               {with(200, json, `hunter2/+ x`), 0, "cannot parse json", false},
		"another type":          {with(200, json, `{"access_token":"t","token_type":"mac"}`), 0, "another type than Bearer", false},
		"one that is over":      {with(200, json, `{"access_token":"t","token_type":"bearer","expires_in":-5}`), 0, "whose time is over", false},
		"nobody there":          {with(0, "", ""), 0, "connection refused", false},
		"nobody who answers":    {nil, time.Minute, "it does not answer in time", false},
		"a very long complaint": {with(400, json, `{"error":"`+strings.Repeat("é", 1000)+`"}`), 0, strings.Repeat("é", maxDetail/2) + "…", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				token, err := from(t, &authority{answer: c.answer, takes: c.takes}).Token(t.Context())
				var why *Error
				if token != "" || !errors.As(err, &why) || !strings.HasSuffix(err.Error(), c.want) && !strings.Contains(err.Error(), c.want+": ") || why.Denied != c.denied {
					t.Errorf("%q, denied %v, want %q", err, why != nil && why.Denied, c.want)
				}
				if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "tenant") {
					t.Errorf("it tells too much: %v", err)
				}
			})
		})
	}
}

func TestStopEndsWhatIsBeingFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := from(t, &authority{takes: time.Hour})
		errs := make(chan error)
		go func() {
			_, err := tokens.Token(t.Context())
			errs <- err
		}()
		synctest.Wait()
		began := time.Now()
		tokens.Stop()
		if err := <-errs; err == nil || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
