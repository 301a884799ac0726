//go:build unix

package faults

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// babble writes garbage to stdout and answers nothing; mute hangs after its start.
var (
	_ = testmcp.Register("babble", func([]string) *testmcp.Server {
		return &testmcp.Server{Before: func(c *testmcp.Call) bool {
			c.Process().Stdout("\x00\x01{]}\n<html>{\"jsonrpc\":\n\"2.0\n")
			return true
		}}
	})
	_ = testmcp.Register("mute", func([]string) *testmcp.Server {
		return &testmcp.Server{Before: func(*testmcp.Call) bool { return true }}
	})
	_ = testmcp.Register("quitter", func([]string) *testmcp.Server {
		return &testmcp.Server{Start: func(p *testmcp.Process) {
			p.Stderr("fatal: SOME_KEY is not set\n")
			p.Exit(7)
		}}
	})
)

// fault is an upstream that cannot be used.
type fault struct {
	entry string
	says  []string // what status must tell, one of them
}

// url is an entry that is given up after a short while.
func url(to string) string { return `{"url":` + testmcp.Quote(to) + `,"connect_timeout":"1s"}` }

// answering serves every request with one handler.
func answering(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return url(srv.URL + "/mcp")
}

// faults are all of them, by a name that can stand in a configuration.
func faults(t *testing.T) map[string]fault {
	t.Helper()
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	t.Cleanup(tls.Close)
	rec := testmcp.NewRecorder(t)
	return map[string]fault{
		"refused":        {url("http://" + testmcp.RefusedAddr(t) + "/mcp"), []string{"refused"}},
		"unknown-name":   {url("http://no-such-host.invalid/mcp"), []string{"no-such-host.invalid"}},
		"black-hole":     {url("http://" + blackHole(t) + "/mcp"), []string{"connect_timeout", "timeout"}},
		"unknown-issuer": {url(tls.URL + "/mcp"), []string{"x509", "certificate"}},
		"no-tls":         {url("https://" + testmcp.GarbageAddr(t, "HTTP/1.1 400 Bad Request\r\n\r\n") + "/mcp"), []string{"tls", "HTTPS"}},
		"unauthorized":   {answering(t, testmcp.Status(401, "application/json", `{"error":"invalid_token"}`)), []string{"401"}},
		"forbidden":      {answering(t, testmcp.Status(403, "text/plain", "no")), []string{"403"}},
		"error-500":      {answering(t, testmcp.Status(500, "text/plain", "oops")), []string{"500"}},
		"error-502-html": {answering(t, testmcp.HTML(502)), []string{"502"}},
		"html":           {answering(t, testmcp.HTML(200)), []string{"text/html"}},
		"empty":          {answering(t, testmcp.Status(200, "application/json", "")), []string{"without a message", "not valid"}},
		"not-json":       {answering(t, testmcp.Status(200, "application/json", "hello")), []string{"not valid"}},
		"not-http":       {url("http://" + testmcp.GarbageAddr(t, "SSH-2.0-OpenSSH_9.9\r\n") + "/mcp"), []string{"malformed"}},
		"closes":         {url("http://" + testmcp.GarbageAddr(t, "") + "/mcp"), []string{"EOF", "lost"}},
		"resets":         {answering(t, testmcp.Reset), []string{"reset", "EOF"}},
		"hangs":          {url("http://" + testmcp.SilentAddr(t) + "/mcp"), []string{"connect_timeout"}},
		"holds-open":     {answering(t, testmcp.HoldOpen), []string{"connect_timeout"}},
		"redirects-away": {answering(t, testmcp.Redirect(307, "http://192.0.2.1/mcp")), []string{"another origin"}},
		"no-such-file":   {`{"command":"/no/such/server"}`, []string{"no such file"}},
		"not-in-path":    {`{"command":"no-such-command-anywhere"}`, []string{"not found"}},
		"not-executable": {`{"command":` + testmcp.Quote(file(t, "#!/bin/sh\n", 0o600)) + `}`, []string{"permission denied"}},
		"a-directory":    {`{"command":` + testmcp.Quote(t.TempDir()) + `}`, []string{"directory"}},
		"bad-script":     {`{"command":` + testmcp.Quote(file(t, "#!/no/such/interpreter\n", 0o700)) + `}`, []string{"no such file"}},
		"exits":          {rec.Entry("quitter", nil), []string{"SOME_KEY is not set"}},
		"babbles":        {rec.Entry("babble", nil, `"connect_timeout":"1s"`), []string{"connect_timeout"}},
		"mute":           {rec.Entry("mute", nil, `"connect_timeout":"1s"`), []string{"connect_timeout"}},
	}
}

func file(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return name
}

// blackHole gives an address whose connections are never made: nobody accepts, and the queue of those that wait is full.
func blackHole(t *testing.T) string {
	t.Helper()
	addr := fullQueue(t)
	for range 16 { // more than any queue of that listener holds
		c, err := net.DialTimeout("tcp", addr, blackHoleWait)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("the queue of a listener that accepts nothing is never full")
	return ""
}
