package testmcp

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// stopLimit is how long the program may take to exit after SIGTERM.
const stopLimit = 10 * time.Second

// Proxy is the real program, running. At the test's end it is stopped by SIGTERM and must exit with 0 in time and
// leave no process behind.
type Proxy struct {
	URL    string // of the aggregate endpoint, …/mcp
	Base   string // http://host:port
	Config string // path of the configuration file

	t    testing.TB
	opt  proxyOptions
	dir  string
	addr string
	mark string // in the environment of the program, inherited by all it starts that does not clear it

	cmd    *exec.Cmd
	exited chan struct{}
	ended  bool
	seen   []int // descendants seen so far

	mu      sync.Mutex
	log     []string
	changed chan struct{}
}

type proxyOptions struct {
	args    []string
	env     []string
	file    string
	binary  string // instead of the one that is built
	noReady bool
	launch  func(*exec.Cmd)
}

// ProxyOption changes how the program is started.
type ProxyOption func(*proxyOptions)

// WithArgs adds arguments after "serve --config … --listen …".
func WithArgs(args ...string) ProxyOption {
	return func(o *proxyOptions) { o.args = append(o.args, args...) }
}

// WithEnv adds environment variables, each "NAME=value".
func WithEnv(env ...string) ProxyOption {
	return func(o *proxyOptions) { o.env = append(o.env, env...) }
}

// WithFile names the configuration file, for its extension's sake.
func WithFile(name string) ProxyOption { return func(o *proxyOptions) { o.file = name } }

// WithBinary starts this program instead of the one that the kit builds.
func WithBinary(path string) ProxyOption { return func(o *proxyOptions) { o.binary = path } }

// WithLaunch changes how the program is launched.
func WithLaunch(change func(*exec.Cmd)) ProxyOption {
	return func(o *proxyOptions) { o.launch = change }
}

// WithoutReady does not wait for /readyz; the program listens when StartProxy returns.
func WithoutReady() ProxyOption { return func(o *proxyOptions) { o.noReady = true } }

// StartProxy builds the program if need be, starts it with this configuration on a free port and waits until it
// is ready.
func StartProxy(t testing.TB, config string, opts ...ProxyOption) *Proxy {
	t.Helper()
	o := proxyOptions{file: "mcp-proxy.json"}
	for _, f := range opts {
		f(&o)
	}
	dir := t.TempDir()
	p := &Proxy{t: t, opt: o, dir: dir, addr: "127.0.0.1:0", Config: filepath.Join(dir, o.file), mark: "TESTMCP_MARK=" + dir, changed: make(chan struct{})}
	p.WriteConfig(config)
	t.Cleanup(p.cleanup)
	p.launch()
	return p
}

// Config makes a configuration of raw server entries; settings is the raw object under "proxy", "" for none.
func Config(settings string, servers map[string]string) string {
	var parts []string
	for name, entry := range servers {
		parts = append(parts, Quote(name)+":"+entry)
	}
	slices.Sort(parts)
	c := `{"mcpServers":{` + strings.Join(parts, ",") + `}`
	if settings != "" {
		c += `,"proxy":` + settings
	}
	return c + "}"
}

// WriteConfig replaces the configuration file by renaming, as careful editors do.
func (p *Proxy) WriteConfig(config string) {
	p.t.Helper()
	check(p.t, os.WriteFile(p.Config+".new", []byte(config), 0o600))
	check(p.t, os.Rename(p.Config+".new", p.Config))
}

func (p *Proxy) launch() {
	p.t.Helper()
	args := append([]string{"serve", "--config", p.Config, "--listen", p.addr}, p.opt.args...)
	if p.opt.binary == "" {
		p.opt.binary = Binary(p.t)
	}
	p.cmd = exec.Command(p.opt.binary, args...)
	p.cmd.Dir = p.dir
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "TMPDIR=" + p.dir, "LANG=C.UTF-8", p.mark}, p.opt.env...)
	ownGroup(p.cmd)
	if p.opt.launch != nil {
		p.opt.launch(p.cmd)
	}
	stderr, err := p.cmd.StderrPipe()
	check(p.t, err)
	check(p.t, p.cmd.Start())
	p.exited, p.ended = make(chan struct{}), false
	from := len(p.Log())
	go p.follow(p.cmd, stderr, p.exited)
	p.listening(from)
	if !p.opt.noReady {
		p.WaitReady()
	}
}

