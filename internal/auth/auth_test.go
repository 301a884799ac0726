package auth

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func tokens(header string) config.Auth {
	return config.Auth{Mode: config.AuthTokens, Header: header, Tokens: []config.Token{
		{Name: "alice", Token: "alice-secret"},
		{Name: "bob", Token: "bob-secret", Profile: "small"},
		{Name: "odd", Token: "bearer-like"},
	}}
}

func TestAuthenticate(t *testing.T) {
	alice, bob, odd := Principal{Name: "alice"}, Principal{Name: "bob", Profile: "small"}, Principal{Name: "odd"}
	cases := []struct {
		header string
		values []string
		want   Principal
		err    error
	}{
		{"", nil, Principal{}, ErrMissing},
		{"", []string{"Bearer alice-secret"}, alice, nil},
		{"", []string{"bearer bob-secret"}, bob, nil},
		{"authorization", []string{"BEARER   alice-secret "}, alice, nil},
		{"", []string{"Bearer\tbearer-like"}, odd, nil},
		{"", []string{""}, Principal{}, ErrMalformed},
		{"", []string{"Bearer"}, Principal{}, ErrMalformed},
		{"", []string{"Bearer "}, Principal{}, ErrMalformed},
		{"", []string{"alice-secret"}, Principal{}, ErrMalformed},
		{"", []string{"Beareralice-secret"}, Principal{}, ErrMalformed},
		{"", []string{"Basic YTpi"}, Principal{}, ErrMalformed},
		{"", []string{"Bearer alice-secret", "Bearer alice-secret"}, Principal{}, ErrMalformed},
		{"", []string{"Bearer wrong"}, Principal{}, ErrUnknown},
		{"", []string{"Bearer alice-secre"}, Principal{}, ErrUnknown},
		{"", []string{"Bearer alice-secretx"}, Principal{}, ErrUnknown},
		{"", []string{"Bearer Alice-Secret"}, Principal{}, ErrUnknown},
		{"", []string{"Bearer " + strings.Repeat("a", 10_000)}, Principal{}, ErrUnknown},
		{"x-proxy-key", []string{"alice-secret"}, alice, nil},
		{"x-proxy-key", []string{"Bearer bob-secret"}, bob, nil},
		{"x-proxy-key", []string{"bearer-like"}, odd, nil},
		{"x-proxy-key", []string{"wrong"}, Principal{}, ErrUnknown},
		{"x-proxy-key", []string{" "}, Principal{}, ErrMalformed},
		{"x-proxy-key", nil, Principal{}, ErrMissing},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s %.40q", c.header, c.values), func(t *testing.T) {
			a := New(tokens(c.header))
			got, err := a.Authenticate(http.Header{a.Header(): c.values})
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %+v, %v; want %+v, %v", got, err, c.want, c.err)
			}
		})
	}
}

func TestOnlyTheConfiguredHeaderCounts(t *testing.T) {
	a := New(tokens("X-Proxy-Key"))
	_, err := a.Authenticate(http.Header{"Authorization": {"Bearer alice-secret"}})
	if !errors.Is(err, ErrMissing) {
		t.Errorf("a token in another header gives %v", err)
	}
}

func TestModeNone(t *testing.T) {
	for _, mode := range []config.AuthMode{"", config.AuthNone} {
		a := New(config.Auth{Mode: mode})
		who, err := a.Authenticate(http.Header{"Authorization": {"Bearer whatever"}})
		if who != (Principal{}) || err != nil || a.Required() {
			t.Errorf("mode %q: %+v, %v, required %v", mode, who, err, a.Required())
		}
	}
}

func TestNoTokensMeansNobody(t *testing.T) {
	a := New(config.Auth{Mode: config.AuthTokens})
	if _, err := a.Authenticate(http.Header{"Authorization": {"Bearer x"}}); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

func TestErrorsHideTheCredential(t *testing.T) {
	a := New(tokens(""))
	for _, v := range []string{"Bearer s3cr3t-value", "s3cr3t-value"} {
		if _, err := a.Authenticate(http.Header{"Authorization": {v}}); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q gives %v", v, err)
		}
	}
}

func TestAuthenticateDoesNotAllocate(t *testing.T) {
	a := New(tokens(""))
	h := http.Header{"Authorization": {"Bearer bob-secret"}}
	if n := testing.AllocsPerRun(100, func() { a.Authenticate(h) }); n > 0 {
		t.Errorf("%v allocations per request, want none", n)
	}
}

func FuzzToken(f *testing.F) {
	for _, s := range []string{"Bearer alice-secret", "bearer", "Bearer  x", "Basic a", "", "\tBearer\tx"} {
		f.Add(s)
	}
	a := New(tokens(""))
	f.Fuzz(func(t *testing.T, value string) {
		who, err := a.Authenticate(http.Header{"Authorization": {value}})
		if (err == nil) == (who == Principal{}) {
			t.Fatalf("%q gives %+v, %v", value, who, err)
		}
		if err != nil {
			return
		}
		fields := strings.Fields(value)
		if len(fields) != 2 || !strings.EqualFold(fields[0], "bearer") {
			t.Fatalf("%q was let in", value)
		}
	})
}

func BenchmarkAuthenticate(b *testing.B) {
	a := New(tokens(""))
	h := http.Header{"Authorization": {"Bearer bob-secret"}}
	b.ReportAllocs()
	for b.Loop() {
		a.Authenticate(h)
	}
}
