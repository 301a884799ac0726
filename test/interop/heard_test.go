package interop

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// What a server hears that tells nothing of it: each message is kept on its way from the proxy.

// overhear gives a command that does what the other one does, with all that it reads in a file.
func overhear(t *testing.T, work string, command ...string) (args []string, heard func() [][]byte) {
	t.Helper()
	file := filepath.Join(work, "heard.jsonl")
	return append([]string{"-c", `tee "$0" | exec "$@"`, file}, command...), func() [][]byte {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		return bytes.Split(text, []byte("\n"))
	}
}

// overhearWeb gives a URL that leads to the other one.
func overhearWeb(t *testing.T, to string) (address string, heard func() [][]byte) {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all [][]byte
	through := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host },
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mu.Lock()
		all = append(all, body)
		mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		through.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL + target.Path, func() [][]byte {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// cancelsHeard counts the calls of tools that were cancelled under the ids that they were sent with.
func cancelsHeard(t *testing.T, messages [][]byte) (n int) {
	t.Helper()
	calls := map[string]bool{}
	for _, text := range messages {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				RequestID json.RawMessage `json:"requestId"`
			} `json:"params"`
		}
		if len(text) == 0 {
			continue
		}
		if err := json.Unmarshal(text, &m); err != nil {
			t.Errorf("%v in %q", err, text)
		}
		switch {
		case m.Method == "tools/call":
			calls[string(m.ID)] = true
		case m.Method == "notifications/cancelled" && calls[string(m.Params.RequestID)]:
			n++
			delete(calls, string(m.Params.RequestID))
		}
	}
	return n
}
