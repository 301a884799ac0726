package testmcp

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"testing"
)

// A stand-in for the program, as far as the kit knows it: it logs where it listens, has pages and stops at SIGTERM.
var _ = Register("stand-in", func(args []string) *Server {
	return &Server{Start: func(p *Process) { standIn(p, args) }}
})

func standIn(p *Process, args []string) {
	config, err := os.ReadFile(args[2])
	ln, err2 := net.Listen("tcp", args[4])
	if err != nil || err2 != nil {
		p.Exit(1)
	}
	signal.Reset(endSignals()...)
	ctx, stop := signal.NotifyContext(context.Background(), endSignals()...)
	defer stop()
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", Status(200, "", ""))
	mux.HandleFunc("/metrics", Status(200, "", "# HELP x y\nx_total{a=\"1\",b=\"q\\\"}\"} 3\nx_total{a=\"2\"} 4.5 99\nplain 1e3\n"))
	mux.HandleFunc("/api/v1/status", Status(200, "", string(config)))
	go func() { _ = http.Serve(ln, mux) }() // ends with the process
	fmt.Fprintf(os.Stderr, "starting\n{\"msg\":\"listening\",\"url\":\"http://%s/mcp\"}\n", ln.Addr())
	if strings.Contains(string(config), "leak") {
		p.Spawn(Spawn{Detach: true})
	}
	<-ctx.Done()
	os.Exit(Raw(config).At("code").Int())
}

func standInProxy(t *testing.T, config string) *Proxy {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return StartProxy(t, config, WithBinary(exe), WithEnv(envChild+"=stand-in"))
}

func TestProxyIsStartedReadAndStopped(t *testing.T) {
	p := standInProxy(t, Config(`{"x":1}`, map[string]string{"b": "{}", "a": "{}"}))
	if got := p.Status().String(); got != `{"mcpServers":{"a":{},"b":{}},"proxy":{"x":1}}` {
		t.Errorf("configuration %s", got)
	}
	m := p.Metrics()
	if m.Sum("x_total") != 7.5 || m.Sum("x_total", "a", "2") != 4.5 || m.Sum("plain") != 1000 || len(m.Find("x_total", "b", `q"}`)) != 1 {
		t.Errorf("metrics %v", m)
	}
	if got := m.Names(); !slices.Equal(got, []string{"plain", "x_total"}) {
		t.Errorf("names %q", got)
	}
	url, pid := p.URL, p.PID()
	p.WriteConfig(`{"new":true}`)
	p.Restart()
	if p.URL != url || p.PID() == pid || !p.Status().Has("new") {
		t.Errorf("restarted as %s with %s", p, p.Status())
	}
	p.Kill()
	if status, _ := p.Get("/readyz"); status != 0 || Alive(p.PID()) {
		t.Error("it is not dead")
	}
}

func TestProxyThatStopsBadlyIsTold(t *testing.T) {
	for config, want := range map[string]string{
		`{"code":3}`:    "exit code 3",
		`{"leak":true}`: "left processes alive",
		`{}`:            "",
	} {
		p := standInProxy(t, config)
		if strings.Contains(config, "leak") {
			Eventually(t, "a grandchild", func() bool { return len(Descendants(p.PID())) == 1 })
		}
		got := p.finish()
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q", config, got)
		}
	}
}
