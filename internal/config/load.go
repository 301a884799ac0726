package config

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Variable is the environment variable that gives a path or the configuration itself.
const Variable = "MCP_PROXY_CONFIG"

// FileNames are looked for in the working directory, in this order, when nothing else names a configuration.
var FileNames = []string{"mcp-proxy.json", "mcp-proxy.jsonc", "mcp-proxy.yaml", ".mcp.json", "mcp.json"}

// ErrMistakes is what the errors about mistakes in a configuration are.
var ErrMistakes = errors.New("the configuration has mistakes")

// ErrNotFound is returned by Find when there is no configuration anywhere.
var ErrNotFound = errors.New("no configuration")

// Options say where the configuration is.
type Options struct {
	// Path names the file; empty to look for one.
	Path string
	// WorkDir is where files are looked for and what inline text is relative to; empty for the working directory.
	WorkDir string
	// Getenv gives variables; nil for those of the process.
	Getenv func(string) (string, bool)
	// Text is used in place of a file when it is not nil; Source then names it in messages.
	Text   []byte
	Source string
	// Listen and AdminListen take the place of what the configuration says, where they are not empty.
	Listen, AdminListen string
	// Known are names of servers beside those of the configuration.
	Known []string
}

// Loaded is the outcome of Load.
type Loaded struct {
	// Config is complete and usable when Fatal is empty, and never nil.
	Config *Config
	// Path is the absolute path of the file that was read; empty for text from elsewhere.
	Path string
	// Sum is of the text that was read, by which a change of it is seen.
	Sum [sha256.Size]byte
	// Problems are all mistakes and warnings, in the order of the file.
	Problems []Problem
	// Notes tell what was read in another way than written or left alone.
	Notes []Note

	origins map[string]origin
}

// Fatal are the mistakes that prevent a start.
func (l *Loaded) Fatal() []Problem {
	return l.pick(func(p Problem) bool { return p.Stops && p.Severity == SeverityError })
}

// Errors are all mistakes, those of single servers included.
func (l *Loaded) Errors() []Problem {
	return l.pick(func(p Problem) bool { return p.Severity == SeverityError })
}

// Warnings are the problems that are only advice.
func (l *Loaded) Warnings() []Problem {
	return l.pick(func(p Problem) bool { return p.Severity == SeverityWarning })
}

func (l *Loaded) pick(want func(Problem) bool) []Problem {
	var out []Problem
	for _, p := range l.Problems {
		if want(p) {
			out = append(out, p)
		}
	}
	return out
}

// Load finds, reads and checks a configuration. It does not fail: every mistake is a Problem.
func Load(o Options) *Loaded {
	if o.Getenv == nil {
		o.Getenv = os.LookupEnv
	}
	r := &reader{origins: map[string]origin{}, exp: &expander{getenv: o.Getenv, readFile: readRegular}}
	cfg := &Config{}
	l := &Loaded{Config: cfg}
	var from origin
	cfg.Proxy, from = newProxy(o.Getenv)
	r.origins["proxy.state_dir"] = from

	found, err := Find(o)
	r.file = cmp.Or(found.Source, o.Source, o.Path)
	cfg.Source, cfg.Dir, l.Path = r.file, found.Dir, found.Path
	l.Sum = sha256.Sum256(found.Text)
	r.exp.dir = found.Dir
	if err != nil {
		r.file = ""
		r.refuse(place{}, 0, "%v", err)
	} else if root := r.tree(found); root != nil {
		r.config(root, cfg, o)
	}
	r.finish(l)
	return l
}

// Found is a configuration before it is read as one.
type Found struct {
	Text   []byte
	Source string // as messages name it
	Path   string // absolute; empty for inline text
	Dir    string // absolute; what paths are relative to
}

// Find gives the text of the configuration that Options describe.
func Find(o Options) (Found, error) {
	if o.Getenv == nil {
		o.Getenv = os.LookupEnv
	}
	dir, err := filepath.Abs(o.WorkDir)
	if err != nil {
		return Found{}, fmt.Errorf("finding the working directory: %w", err)
	}
	if o.Text != nil {
		return Found{Text: o.Text, Source: o.Source, Dir: dir}, nil
	}
	if o.Path != "" {
		return findFile(dir, o.Path)
	}
	if value, _ := o.Getenv(Variable); strings.TrimSpace(value) != "" {
		// No path holds a brace or a line break, and no configuration does without both.
		if strings.ContainsAny(value, "{\n") {
			return Found{Text: []byte(value), Source: Variable, Dir: dir}, nil
		}
		return findFile(dir, value)
	}
	for _, name := range FileNames {
		f, err := findFile(dir, name)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return Found{Dir: dir}, fmt.Errorf("%w: looked for --config, the variable %s, and the files %s in %s; --demo serves without one",
		ErrNotFound, Variable, strings.Join(FileNames, ", "), dir)
}

func findFile(dir, path string) (Found, error) {
	abs := path
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(dir, path)
	}
	f := Found{Source: path, Path: abs, Dir: filepath.Dir(abs)}
	text, err := readLimited(abs)
	if err != nil {
		return f, fmt.Errorf("reading the configuration %s: %w", path, unwrapPath(err))
	}
	f.Text = text
	return f, nil
}

