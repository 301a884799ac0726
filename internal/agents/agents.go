// Package agents serves agents as tools: a program, a model behind an OpenAI-compatible address, an agent that speaks A2A,
// or a function. Each is an MCP server in this process with one tool, which takes {"input": string} and answers with one
// text. A run has nothing in common with the run before it, and ends with the context of its call.
package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// Func runs an agent: it gets the input of one call and gives the answer. ctx ends when the call does.
type Func func(ctx context.Context, input string) (string, error)

// Exec runs a program with these arguments and this stdin, and gives what it writes to stdout, at most so many bytes.
// Nothing of it runs any more when Exec returns.
type Exec func(ctx context.Context, args []string, stdin []byte, most int64) (string, error)

// Options are what an agent needs from outside.
type Options struct {
	// Exec runs the program of an agent of kind command.
	Exec Exec
	// Func is the agent of kind function.
	Func Func
	// Mask hides secrets in a text; nil hides nothing.
	Mask    func(string) string
	Client  *http.Client
	Version string
}

// runner is one kind of agent. say takes parts of the answer as they come.
type runner interface {
	run(ctx context.Context, input string, say func(part string)) (string, error)
}

// Serve runs the agent of an entry as an MCP server, one message a line, until the stream or ctx ends. It returns when
// every run of it has ended.
func Serve(ctx context.Context, cfg *config.Server, o Options, rw io.ReadWriteCloser) error {
	a := &agent{cfg: cfg.Agent, serving: ctx, mask: o.Mask, runner: newRunner(cfg, o)}
	if a.mask == nil {
		a.mask = func(s string) string { return s }
	}
	defer a.end()
	s := mcp.NewServer(&mcp.Implementation{Name: cfg.Agent.Name, Title: cfg.Agent.Title, Version: o.Version},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	s.AddTool(&mcp.Tool{Name: cfg.Agent.Name, Title: cfg.Agent.Title, Description: cfg.Agent.Description, InputSchema: json.RawMessage(config.AgentSchema)}, a.call)
	// The frames have been bounded by then.
	return s.Run(ctx, &mcp.IOTransport{Reader: rw, Writer: rw, MaxLineLength: maxLine})
}

const maxLine = 1 << 30

func newRunner(cfg *config.Server, o Options) runner {
	switch cfg.Agent.Kind {
	case config.AgentCommand:
		return &command{cfg: cfg, exec: o.Exec}
	case config.AgentOpenAI:
		return &openAI{cfg: cfg, web: newWeb(cfg, o)}
	case config.AgentA2A:
		return &a2a{cfg: cfg, web: newWeb(cfg, o)}
	}
	return function(o.Func)
}

// agent is one agent and its runs.
type agent struct {
	cfg     *config.Agent
	serving context.Context
	mask    func(string) string
	runner  runner

	mu    sync.Mutex // orders the beginnings of runs and the end of serving
	ended bool
	runs  sync.WaitGroup
}

// begin notes a run, unless the agent is served no more.
func (a *agent) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.runs.Add(1)
	}
	return !a.ended
}

// end lets no run begin any more and waits for those that go on.
func (a *agent) end() {
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	a.runs.Wait()
}

var errNoText = errors.New("the agent gave no text")

// call runs the agent once. What it is asked wrongly is an error of the protocol, what goes wrong in it a result.
func (a *agent) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct{ Input *string }
	if err := json.Unmarshal(req.Params.Arguments, &args); err != nil || args.Input == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "input must be a string"}
	}
	if !a.begin() {
		return nil, context.Canceled
	}
	defer a.runs.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.serving, cancel)()
	p := newProgress(ctx, req)
	text, err := a.runner.run(ctx, *args.Input, p.say)
	p.flush()
	switch {
	case err == nil && int64(len(text)) > a.cfg.MaxAnswerBytes:
		err = errTooLong
	case err == nil && strings.TrimSpace(text) == "" && a.cfg.Kind != config.AgentFunction && a.cfg.Kind != config.AgentCommand:
		err = errNoText
	}
	if err != nil {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "agent run failed: " + a.mask(plainError(err))}}}, nil
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
}

var errTooLong = errors.New("the answer is longer than max_answer_bytes")

// function is an agent that is a function.
type function Func

func (f function) run(ctx context.Context, input string, _ func(string)) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the function panicked: %v", p)
		}
	}()
	return f(ctx, input)
}

// told puts the instructions of an agent before an input.
func told(a *config.Agent, input string) string {
	if a.Instructions == "" {
		return input
	}
	return a.Instructions + "\n\n" + input
}
