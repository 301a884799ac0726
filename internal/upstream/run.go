package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream/process"
)

// Run is one run of a program that is no server: it gets an input, and what it writes to stdout is its answer.
type Run struct {
	Args  []string
	Stdin []byte
	// Most bounds the answer, in bytes.
	Most int64
}

// ErrAnswerTooLong means that an answer is longer than allowed.
var ErrAnswerTooLong = errors.New("the answer is longer than max_answer_bytes")

// Run starts the command of the upstream with these arguments in a process group of its own, under the rules for children,
// and gives its stdout. When ctx ends the whole group is ended. Nothing of it runs any more when Run returns.
func (u *Upstream) Run(ctx context.Context, o Run) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(u.ctx, func() { cancel(ErrClosed) })()
	cfg := *u.cfg
	cfg.Args = o.Args
	r := &run{u: u, most: o.Most, tooLong: func() { cancel(ErrAnswerTooLong) }}
	if err := r.start(&cfg, o.Stdin); err != nil {
		return "", err
	}
	// Stop waits for the goroutine; where it has been called, this one reaps the process, which ctx ends at once.
	if !u.runs.atMost(0, r.wait) {
		cancel(ErrClosed)
		go r.wait()
	}
	select {
	case <-r.proc.Gone():
	case <-ctx.Done():
		r.proc.Terminate()
	}
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	return r.result()
}

// run is a process under way that nobody has a conversation with.
type run struct {
	u       *Upstream
	proc    *process.Child
	most    int64
	tooLong func()
	answer  []byte
}

func (r *run) start(cfg *config.Server, stdin []byte) (err error) {
	if r.proc, err = process.Start(r.u.home(r.u.mask), cfg); err != nil {
		return err
	}
	r.u.log.Debug("program started", zap.Int("pid", r.proc.PID()))
	r.u.mu.Lock()
	r.u.spoken = r.proc.Tail()
	r.u.mu.Unlock()
	r.proc.Go(func() {
		_, _ = r.proc.Stdin.Write(stdin) // a program need not read it
		_ = r.proc.Stdin.Close()
	})
	r.proc.Go(r.read)
	return nil
}

// read takes the answer. What is beyond its bound is not kept, and ends the run.
func (r *run) read() {
	r.answer, _ = io.ReadAll(io.LimitReader(r.proc.Stdout, r.most+1))
	if int64(len(r.answer)) > r.most {
		r.tooLong()
		_, _ = io.Copy(io.Discard, r.proc.Stdout)
	}
}

// wait sees the process off.
func (r *run) wait() {
	r.proc.Reap()
	_ = r.proc.Stdin.Close()
	r.proc.Drain()
	r.u.log.Debug("program ended", zap.Int("pid", r.proc.PID()), zap.NamedError("status", r.proc.Status()))
	r.proc.Forget()
}

// result is what the process has written, or why it failed, with the last that it said.
func (r *run) result() (string, error) {
	if r.proc.Succeeded() {
		return strings.ToValidUTF8(strings.TrimRight(string(r.answer), " \t\r\n"), "\uFFFD"), nil
	}
	last := r.proc.Tail().Last(lastWords)
	if len(last) == 0 {
		last = r.lastOfStdout()
	}
	if len(last) == 0 {
		return "", r.proc.Status()
	}
	return "", fmt.Errorf("%w; its last words: %s", r.proc.Status(), strings.Join(last, " | "))
}

// lastWords is how many lines of a process that failed stand in its error.
const lastWords = 5

// lastOfStdout is for programs that complain there.
func (r *run) lastOfStdout() []string {
	lines := strings.FieldsFunc(r.u.mask.text(string(r.answer)), func(c rune) bool { return c == '\n' || c == '\r' })
	lines = lines[max(0, len(lines)-lastWords):]
	for i, l := range lines {
		lines[i] = strings.ToValidUTF8(l[:min(len(l), process.KeptBytes)], "\uFFFD")
	}
	return lines
}
