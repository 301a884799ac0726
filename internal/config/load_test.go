package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFind goes through the places from the last to the first, each of which must win over those before it.
func TestFind(t *testing.T) {
	dir, env := t.TempDir(), variables{}
	serves := func(o Options, want string) {
		t.Helper()
		o.WorkDir, o.Getenv = dir, env.get
		l := Load(o)
		if len(l.Errors()) > 0 || len(l.Config.Servers) != 1 || l.Config.Servers[0].ID != want {
			t.Errorf("%+v serves %v, errors %v, and not %s", o.Path, l.Config.Servers, l.Errors(), want)
		}
		if l.Config.Dir != dir {
			t.Errorf("directory %q", l.Config.Dir)
		}
	}
	l := Load(Options{WorkDir: dir, Getenv: env.get})
	if len(l.Fatal()) != 1 {
		t.Fatalf("without a file: %v", l.Problems)
	}
	for _, word := range append([]string{"--config", "--demo", Variable}, FileNames...) {
		if !strings.Contains(l.Fatal()[0].String(), word) {
			t.Errorf("%q does not say %s", l.Fatal()[0], word)
		}
	}
	if _, err := Find(Options{WorkDir: dir, Getenv: env.get}); !errors.Is(err, ErrNotFound) {
		t.Errorf("Find: %v", err)
	}
	for i := len(FileNames) - 1; i >= 0; i-- {
		id := "file" + string(rune('0'+i))
		write(t, dir, FileNames[i], `{"mcpServers": {"`+id+`": {"command": "/x"}}}`)
		serves(Options{}, id)
	}
	write(t, dir, "other.yaml", "servers: {other: {command: /x}}")
	env[Variable] = "other.yaml"
	serves(Options{}, "other")
	env[Variable] = `{"mcpServers": {"inline": {"command": "/x"}}}`
	serves(Options{}, "inline")
	env[Variable] = "mcpServers:\n  yaml: {command: /x}\n"
	serves(Options{}, "yaml")
	serves(Options{Path: "other.yaml"}, "other")
	serves(Options{Path: filepath.Join(dir, "other.yaml")}, "other")
	serves(Options{Path: "other.yaml", Text: []byte(`{"servers":{"text":{"command":"/x"}}}`), Source: "demo"}, "text")
}

func TestMissingFile(t *testing.T) {
	l := Load(Options{Path: "no.json", WorkDir: t.TempDir(), Getenv: variables{}.get})
	if len(l.Fatal()) != 1 || l.Fatal()[0].String() != "reading the configuration no.json: no such file or directory" {
		t.Errorf("problems %v", l.Problems)
	}
	if l.Config == nil || l.Config.Proxy.Listen == "" {
		t.Error("the configuration is not usable")
	}
}

// TestDefaults spells out the promised values.
func TestDefaults(t *testing.T) {
	env := variables{"HOME": "/home/me"}
	cfg := loadText(t, `{"mcpServers":{"a":{"command":"/x"}}}`, env).Config
	want := Proxy{
		Listen: "127.0.0.1:8080", Server: ServerInfo{Name: "mcp-proxy"},
		Naming:  Naming{NamingAlways, "{server}__{tool}", 50, ConflictFail},
		Startup: StartupLenient, StartupGrace: 10 * time.Second, ShutdownGrace: 25 * time.Second,
		Auth:        Auth{Mode: AuthNone, Header: "Authorization"},
		Limits:      Limits{4194304, 33554432, 256, 10000, 10000, 1000, 250, 10000, 268435456},
		Sessions:    Sessions{SessionsStateful, nil, 30 * time.Minute, 720 * time.Hour, 30 * time.Second, 1 << 20},
		KeptResults: KeptResults{64 << 20, 1000, 15 * time.Minute},
		Log:         Log{"info", "json", ""}, StateDir: "/home/me/.local/state/mcp-proxy", StreamAfter: 3 * time.Second, KeepAlive: 15 * time.Second,
		AllowStdio: true, SocketMode: 0o600,
	}
	if !reflect.DeepEqual(cfg.Proxy, want) {
		t.Errorf("proxy is %+v\nand not %+v", cfg.Proxy, want)
	}
	server := Server{
		ID: "a", Transport: TransportStdio, Command: "/x", Protocol: ProtocolAuto, Sharing: SharingShared, Instances: 1,
		ConnectTimeout: time.Minute, CallTimeout: 2 * time.Minute, MaxCallTime: 30 * time.Minute,
		Restart:  Restart{time.Second, time.Minute, 2, 30 * time.Second},
		MaxQueue: 1000, Replay: ReplaySafe, Start: StartEager, Pin: PinOff, CatalogScope: ScopeGlobal, ReinitOnExpiredSession: true, Oversize: OversizeRefuse, ProbeInterval: time.Minute,
		Elicitation: Elicitation{ElicitationRelay, 5 * time.Minute, true}, Tasks: Tasks{true, time.Second, 10 * time.Minute, 0},
	}
	if !reflect.DeepEqual(*cfg.Servers[0], server) {
		t.Errorf("server is %+v\nand not %+v", *cfg.Servers[0], server)
	}
	env["XDG_STATE_HOME"] = "/state"
	if dir := loadText(t, `{}`, env).Config.Proxy.StateDir; dir != "/state/mcp-proxy" {
		t.Errorf("state_dir %q", dir)
	}
	if dir := loadText(t, `{}`, nil).Config.Proxy.StateDir; dir != "" {
		t.Errorf("state_dir without a home %q", dir)
	}
	if l := loadText(t, `{"mcpServers":{}}`, nil); len(l.Problems) > 0 {
		t.Errorf("no servers at all: %v", l.Problems)
	}
}

