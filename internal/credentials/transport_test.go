package credentials

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// gate is an upstream that lets in who has one of these tokens.
type gate struct {
	lets []string
	seen []string // Authorization and body of each request
}

func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	sent := req.Header.Get("Authorization")
	g.seen = append(g.seen, strings.TrimSpace(sent+" "+string(body)))
	status := http.StatusUnauthorized
	for _, token := range g.lets {
		if sent == "Bearer "+token {
			status = http.StatusOK
		}
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(fmt.Sprint(len(g.seen)))), Request: req}, nil
}

func TestRequestsAreSentOnceMoreWithAnotherToken(t *testing.T) {
	for name, c := range map[string]struct {
		lets   []string
		method string
		body   io.Reader
		want   string // what the upstream saw
		status int
	}{
		"it is good":            {[]string{"token-1"}, http.MethodPost, strings.NewReader("frame"), "Bearer token-1 frame", 200},
		"it is good no more":    {[]string{"token-2"}, http.MethodPost, strings.NewReader("frame"), "Bearer token-1 frame, Bearer token-2 frame", 200},
		"none is good":          {nil, http.MethodPost, strings.NewReader("frame"), "Bearer token-1 frame, Bearer token-2 frame", 401},
		"without a body":        {[]string{"token-2"}, http.MethodGet, nil, "Bearer token-1, Bearer token-2", 200},
		"what cannot come back": {[]string{"token-2"}, http.MethodPost, io.MultiReader(strings.NewReader("frame")), "Bearer token-1 frame", 401},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &gate{lets: c.lets}
				rt := &Transport{Base: g, Tokens: from(t, &authority{life: time.Hour})}
				req, err := http.NewRequestWithContext(t.Context(), c.method, "https://mcp.example/mcp", c.body)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := rt.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = resp.Body.Close() }()
				answer, err := io.ReadAll(resp.Body)
				if got := strings.Join(g.seen, ", "); got != c.want || resp.StatusCode != c.status || string(answer) != fmt.Sprint(len(g.seen)) || err != nil {
					t.Errorf("the server saw %q and answered %d, %s, %v", got, resp.StatusCode, answer, err)
				}
				if req.Header.Get("Authorization") != "" {
					t.Error("the request was changed")
				}
			})
		})
	}
}

// closes notes that it was closed.
type closes struct {
	io.Reader
	closed bool
}

func (c *closes) Close() error { c.closed = true; return nil }

func TestWithoutATokenNothingIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, body := &gate{}, &closes{Reader: strings.NewReader("frame")}
		rt := &Transport{Base: g, Tokens: from(t, &authority{answer: refuses})}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://mcp.example/mcp", body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := rt.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "needs authorization") || len(g.seen) != 0 || !body.closed {
			t.Errorf("%v, the server saw %q, the body is closed: %v", err, g.seen, body.closed)
		}
	})
}
