//go:build unix

package app

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-proxy/mcp-proxy/internal/clients"
	"github.com/mcp-proxy/mcp-proxy/internal/demo"
)

// socketPath is a short path: those of sockets are bounded.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func TestAProxyAtAUnixSocket(t *testing.T) {
	path := socketPath(t)
	o := options(t, "", map[string]*mcp.Server{"notes": demo.Notes("1")})
	o.Config.Proxy.Listen, o.Config.Proxy.SocketMode = "unix:"+path, 0o640
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	a.WaitListed(t.Context())
	if a.URL() != "unix:"+path {
		t.Errorf("its address is %s", a.URL())
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != fs.ModeSocket|0o640 {
		t.Errorf("the socket is %v, %v", info, err)
	}
	for address, tool := range map[string]string{a.URL(): "notes__find", a.URL() + ":/servers/notes/mcp": "find"} {
		if got, err := (&clients.Caller{URL: address}).Call(t.Context(), tool, []byte(`{}`)); err != nil || !strings.HasPrefix(string(got), "welcome") {
			t.Errorf("a call at %s gives %s, %v", address, got, err)
		}
	}
	if err := clients.Health(t.Context(), a.URL()); err != nil {
		t.Error(err)
	}
	if _, err := New(o); !errors.Is(err, errServed) {
		t.Errorf("a second one at the same socket gives %v", err)
	}
	if err := clients.Health(t.Context(), a.URL()); err != nil {
		t.Errorf("after a second one was refused: %v", err)
	}
	if err := a.Stop(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if err := clients.Health(t.Context(), a.URL()); err == nil {
		t.Error("it is alive after its end")
	}
}

func TestWhatStandsWhereASocketIsToBe(t *testing.T) {
	t.Run("a socket that nobody listens at", func(t *testing.T) {
		path := socketPath(t)
		old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		old.SetUnlinkOnClose(false)
		_ = old.Close()
		l, err := listenUnix(path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != fs.ModeSocket|0o600 {
			t.Errorf("the socket is %v, %v", info, err)
		}
		_ = l.Close()
	})
	t.Run("a file", func(t *testing.T) {
		path := socketPath(t)
		if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := listenUnix(path, 0o600); !errors.Is(err, errNoSocket) {
			t.Errorf("it gives %v", err)
		}
		if b, _ := os.ReadFile(path); string(b) != "precious" {
			t.Error("the file has been touched")
		}
	})
	t.Run("no directory", func(t *testing.T) {
		if _, err := listenUnix(filepath.Join(socketPath(t), "s"), 0o600); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it gives %v", err)
		}
	})
	t.Run("another in our place", func(t *testing.T) {
		path := socketPath(t)
		ours, err := listenUnix(path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		other, err := listenUnix(path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_ = ours.Close()
		if c, err := net.Dial("unix", path); err != nil {
			t.Errorf("the socket of the other went with ours: %v", err)
		} else {
			_ = c.Close()
		}
		_ = other.Close()
	})
	t.Run("another in our place, after our end", func(t *testing.T) {
		path := socketPath(t)
		ours, err := listenUnix(path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_ = ours.Close()
		other, err := listenUnix(path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		ours.(*unixListener).made = other.(*unixListener).made // the inode is used again
		_ = ours.Close()
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("the socket of the other went with ours: %v", err)
		}
	})
}
