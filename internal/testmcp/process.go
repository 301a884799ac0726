package testmcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
)

// Process is the child itself, in the hands of a script that lets it misbehave. It exists in children only.
type Process struct {
	in     *Instance
	stdin  *os.File
	out    *frameWriter
	eof    chan struct{}
	closed atomic.Bool // stdin was closed by the script
}

// Stdout writes these bytes to stdout as they are, noise or half a frame.
func (p *Process) Stdout(b string) {
	p.out.raw([]byte(b))
}

// StdoutSlowly writes one byte per write.
func (p *Process) StdoutSlowly(b string) {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	for i := range len(b) {
		_, _ = io.WriteString(p.out.w, b[i:i+1])
	}
}

// Stderr writes to stderr.
func (p *Process) Stderr(b string) { _, _ = io.WriteString(os.Stderr, b) }

// FloodStderr writes n bytes of lines to stderr; without lines they hold no newline at all.
func (p *Process) FloodStderr(n int, lines bool) {
	text := bytes.Repeat([]byte("stderr noise "), 8)
	if lines {
		text = append(text, '\n')
	}
	for n > 0 {
		k := min(n, len(text))
		p.Stderr(string(text[:k]))
		n -= k
	}
}

// Exit ends the process with this code at once; the unanswered stay so.
func (p *Process) Exit(code int) {
	p.in.record(Record{Kind: Exit, Text: strconv.Itoa(code)})
	os.Exit(code)
}

// Crash ends the process by SIGKILL, as the out-of-memory killer does.
func (p *Process) Crash() { killSelf() }

// CloseStdin closes the reading end, so that the client's next write fails; stdout stays open.
func (p *Process) CloseStdin() {
	p.closed.Store(true)
	_ = p.stdin.Close()
}

// CloseStdout ends the answers while the process lives on.
func (p *Process) CloseStdout() { _ = os.Stdout.Close() }

// IgnoreSIGTERM makes the process record SIGTERM and live on.
func (p *Process) IgnoreSIGTERM() { p.in.setValue(ignoreSignals, 1) }

// Context ends never while the process lives; it is for waiting in Start.
func (p *Process) Context() context.Context { return p.in.ctx }

// Until waits for a signal of the test.
func (p *Process) Until(signal string) { <-p.in.rec.signal(signal) }

// AfterEOF waits until stdin has ended.
func (p *Process) AfterEOF() { <-p.eof }

// Hang blocks for ever without using the processor.
func (p *Process) Hang() { select {} }

// Burn uses a whole processor until the process is ended from outside.
func (p *Process) Burn() {
	for p.in.ctx.Err() == nil {
		continue
	}
}

// Note puts a line of the script's own into the record.
func (p *Process) Note(text string) { p.in.record(Record{Kind: Note, Text: text}) }

const ignoreSignals = "testmcp.ignore-signals"

// Spawn describes a grandchild.
type Spawn struct {
	HoldPipes bool // it keeps stdout and stderr open
	Detach    bool // it leaves the process group and session
	Stubborn  bool // it ignores SIGTERM
}

// Spawn starts a process that sleeps for ten minutes and records its pid.
func (p *Process) Spawn(how Spawn) {
	script := "exec sleep 600"
	if how.Stubborn {
		script = "trap '' TERM; exec sleep 600" // what is ignored stays so across exec
	}
	cmd := exec.Command("sh", "-c", script)
	if how.HoldPipes {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	}
	if how.Detach {
		detach(cmd)
	}
	if err := cmd.Start(); err != nil {
		p.Stderr(fmt.Sprintln("spawn:", err))
		p.Exit(3)
	}
	p.in.record(Record{Kind: Spawned, Text: strconv.Itoa(cmd.Process.Pid)})
}

// SpawnedPIDs gives the processes that the children of this recorder started.
func (r *Recorder) SpawnedPIDs() []int {
	var out []int
	for _, rec := range r.Find(Is(Spawned)) {
		pid, err := strconv.Atoi(strings.TrimSpace(rec.Text))
		if err == nil {
			out = append(out, pid)
		}
	}
	return out
}

func (in *Instance) setValue(name string, n int) {
	in.mu.Lock()
	in.values[name] = n
	in.mu.Unlock()
}

func (in *Instance) value(name string) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.values[name]
}