func TestRelativePaths(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "conf"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "conf/vars.env", "A=file\nB=file\n")
	write(t, dir, "conf/key", "k\n")
	write(t, dir, "conf/c.json", `{"mcpServers":{
		"a":{"command":"./bin/x","cwd":"work","env_file":"vars.env","env":{"A":"env","K":"${file:key}"}},
		"b":{"command":"~/bin/x","args":["${workspaceFolder}"]}},
		"proxy":{"state_dir":"state","log":{"file":"log.txt"}}}`)
	l := Load(Options{Path: "conf/c.json", WorkDir: dir, Getenv: variables{"HOME": "/home/me"}.get})
	if len(l.Problems) > 0 {
		t.Fatal(l.Problems)
	}
	conf := filepath.Join(dir, "conf")
	a, b, p := l.Config.Servers[0], l.Config.Servers[1], l.Config.Proxy
	got := []string{a.Command, a.Cwd, a.Env["A"], a.Env["B"], a.Env["K"], b.Command, b.Args[0], p.StateDir, p.Log.File, l.Config.Dir, l.Path}
	want := []string{conf + "/bin/x", conf + "/work", "env", "file", "k", "/home/me/bin/x", conf, conf + "/state", conf + "/log.txt", conf, conf + "/c.json"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestOneBadServer holds that a mistake stays with its server, unless the start is strict.
func TestOneBadServer(t *testing.T) {
	text := `{"mcpServers":{"good":{"command":"/x"},"bad":{"command":"/x","call_timeout":"ten","args":"x"}},"proxy":{"startup":"STARTUP"}}`
	l := loadText(t, strings.Replace(text, "STARTUP", "lenient", 1), nil)
	if len(l.Fatal()) != 0 || len(l.Errors()) != 2 {
		t.Errorf("fatal %v, errors %v", l.Fatal(), l.Errors())
	}
	good, bad := l.Config.Servers[0], l.Config.Servers[1]
	var se *ServerError
	if good.Problem != nil || !errors.As(bad.Problem, &se) || len(se.Problems) != 2 || !strings.Contains(bad.Problem.Error(), "call_timeout") {
		t.Errorf("good %v, bad %v", good.Problem, bad.Problem)
	}
	l = loadText(t, strings.Replace(text, "STARTUP", "strict", 1), nil)
	if len(l.Fatal()) != 2 {
		t.Errorf("fatal under strict: %v", l.Fatal())
	}
}

func TestOpenListener(t *testing.T) {
	for proxy, fatal := range map[string]int{
		`{"listen":"0.0.0.0:8080"}`:                                                                       1,
		`{"listen":"0.0.0.0:8080","auth":{"mode":"none"}}`:                                                0,
		`{"listen":"0.0.0.0:8080","auth":{"header":"X-Key"}}`:                                             1,
		`{"listen":"0.0.0.0:8080","auth":{"tokens":[{"name":"a","token":"${TOKEN}"}]}}`:                   0,
		`{"listen":"127.0.0.1:1","admin_listen":"127.0.0.1:1"}`:                                           1,
		`{"admin_listen":"0.0.0.0:9090"}`:                                                                 1,
		`{"admin_listen":"0.0.0.0:9090","admin_auth":{"mode":"none"}}`:                                    0,
		`{"admin_listen":"0.0.0.0:9090","admin_auth":{"tokens":[{"name":"a","token":"t"}]}}`:              0,
		`{"auth":{"tokens":[{"name":"a","token":"t","profile":"p"}]},"profiles":{"p":{"servers":["a"]}}}`: 0,
	} {
		l := loadText(t, `{"mcpServers":{"a":{"command":"/x"}},"proxy":`+proxy+`}`, variables{"TOKEN": "t"})
		if len(l.Fatal()) != fatal {
			t.Errorf("%s: %v", proxy, l.Fatal())
		}
	}
	l := Load(Options{Text: []byte(`{"mcpServers":{"a":{"url":"http://localhost:9/mcp"}},"proxy":{"listen":":8080"}}`), Source: "x", Getenv: variables{}.get, Listen: "127.0.0.1:9"})
	if len(l.Fatal()) != 0 || l.Config.Proxy.Listen != "127.0.0.1:9" || l.Config.Servers[0].Problem == nil {
		t.Errorf("the command line does not win: %v", l.Problems)
	}
	if a := loadText(t, `{"proxy":{"auth":{"tokens":[{"name":"a","token":"t"}]}}}`, nil).Config.Proxy.Auth; a.Mode != AuthTokens || a.Explicit {
		t.Errorf("tokens without a mode: %+v", a)
	}
}

func TestNumbersFromVariables(t *testing.T) {
	env := variables{"N": "7", "OFF": "true", "F": "1.5"}
	l := loadText(t, `{"mcpServers":{"a":{"command":"/x","disabled":"${OFF}","instances":"${N}","restart":{"multiplier":"${F}"}}}}`, env)
	if s := one(t, l); !s.Disabled || s.Instances != 7 || s.Restart.Multiplier != 1.5 {
		t.Errorf("server %+v", s)
	}
	l = loadText(t, `{"mcpServers":{"a":{"command":"/x","disabled":"${N}","instances":"${OFF}","restart":{"multiplier":"${OFF}"}}}}`, env)
	if len(l.Errors()) != 3 {
		t.Errorf("errors %v", l.Errors())
	}
}

func TestTextTooLarge(t *testing.T) {
	l := loadText(t, "{"+strings.Repeat(" ", maxText)+"}", nil)
	if len(l.Fatal()) != 1 || !strings.Contains(l.Fatal()[0].Msg, "larger") {
		t.Errorf("problems %v", l.Problems)
	}
}

// TestDeepText holds that nesting is a mistake with a place and never a crash or a long wait.
func TestDeepText(t *testing.T) {
	bomb := "x-0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 10; i++ {
		bomb += fmt.Sprintf("x-%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	for name, c := range map[string]struct{ file, text string }{
		"open":    {"c.json", strings.Repeat("[", maxText-1)},
		"closed":  {"c.json", strings.Repeat("[", maxText/2) + strings.Repeat("]", maxText/2)},
		"objects": {"c.json", strings.Repeat(`{"a":`, maxText/8)},
		"YAML":    {"c.yaml", "a: " + strings.Repeat("[", maxText/2)},
		"aliases": {"c.yaml", bomb},
	} {
		l := Load(Options{Path: write(t, t.TempDir(), c.file, c.text), Getenv: variables{}.get})
		if len(l.Fatal()) == 0 || !strings.Contains(l.Fatal()[0].Msg, "deep") && !strings.Contains(l.Fatal()[0].Msg, "depth") {
			t.Errorf("%s: %v", name, l.Fatal())
		}
	}
	flat := `{/* [[[ */"mcpServers":{}, // {{{` + "\n" + `"x-a":"` + strings.Repeat(`[\"{`, 200) + `"}`
	if l := loadText(t, flat, nil); len(l.Problems) > 0 {
		t.Errorf("brackets in strings and comments: %v", l.Problems)
	}
}
