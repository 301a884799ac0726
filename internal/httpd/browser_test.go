package httpd

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func basic(user, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

const browser = "Accept: text/html,application/xhtml+xml,*/*;q=0.8"

func TestABrowserIsAskedForTheToken(t *testing.T) {
	for _, header := range []string{"", "X-Proxy-Token"} {
		h := open(t, withTokens(header), func(_ *house, o *Options) { o.Reload = func(context.Context) error { return nil } })
		asks := func(a answer) bool {
			return slices.ContainsFunc(a.Header.Values("Www-Authenticate"), func(v string) bool { return strings.HasPrefix(v, "Basic ") })
		}
		for _, path := range operatorPages() {
			if a := h.get(path, browser); a.StatusCode != http.StatusUnauthorized || !asks(a) || len(a.Header.Values("Www-Authenticate")) != 2 {
				t.Errorf("%s: HTTP %d %v", path, a.StatusCode, a.Header)
			}
			if a := h.get(path); a.StatusCode != http.StatusUnauthorized || asks(a) {
				t.Errorf("%s, by no browser: HTTP %d %v", path, a.StatusCode, a.Header)
			}
			if a := h.get(path, browser, basic("whoever", "alice-secret")); a.StatusCode != http.StatusOK || len(a.Header.Values("Www-Authenticate")) != 0 {
				t.Errorf("%s with the token: HTTP %d %v", path, a.StatusCode, a.Header)
			}
			if a := h.get(path, browser, basic("alice-secret", "wrong")); a.StatusCode != http.StatusUnauthorized || !asks(a) {
				t.Errorf("%s with a wrong token: HTTP %d %v", path, a.StatusCode, a.Header)
			}
			if a := h.get(path, browser, basic("", "bob-secret")); a.StatusCode != http.StatusForbidden {
				t.Errorf("%s with the token of a profile: HTTP %d", path, a.StatusCode)
			}
		}
		// A browser sends what it has once been given with every request, so it opens nothing that changes something.
		for _, path := range []string{"/mcp", "/-/reload"} {
			a := h.ask("POST", h.url+path, "", browser, basic("", "alice-secret"))
			h.rpcError(a, http.StatusUnauthorized)
			if asks(a) {
				t.Errorf("%s asks a browser for a token", path)
			}
		}
	}
}

// A password counts only where nothing else says who calls: a peer on the way may have one of its own.
func TestATokenOfItsOwnComesBeforeAPassword(t *testing.T) {
	h := open(t, withTokens("X-Proxy-Token"))
	for _, path := range operatorPages() {
		if a := h.get(path, "X-Proxy-Token: alice-secret", basic("nginx", "other")); a.StatusCode != http.StatusOK {
			t.Errorf("%s with a token and a password for somebody else: HTTP %d", path, a.StatusCode)
		}
		if a := h.get(path, "X-Proxy-Token: wrong", basic("", "alice-secret")); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s with a wrong token and a password: HTTP %d", path, a.StatusCode)
		}
	}
	h = open(t, withTokens(""))
	for _, path := range operatorPages() {
		r := httptest.NewRequest(http.MethodGet, h.url+path, nil)
		r.Header["Authorization"] = []string{strings.TrimPrefix(basic("", "alice-secret"), "Authorization: "), "Bearer bob-secret"}
		r.RequestURI = ""
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = a.Body.Close(); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s with two credentials: HTTP %d", path, a.StatusCode)
		}
	}
}