// follow collects the log until the program has ended.
func (p *Proxy) follow(cmd *exec.Cmd, stderr io.Reader, exited chan struct{}) {
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadString('\n')
		p.mu.Lock()
		if line != "" {
			p.log = append(p.log, strings.TrimSuffix(line, "\n"))
		}
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			break
		}
	}
	_ = cmd.Wait()
	close(exited)
}

// listening reads the address from the log record that says so.
func (p *Proxy) listening(from int) {
	p.t.Helper()
	line := p.waitLog(from, "listening", func(l string) bool { return Raw(l).At("msg").Str() == "listening" })
	u, err := url.Parse(Raw(line).At("url").Str())
	if err != nil || u.Host == "" {
		p.t.Fatalf("the listening record has no url: %s", line)
	}
	p.addr, p.Base, p.URL = u.Host, "http://"+u.Host, "http://"+u.Host+"/mcp"
}

// WaitLog waits for a line of the log that contains this text and gives it.
func (p *Proxy) WaitLog(text string) string {
	p.t.Helper()
	return p.waitLog(0, text, func(l string) bool { return strings.Contains(l, text) })
}

func (p *Proxy) waitLog(from int, what string, match func(string) bool) string {
	p.t.Helper()
	late := time.NewTimer(Patience)
	defer late.Stop()
	for {
		p.mu.Lock()
		log, changed := p.log[from:], p.changed
		p.mu.Unlock()
		if i := slices.IndexFunc(log, match); i >= 0 {
			return log[i]
		}
		select {
		case <-changed:
		case <-p.exited:
			p.t.Fatalf("the program exited with %d; its log:\n%s", p.cmd.ProcessState.ExitCode(), p.tail(30))
		case <-late.C:
			p.t.Fatalf("no log line %q within %v:\n%s", what, Patience, p.tail(30))
		}
	}
}

// Log gives the lines of the log so far.
func (p *Proxy) Log() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

func (p *Proxy) tail(n int) string {
	log := p.Log()
	return strings.Join(log[max(0, len(log)-n):], "\n")
}

// PID gives the process.
func (p *Proxy) PID() int { return p.cmd.Process.Pid }

// WaitReady waits until /readyz answers 200.
func (p *Proxy) WaitReady() {
	p.t.Helper()
	Eventually(p.t, "200 from /readyz", func() bool {
		status, _ := p.Get("/readyz")
		return status == http.StatusOK
	})
}

// Server gives the URL of one upstream's own endpoint, Profile that of a profile.
func (p *Proxy) Server(id string) string { return p.Base + "/servers/" + id + "/mcp" }

// Profile gives the URL of a profile's endpoint.
func (p *Proxy) Profile(name string) string { return p.Base + "/profiles/" + name + "/mcp" }

// Client makes a client of the aggregate endpoint that is ready to call.
func (p *Proxy) Client(era Era) *Client {
	p.t.Helper()
	return Connect(p.t, p.URL, era)
}

// WaitTool waits until the endpoint of everything lists a tool: a short startup_grace may be over before a server that is
// well has been listed.
func (p *Proxy) WaitTool(name string) {
	p.t.Helper()
	c := p.Client(Legacy)
	Eventually(p.t, "tool "+name, func() bool { return slices.Contains(c.ToolNames(), name) })
}

// Get fetches a page of the program; status 0 where nothing answers.
func (p *Proxy) Get(path string) (status int, body string) {
	c := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get(p.Base + path)
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(b)
}

// Status gives /api/v1/status.
func (p *Proxy) Status() Raw {
	p.t.Helper()
	status, body := p.Get("/api/v1/status")
	if status != http.StatusOK {
		p.t.Fatalf("/api/v1/status: %d %s", status, body)
	}
	return Raw(body)
}

// Ready gives /readyz, whatever its status.
func (p *Proxy) Ready() (status int, body Raw) {
	status, text := p.Get("/readyz")
	return status, Raw(text)
}

// Restart stops the program in order and starts it again at the same address, with the file as it is now.
func (p *Proxy) Restart() {
	p.t.Helper()
	p.Stop()
	p.launch()
}

// Again starts the program at the same address after it has ended, with the file as it is now.
func (p *Proxy) Again() {
	p.t.Helper()
	p.launch()
}

// State gives the directory where the program keeps its state unless its configuration names another.
func (p *Proxy) State() string { return filepath.Join(p.dir, ".local", "state", "mcp-proxy") }

// Reload sends SIGHUP.
func (p *Proxy) Reload() {
	p.t.Helper()
	check(p.t, hangUp(p.cmd.Process))
}

func (p *Proxy) String() string { return fmt.Sprintf("mcp-proxy %d at %s", p.PID(), p.Base) }
