package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
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
	r := &run{child: newChild(u.processEnv()), u: u, most: o.Most, tooLong: func() { cancel(ErrAnswerTooLong) }}
	if err := r.start(&cfg, o.Stdin); err != nil {
		return "", err
	}
	// Stop waits for the goroutine; where it has been called, this one reaps the process, which ctx ends at once.
	if !u.runs.atMost(0, r.wait) {
		cancel(ErrClosed)
		go r.wait()
	}
	select {
	case <-r.gone:
	case <-ctx.Done():
		r.end()
	}
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	return r.result()
}

// processEnv is what a process needs that is no connection.
func (u *Upstream) processEnv() *env {
	return &env{id: u.ID, mask: u.mask, log: u.log, count: u.opts.Count, brood: &u.brood, ledger: u.opts.Ledger, usage: u.opts.Metrics.children()}
}

// run is a process under way: a child without a conversation.
type run struct {
	*child
	u       *Upstream
	ours    [3]*os.File
	most    int64
	tooLong func()
	answer  []byte
}

func (r *run) start(cfg *config.Server, stdin []byte) (err error) {
	if r.ours, err = r.begin(cfg); err != nil {
		return err
	}
	r.env.log.Debug("program started", zap.Int("pid", r.cmd.Process.Pid))
	r.u.mu.Lock()
	r.u.spoken = r.stderr
	r.u.mu.Unlock()
	r.pumps.Go(func() {
		_, _ = r.ours[0].Write(stdin) // a program need not read it
		_ = r.ours[0].Close()
	})
	r.pumps.Go(r.read)
	r.pumps.Go(func() { r.stderr.drain(r.ours[2]) })
	r.enlist()
	return nil
}

// read takes the answer. What is beyond its bound is not kept, and ends the run.
func (r *run) read() {
	r.answer, _ = io.ReadAll(io.LimitReader(r.ours[1], r.most+1))
	if int64(len(r.answer)) > r.most {
		r.tooLong()
		_, _ = io.Copy(io.Discard, r.ours[1])
	}
}

// wait sees the process end, ends what is left of its group, and lets the pipes run dry, as for a child.
func (r *run) wait() {
	r.reap()
	timer := time.AfterFunc(drainAfterExit, func() { closeAll(r.ours[1:]...) })
	_ = r.ours[0].Close()
	r.pumps.Wait()
	timer.Stop()
	closeAll(r.ours[1:]...)
	r.forget()
	r.env.log.Debug("program ended", zap.Int("pid", r.cmd.Process.Pid), zap.NamedError("status", r.status))
	close(r.gone)
}

// end stops the process: it and all that it has started get SIGTERM, and then SIGKILL.
func (r *run) end() {
	r.signal(false)
	t := time.NewTimer(graceAfterTerm)
	defer t.Stop()
	select {
	case <-r.exited:
	case <-t.C:
		r.kill()
	}
	<-r.gone
}

// result is what the process has written, or why it failed, with the last that it said.
func (r *run) result() (string, error) {
	if r.cmd.ProcessState != nil && r.cmd.ProcessState.Success() {
		return strings.ToValidUTF8(strings.TrimRight(string(r.answer), " \t\r\n"), "\uFFFD"), nil
	}
	last := r.stderr.last(lastWords)
	if len(last) == 0 {
		last = r.lastOfStdout()
	}
	if len(last) == 0 {
		return "", r.status
	}
	return "", fmt.Errorf("%w; its last words: %s", r.status, strings.Join(last, " | "))
}

// lastWords is how many lines of a process that failed stand in its error.
const lastWords = 5

// lastOfStdout is for programs that complain there.
func (r *run) lastOfStdout() []string {
	lines := strings.FieldsFunc(r.u.mask.text(string(r.answer)), func(c rune) bool { return c == '\n' || c == '\r' })
	lines = lines[max(0, len(lines)-lastWords):]
	for i, l := range lines {
		lines[i] = strings.ToValidUTF8(l[:min(len(l), stderrLine)], "\uFFFD")
	}
	return lines
}
