package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/test/harness"
)

// runNode runs a program of Node and gives what it printed to stdout.
func runNode(ctx context.Context, s stage, home string, args ...string) ([]byte, error) {
	node, err := harness.Node(s.npm)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, node, args...)
	// The inspector starts Node again, by its name.
	path := filepath.Dir(node) + string(os.PathListSeparator) + os.Getenv("PATH")
	cmd.Env = append(os.Environ(), "HOME="+home, "PATH="+path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return out, nil
}

// typescript gives a client that is a script of the folder clients.
func typescript(script string, args ...string) client {
	return func(ctx context.Context, t *testing.T, s stage, v visit) seen {
		dir := t.TempDir()
		layScripts(t, s, dir)
		what, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		all := append([]string{filepath.Join(dir, script), s.url, string(what)}, args...)
		out, err := runNode(ctx, s, dir, all...)
		if err != nil {
			t.Fatal(err)
		}
		var got seen
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		return got
	}
}

// layScripts copies the scripts into dir, beside a link to the packages: Node looks for those near the script.
func layScripts(t *testing.T, s stage, dir string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS("clients")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(s.npm, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
}

// inspector gives the inspector's command line, which connects anew for each request.
func inspector(era string) client {
	return func(ctx context.Context, t *testing.T, s stage, v visit) seen {
		i := inspectorRun{stage: s, era: era, home: t.TempDir()}
		got, err := i.visit(ctx, v)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
}

type inspectorRun struct {
	stage stage
	era   string
	home  string
}

// inspected has the members of all results that a visit looks at.
type inspected struct {
	Tools    []named   `json:"tools"`
	Prompts  []named   `json:"prompts"`
	Content  []textual `json:"content"`
	IsError  bool      `json:"isError"`
	Contents []textual `json:"contents"`
	Messages []struct {
		Content textual `json:"content"`
	} `json:"messages"`
}

type named struct {
	Name string `json:"name"`
}

type textual struct {
	Text string `json:"text"`
}

func (i inspectorRun) visit(ctx context.Context, v visit) (seen, error) {
	got := seen{Texts: make(map[string]string)}
	tools, err := i.ask(ctx, "tools/list")
	if err != nil {
		return got, err
	}
	prompts, err := i.ask(ctx, "prompts/list")
	if err != nil {
		return got, err
	}
	got.Tools, got.Prompts = names(tools.Tools), names(prompts.Prompts)
	for _, c := range v.Calls {
		args, err := json.Marshal(c.Arguments)
		if err != nil {
			return got, err
		}
		result, err := i.ask(ctx, "tools/call", "--tool-name", c.Name, "--tool-args-json", string(args))
		if err != nil {
			return got, err
		}
		got.Texts[c.Name] = texts(result.Content)
	}
	return got, i.read(ctx, v, &got)
}

// read gets the prompt and reads the resource.
func (i inspectorRun) read(ctx context.Context, v visit, got *seen) error {
	prompt, err := i.ask(ctx, "prompts/get", "--prompt-name", v.Prompt)
	if err != nil {
		return err
	}
	for _, m := range prompt.Messages {
		got.Prompt += m.Content.Text
	}
	resource, err := i.ask(ctx, "resources/read", "--uri", v.Resource)
	got.Resource = texts(resource.Contents)
	return err
}

// ask makes one request.
func (i inspectorRun) ask(ctx context.Context, method string, args ...string) (inspected, error) {
	program := filepath.Join(i.stage.npm, "node_modules", "@modelcontextprotocol", "inspector",
		"clients", "launcher", "build", "index.js")
	all := append([]string{
		program, "--cli", "--server-url", i.stage.url, "--transport", "http", "--protocol-era", i.era,
		"--format", "json", "--quiet", "--method", method,
	}, args...)
	out, err := runNode(ctx, i.stage, i.home, all...)
	if err != nil {
		return inspected{}, err
	}
	var answer struct {
		Result *inspected `json:"result"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return inspected{}, fmt.Errorf("%s: %w in %q", method, err, out)
	}
	if answer.Result == nil || answer.Result.IsError {
		return inspected{}, fmt.Errorf("%s: no good result in %q", method, out)
	}
	return *answer.Result, nil
}

func names(items []named) []string {
	out := make([]string, 0, len(items))
	for _, item := range items {
		out = append(out, item.Name)
	}
	return out
}

func texts(items []textual) string {
	out := make([]string, 0, len(items))
	for _, item := range items {
		out = append(out, item.Text)
	}
	return strings.Join(out, "\n")
}
