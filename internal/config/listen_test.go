package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckListen(t *testing.T) {
	open, said, tokens := Auth{Mode: AuthNone}, Auth{Mode: AuthNone, Explicit: true}, Auth{Mode: AuthTokens}
	for _, c := range []struct {
		addr string
		auth Auth
		want error
	}{
		{"127.0.0.1:8080", open, nil}, {"localhost:0", open, nil}, {"[::1]:8080", open, nil}, {"127.1.2.3:1", open, nil}, {"[::ffff:127.0.0.1]:1", open, nil},
		{":8080", open, ErrListenOpen}, {"0.0.0.0:8080", open, ErrListenOpen}, {"[::]:8080", open, ErrListenOpen}, {"10.0.0.1:80", open, ErrListenOpen},
		{"example.com:80", open, ErrListenOpen}, {"127.0.0.1.example.com:80", open, ErrListenOpen},
		{":8080", said, nil}, {"0.0.0.0:8080", tokens, nil},
		{"8080", said, ErrListenAddress}, {"", said, ErrListenAddress}, {"127.0.0.1:http", said, ErrListenAddress}, {"127.0.0.1:65536", said, ErrListenAddress},
		{"127.0.0.1:-1", said, ErrListenAddress}, {"http://127.0.0.1:80", said, ErrListenAddress}, {"h/x:80", said, ErrListenAddress}, {"127.0.0.1:00", said, ErrListenAddress},
	} {
		err := CheckListen(c.addr, c.auth)
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%q with %v: %v and not %v", c.addr, c.auth, err, c.want)
		}
		if c.want == ErrListenOpen && !strings.Contains(err.Error(), `"auth": {"mode": "none"}`) {
			t.Errorf("%q: the remedy is not told: %v", c.addr, err)
		}
	}
}

func TestPointsAtSelf(t *testing.T) {
	for _, c := range []struct {
		url, listen string
		want        bool
	}{
		{"http://127.0.0.1:8080/mcp", "127.0.0.1:8080", true}, {"http://LOCALHOST:8080/mcp", "127.0.0.1:8080", true}, {"http://localhost.:8080/", "127.0.0.1:8080", true},
		{"http://[::1]:8080/mcp", "127.0.0.1:8080", true}, {"http://0.0.0.0:8080/mcp", "127.0.0.1:8080", true}, {"http://127.0.0.1:8080/mcp", ":8080", true},
		{"http://127.0.0.1:8080/mcp", "0.0.0.0:8080", true}, {"http://127.0.0.1/mcp", "127.0.0.1:80", true}, {"https://localhost/mcp", "127.0.0.1:443", true},
		{"http://10.9.8.7:8080/", "10.9.8.7:8080", true}, {"http://[::ffff:10.9.8.7]:8080/", "10.9.8.7:8080", true}, {"http://proxy.test:8080/", "proxy.test:8080", true},
		{"http://127.0.0.1:8081/mcp", "127.0.0.1:8080", false}, {"http://example.com:8080/mcp", "127.0.0.1:8080", false}, {"http://example.com:8080/mcp", ":8080", false},
		{"http://127.0.0.1:8080/", "10.9.8.7:8080", false}, {"http://10.9.8.7:8080/", "127.0.0.1:8080", false}, {"http://127.0.0.1:8080/", "127.0.0.1:0", false},
		{"http://127.0.0.1:8080/", "nonsense", false}, {":", "127.0.0.1:8080", false}, {"http:///x", ":80", false},
	} {
		if got := PointsAtSelf(c.url, c.listen); got != c.want {
			t.Errorf("%s with %s: %v", c.url, c.listen, got)
		}
	}
}

func TestUnpinned(t *testing.T) {
	for line, want := range map[string]bool{
		"npx -y pkg": true, "npx -y @s/pkg": true, "npx -y @s/pkg@1.2.3": false, "npx pkg@latest": true, "npx pkg@next": true, "npx pkg@2": false,
		"npx --package=pkg tool": true, "npx -p pkg@1.0.0 tool": false, "npx ./local": false, "npx github:o/r": false, "npx": false, "C:/npm/NPX.CMD pkg": true,
		"/usr/bin/npx -y mcp-remote@0.1 http://h": false, "pnpm dlx pkg": true, "yarn dlx pkg@1": false, "bun x pkg": true, "npm exec pkg": true, "npm start": false, "bunx pkg": true,
		"cmd /c npx -y pkg": true, "uvx pkg": true, "uvx pkg==1.0": false, "uvx pkg@1.0": false, "uvx pkg@latest": true, "uvx --from git+https://h/r tool": false,
		"uvx --python 3.12 pkg": true, "uvx --python 3.12 pkg==1": false, "uv tool run pkg": true, "uv run server.py": false, "pipx run pkg": true, "pipx run --spec pkg==1 tool": false,
		"docker run -i --rm image": true, "docker run -i image:latest": true, "docker run -i image:1.2": false, "docker run -e A=1 -v /a:/b h:5000/t/image": true,
		"docker run -e A h:5000/t/image:3 run": false, "docker run image@sha256:abc": false, "podman run --env=A image": true, "docker ps": false, "docker": false, "node server.js": false,
	} {
		words := strings.Fields(line)
		if got := unpinned(words[0], words[1:]) != ""; got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestAUnixSocketIsOnThisMachine(t *testing.T) {
	l := loadText(t, `{"mcpServers": {}, "proxy": {"listen": "unix:run/mcp.sock", "admin_listen": "unix:/run/admin.sock", "socket_mode": "0660"}}`, nil)
	if errs := l.Errors(); len(errs) > 0 {
		t.Fatal(errs)
	}
	p := l.Config.Proxy
	if want := "unix:" + filepath.Join(l.Config.Dir, "run", "mcp.sock"); p.Listen != want || p.SocketMode != 0o660 {
		t.Errorf("listens at %s with %o, not at %s", p.Listen, p.SocketMode, want)
	}
}