// unwrapPath drops the path that our own message already has.
func unwrapPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// tree parses the text and records the faults of its syntax.
func (r *reader) tree(f Found) *node {
	name := f.Path
	root, faults := parse(name, f.Text)
	for _, one := range faults {
		msg := one.msg
		if one.path == "" && one.line > 0 {
			msg = fmt.Sprintf("line %d, column %d: %s", one.line, max(one.col, 1), msg)
		}
		r.refuse(place{path: one.path}, one.line, "%s", msg)
	}
	return root
}

// config reads the top level: the servers under one of the roots, the agents, and the section proxy.
func (r *reader) config(root *node, cfg *Config, o Options) {
	top := place{}
	if !r.isObject(top, root) {
		return
	}
	servers := r.chooseRoot(root)
	for _, m := range root.members {
		here := top.member(m)
		switch {
		case slices.Contains(roots, m.key):
		case m.key == "proxy":
			if m.value.kind != kindNull {
				readFields(r, place{path: here.path, canon: "proxy"}, m.value, proxyFields, &cfg.Proxy, proxyLater...)
			}
		case m.key == "agents": // after the servers
		case slices.Contains(foreignTop, m.key), strings.HasPrefix(m.key, "x-"):
			r.note(here, m.line, "is a setting of other clients and means nothing here")
		default:
			r.unknownTop(here, m)
		}
	}
	r.finishProxy(root, cfg, o)
	if servers != nil {
		r.servers(servers, cfg)
	}
	if agents := root.get("agents"); agents != nil {
		r.agents(*agents, cfg)
	}
	r.checkReferences(root, cfg, o.Known)
}

// unknownTop knows where people expect our keys to be.
func (r *reader) unknownTop(at place, m member) {
	if m.key == "mcp" {
		r.refuse(at, m.line, "unknown key; put the servers under mcpServers")
		return
	}
	if !slices.Contains(topLater, m.key) && fieldOf(proxyFields, m.key) != nil {
		r.refuse(at, m.line, "unknown key").Suggestion = "proxy." + m.key
		return
	}
	if v := m.value; v.kind == kindObject && (v.get("command") != nil || v.get("url") != nil) {
		r.refuse(at, m.line, "unknown key; a server stands under mcpServers")
		return
	}
	r.unknownKey(at, m, append([]string{"proxy", "agents"}, roots...), topLater)
}

// chooseRoot gives the member that holds the servers. Two that hold some are refused: which wins would be a guess.
func (r *reader) chooseRoot(root *node) *member {
	var chosen *member
	for i := range root.members {
		m := &root.members[i]
		switch {
		case !slices.Contains(roots, m.key):
		case chosen == nil || chosen.value.isEmpty():
			chosen = m
		case !m.value.isEmpty():
			r.refuse(place{}.member(*m), m.line, "servers stand under %s (line %d) and under %s (line %d); put them under one key", chosen.key, chosen.line, m.key, m.line)
		}
	}
	if agents := root.get("agents"); chosen == nil && (agents == nil || agents.value.isEmpty()) {
		r.warn(place{}, root.line, "no servers: there is no key mcpServers")
	}
	return chosen
}

func (r *reader) servers(m *member, cfg *Config) {
	at := place{path: m.key, canon: roots[0]}
	if m.value.kind == kindNull || !r.isObject(at, m.value) {
		return
	}
	for _, one := range m.value.members {
		cfg.Servers = append(cfg.Servers, r.server(at.member(one), one))
	}
}

// finish sorts what was found and hands each server its mistakes.
func (r *reader) finish(l *Loaded) {
	strict := l.Config.Proxy.Startup == StartupStrict
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return a.order - b.order })
	faulty := map[string]*ServerError{}
	for i := range r.problems {
		p := &r.problems[i]
		if p.Severity != SeverityError {
			continue
		}
		p.Stops = p.Stops || strict
		if p.Server == "" {
			continue
		}
		if faulty[p.Server] == nil {
			faulty[p.Server] = &ServerError{}
		}
		faulty[p.Server].Problems = append(faulty[p.Server].Problems, *p)
	}
	for _, s := range l.Config.Servers {
		if err := faulty[s.ID]; err != nil {
			s.Problem = err
		}
	}
	l.Problems, l.Notes, l.origins = r.problems, r.notes, r.origins
}
