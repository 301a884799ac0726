package clients

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

func TestAnAddressOfAUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Path", r.Host+r.URL.Path) })}
	defer server.Close()
	go func() { _ = server.Serve(l) }()
	for address, want := range map[string]string{
		"unix:" + path: "localhost/mcp", "unix:" + path + ":/profiles/a/mcp": "localhost/profiles/a/mcp",
	} {
		url, transport := locate(address)
		resp, err := (&http.Client{Transport: transport}).Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		transport.CloseIdleConnections()
		if got := resp.Header.Get("X-Path"); got != want {
			t.Errorf("%s leads to %s", address, got)
		}
	}
	if url, _ := locate("http://h:1/mcp"); url != "http://h:1/mcp" {
		t.Errorf("another address becomes %s", url)
	}
}
