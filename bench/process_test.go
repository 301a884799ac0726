package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/bench/load"
)

func TestParseStat(t *testing.T) {
	const after = " S 1 2 3 4 5 6 7 8 9 10 250 50 1000 1000 20 0"
	for _, command := range []string{"(bench)", "(a b) c)", "()"} {
		got, err := parseStat([]byte("77 " + command + after))
		if err != nil || got != 3*time.Second {
			t.Errorf("%s: %v, %v", command, got, err)
		}
	}
	for _, text := range []string{"", "77 (bench) S 1 2", "77 (bench) S 1 2 3 4 5 6 7 8 9 10 x 50"} {
		if _, err := parseStat([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestCPUTimeOfThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	before, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	limit := time.Now().Add(20 * time.Second)
	for now := before; now < before+30*time.Millisecond; { // this loop is what is measured
		if now, err = cpuTime(os.Getpid()); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(limit) {
			t.Fatal("working does not show")
		}
	}
}

func TestRolesEndWithTheirInput(t *testing.T) {
	f, err := newFleet(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	at, err := f.station(t.Context(), subjectReverse, calls(100, 1))
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.station(t.Context(), subjectReverse, calls(100, 32))
	if err != nil || again.pid != at.pid {
		t.Errorf("started twice: %d and %d, %v", at.pid, again.pid, err)
	}
	if err := f.stop(); err != nil { // stop only closes their input
		t.Error(err)
	}
}

func TestStartRoleFails(t *testing.T) {
	for _, args := range [][]string{{roleReverse}, {roleReverse, "http://bad host/"}} {
		if p, err := startRole(t.Context(), args...); err == nil {
			p.stop()
			t.Errorf("%q started", args)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	cancel(reason)
	if p, err := startRole(ctx, roleHTTP); !errors.Is(err, reason) {
		if err == nil {
			p.stop()
		}
		t.Errorf("after the end of the context: %v", err)
	}
}

func TestListeningAddr(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	tests := []struct{ log, want string }{
		{"", ""},
		{"no JSON\n{\"msg\":\"other\",\"url\":\"http://127.0.0.1:1/\"}\n", ""},
		{"{\"level\":\"info\",\"msg\":\"listening\",\"url\":\"http://127.0.0.1:80", ""},
		{"{\"msg\":\"a\"}\n{\"msg\":\"listening\",\"url\":\"http://127.0.0.1:8080/mcp\"}\n", "127.0.0.1:8080"},
	}
	for _, test := range tests {
		if err := os.WriteFile(file, []byte(test.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := listeningAddr(file); got != test.want {
			t.Errorf("%q in %q", got, test.log)
		}
	}
	if got := listeningAddr(file + "2"); got != "" {
		t.Errorf("%q in a file that is not there", got)
	}
}

func TestTail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte(strings.Repeat("a", 5000)+"end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := tail(file); len(got) > 2000 || !bytes.HasSuffix(got, []byte("end")) {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// closedBody fails when it is read after its last byte, like the body of a
// request that has been answered.
type closedBody struct{ io.Reader }

func (c *closedBody) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = http.ErrBodyReadAfterClose
	}
	return n, err
}

func (*closedBody) Close() error { return nil }

func TestExactBody(t *testing.T) {
	got, err := io.ReadAll(&exactBody{&closedBody{strings.NewReader("hello")}, 5})
	if string(got) != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	got, err = io.ReadAll(&exactBody{&closedBody{strings.NewReader("hello")}, 3})
	if string(got) != "hel" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// The stand-in for the standard library's proxy must not lose answers however
// fast the upstream is.
func TestReverseProxyCarriesLongAnswers(t *testing.T) {
	upstream := httptest.NewServer(upstreamMux())
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	handler := newReverseProxy(target)
	proxy := httptest.NewServer(handler)
	defer proxy.Close()
	for _, method := range []string{"tools/call", "tools/list"} {
		c := cell{era: load.Modern, method: method, text: 64 << 10, clients: 16}
		at := station{target: c.target(proxy.Listener.Addr().String(), func(tool string) string { return tool })}
		at.target.Path = upstreamPath(c.list())
		crowd, err := gather(t.Context(), at, c.clients)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := crowd.round(t.Context(), 10*time.Millisecond, 150*time.Millisecond); err != nil {
			t.Error(err)
		}
		if err := crowd.leave(); err != nil {
			t.Error(err)
		}
	}
}

func TestRoundEndsWithItsContext(t *testing.T) {
	upstream := httptest.NewServer(upstreamMux())
	defer upstream.Close()
	c := calls(100, 2)
	at := station{target: c.target(upstream.Listener.Addr().String(), func(tool string) string { return tool })}
	crowd, err := gather(t.Context(), at, c.clients)
	if err != nil {
		t.Fatal(err)
	}
	defer crowd.leave()
	reason := fmt.Errorf("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := crowd.round(ctx, 0, time.Hour); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
}
