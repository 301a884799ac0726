package mcpproxy

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// Source is where a configuration comes from: [File], [Text] or [Value].
type Source struct {
	path string
	text []byte
	err  error
}

// File is the configuration in a file: JSON, JSONC or YAML. It is watched for changes.
func File(path string) Source {
	if path == "" {
		return Source{err: fmt.Errorf("%w: the path is empty", ErrConfiguration)}
	}
	return Source{path: path}
}

// Text is the configuration itself: JSON, JSONC or YAML. Relative paths in it begin at the working directory.
func Text(text []byte) Source { return Source{text: append([]byte{}, text...)} }

// Value is a configuration as a value that encoding/json makes a configuration of, such as a map or a struct with the
// keys of the file.
func Value(v any) Source {
	text, err := json.Marshal(v)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrConfiguration, err)
	}
	return Source{text: text, err: err}
}

// loader gives what reads the configuration, each time anew.
func (s Source) loader(set *settings) (func() *config.Loaded, error) {
	if s.err != nil {
		return nil, s.err
	}
	o := config.Options{Path: s.path, Getenv: set.getenv, Known: slices.Sorted(maps.Keys(set.functions)),
		Listen: "127.0.0.1:0"} // nothing listens, so it does not matter who could reach the address
	if s.path == "" {
		o.Text, o.Source = append([]byte{}, s.text...), "configuration"
	}
	return func() *config.Loaded {
		l := config.Load(o)
		l.Config.Proxy.AdminListen = ""
		return l
	}, nil
}

// ErrConfiguration is what the errors of a configuration are.
var ErrConfiguration = config.ErrMistakes

// fatal gives all mistakes that prevent a start.
func fatal(l *config.Loaded) error {
	var lines []string
	for _, p := range l.Fatal() {
		lines = append(lines, p.String())
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", ErrConfiguration, strings.Join(lines, "\n"))
}

// version is that of the module in the program.
func version() string {
	const path = "github.com/mcp-proxy/mcp-proxy"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "embedded"
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == path && m.Version != "" && m.Version != "(devel)" {
			return m.Version
		}
	}
	return "embedded"
}
