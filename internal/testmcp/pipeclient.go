package testmcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// PipeClient is a raw MCP client of a child process, over its stdin and stdout. Fields are set before Open.
type PipeClient struct {
	Era          Era
	Version      string
	Capabilities string
	Opened       Message
	Answers      map[string]func(params Raw) string // as Client.Answers, legacy only

	t     testing.TB
	cmd   *exec.Cmd
	stdin io.WriteCloser
	outs  []io.Closer // stdout and stderr
	wg    sync.WaitGroup
	gone  chan struct{}

	mu      sync.Mutex
	ids     int
	lines   []Message
	stderr  bytes.Buffer
	changed chan struct{}
	over    bool
}

// NewPipeClient starts a process to talk to; it is killed at the test's end if it still runs. Env is added to a
// small environment.
func NewPipeClient(t testing.TB, era Era, env []string, command string, args ...string) *PipeClient {
	t.Helper()
	c := &PipeClient{Era: era, Version: Rev2511, Capabilities: "{}", Answers: map[string]func(Raw) string{}, t: t,
		gone: make(chan struct{}), changed: make(chan struct{})}
	if era == Modern {
		c.Version = Rev2607
	}
	c.cmd = exec.Command(command, args...)
	c.cmd.Env = append(smallEnv(t), env...)
	ownGroup(c.cmd)
	stdin, err := c.cmd.StdinPipe()
	check(t, err)
	stdout, err := c.cmd.StdoutPipe()
	check(t, err)
	stderr, err := c.cmd.StderrPipe()
	check(t, err)
	check(t, c.cmd.Start())
	c.stdin, c.outs = stdin, []io.Closer{stdout, stderr}
	c.wg.Go(func() { c.readLines(stdout) })
	c.wg.Go(func() { _, _ = io.Copy(writerFunc(c.keepStderr), stderr) })
	go func() { // ends with the process
		c.wg.Wait()
		_ = c.cmd.Wait()
		close(c.gone)
	}()
	t.Cleanup(c.kill)
	return c
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func (c *PipeClient) keepStderr(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stderr.Write(b)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// smallEnv is an environment with a home of the test's own, so that tests do not meet.
func smallEnv(t testing.TB) []string {
	dir := t.TempDir()
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "LANG=C.UTF-8"}
}

func (c *PipeClient) readLines(r io.Reader) {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimSuffix(line, []byte("\n")); len(line) > 0 {
			m := parseMessage(line)
			c.update(func() { c.lines = append(c.lines, m) })
			if m.kind() == messageRequest {
				c.reply(m)
			}
		}
		if err != nil {
			c.update(func() { c.over = true })
			return
		}
	}
}

func (c *PipeClient) reply(q Message) {
	out := `{"code":-32601,"message":"Method not found"}`
	if f := c.Answers[q.Method]; f != nil {
		out = f(q.Params)
		if out == "" || out[0] != '!' {
			c.Write(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":` + out + "}\n")
			return
		}
		out = out[1:]
	}
	c.Write(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"error":` + out + "}\n")
}

func (c *PipeClient) update(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// Write puts these bytes on the process's stdin as they are. A process that is gone misses them.
func (c *PipeClient) Write(text string) { _, _ = io.WriteString(c.stdin, text) }

// Start sends a request and gives its raw id.
func (c *PipeClient) Start(method, params string) string {
	c.mu.Lock()
	c.ids++
	id := strconv.Itoa(c.ids)
	c.mu.Unlock()
	c.send(id, method, params)
	return id
}

func (c *PipeClient) send(id, method, params string) {
	h := Client{Era: c.Era, Version: c.Version, Capabilities: c.Capabilities}
	c.Write(h.Body(id, method, params) + "\n")
}

// Notify sends a notification.
func (c *PipeClient) Notify(method, params string) { c.send("", method, params) }

// Open does the legacy handshake; a modern client needs none.
func (c *PipeClient) Open() *PipeClient {
	c.t.Helper()
	if c.Era == Modern {
		return c
	}
	m := c.Call("initialize", `{"protocolVersion":`+Quote(c.Version)+`,"capabilities":`+c.Capabilities+`,"clientInfo":{"name":"testmcp","version":"1"}}`)
	if m.Result() == nil {
		c.t.Fatalf("initialize: %s", m.Raw)
	}
	c.Opened, c.Version = m, m.Result().At("protocolVersion").Str()
	c.Notify("notifications/initialized", "")
	return c
}

// Call sends a request and waits for its answer.
func (c *PipeClient) Call(method, params string) Message {
	c.t.Helper()
	return c.Final(c.Start(method, params))
}

// CallTool calls a tool with raw arguments.
func (c *PipeClient) CallTool(name, arguments string) Message {
	c.t.Helper()
	return c.Call("tools/call", ToolParams(name, arguments))
}

// Final waits for the answer to the request of this raw id.
func (c *PipeClient) Final(id string) Message {
	c.t.Helper()
	return c.Wait("answer to "+id, func(m Message) bool { return m.isAnswer() && string(m.ID) == id })
}

// Wait waits for a line that matches, past ones included, and fails the test if none comes.
func (c *PipeClient) Wait(what string, match func(Message) bool) Message {
	c.t.Helper()
	late := time.NewTimer(Patience)
	defer late.Stop()
	for {
		c.mu.Lock()
		i, over, changed := slices.IndexFunc(c.lines, match), c.over, c.changed
		c.mu.Unlock()
		if i >= 0 {
			return c.Lines()[i]
		}
		if over {
			c.t.Fatalf("no %s: stdout has ended; stderr: %s", what, clip(c.Stderr(), 2000))
		}
		select {
		case <-changed:
		case <-late.C:
			c.t.Fatalf("no %s within %v; stderr: %s", what, Patience, clip(c.Stderr(), 2000))
		}
	}
}

// Lines gives everything that came on stdout.
func (c *PipeClient) Lines() []Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines)
}

// Stderr gives what came on stderr.
func (c *PipeClient) Stderr() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stderr.String()
}

// PID gives the process.
func (c *PipeClient) PID() int { return c.cmd.Process.Pid }

// Close closes stdin, waits for the exit and gives its code, -1 for a signal.
func (c *PipeClient) Close() (code int, err error) {
	_ = c.stdin.Close()
	select {
	case <-c.gone:
		return c.cmd.ProcessState.ExitCode(), nil
	case <-time.After(Patience):
		return 0, fmt.Errorf("the process did not exit within %v of the end of its stdin", Patience)
	}
}

// ExitCode gives the code of a process that has exited.
func (c *PipeClient) ExitCode() (code int, err error) {
	select {
	case <-c.gone:
		return c.cmd.ProcessState.ExitCode(), nil
	default:
		return 0, errors.New("the process runs")
	}
}

func (c *PipeClient) kill() {
	_ = c.stdin.Close()
	select {
	case <-c.gone:
		return
	default:
	}
	killGroup(c.cmd.Process.Pid)
	for _, f := range c.outs { // somebody who left the group may hold the other end
		_ = f.Close()
	}
	<-c.gone
}
