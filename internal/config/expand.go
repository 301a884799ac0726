package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// expander replaces references in one string. It knows where values come from, and nothing of the schema.
type expander struct {
	getenv   func(string) (string, bool)
	dir      string // of the configuration: for relative files and ${workspaceFolder}
	readFile func(string) ([]byte, error)
}

// expansion is a string after replacement. A replaced value is never looked at again.
type expansion struct {
	text string
	// from names the sources, for example "environment TOKEN".
	from []string
	// missing are the complaints about references that have no value.
	missing []string
	// odd is true when something looks like a reference but has a form that stays as it is.
	odd bool
}

var (
	plainName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	looksMeant = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*[-:+=?]`)
)

// expand replaces ${VAR}, ${VAR:-default}, ${env:VAR}, ${file:PATH}, ${input:ID}, ${workspaceFolder} and ${userHome}.
// $${ is a literal ${; every other dollar sign is itself.
func (e *expander) expand(s string) expansion {
	var out expansion
	e.into(&out, s, 0)
	return out
}

// maxNesting bounds defaults within defaults.
const maxNesting = 8

func (e *expander) into(out *expansion, s string, depth int) {
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			break
		}
		if i > 0 && s[i-1] == '$' {
			b.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		b.WriteString(s[:i])
		end := closing(s[i+2:])
		if end < 0 {
			s = s[i:]
			break
		}
		inner := s[i+2 : i+2+end]
		value, known := e.reference(out, inner, depth)
		if !known {
			out.odd = out.odd || looksMeant.MatchString(inner)
			value = s[i : i+2+end+1]
		}
		b.WriteString(value)
		s = s[i+2+end+1:]
	}
	b.WriteString(s)
	out.text = b.String()
}

// closing is the offset of the } that ends a reference; references inside it are stepped over.
func closing(s string) int {
	open := 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '}' && open == 0:
			return i
		case s[i] == '}':
			open--
		case s[i] == '$' && i+1 < len(s) && s[i+1] == '{':
			open++
		}
	}
	return -1
}

// reference gives the value of what stands between ${ and }; known is false for everything that is not a reference.
func (e *expander) reference(out *expansion, inner string, depth int) (value string, known bool) {
	if depth >= maxNesting {
		return "", false
	}
	if path, ok := strings.CutPrefix(inner, "file:"); ok {
		return e.file(out, path, depth)
	}
	if id, ok := strings.CutPrefix(inner, "input:"); ok && id != "" && !strings.Contains(id, "$") {
		return e.variable(out, inputVariable(id), "", false, depth), true
	}
	switch inner {
	case "workspaceFolder":
		out.from = append(out.from, "the directory of the file")
		return e.dir, true
	case "userHome":
		return e.home(out), true
	}
	name, fallback, hasDefault := strings.Cut(strings.TrimPrefix(inner, "env:"), ":-")
	if !plainName.MatchString(name) {
		return "", false
	}
	return e.variable(out, name, fallback, hasDefault, depth), true
}

func (e *expander) variable(out *expansion, name, fallback string, hasDefault bool, depth int) string {
	value, set := e.getenv(name)
	switch {
	case set && (value != "" || !hasDefault):
		out.from = append(out.from, "environment "+name)
		return value
	case hasDefault:
		out.from = append(out.from, "default for "+name)
		return e.nested(out, fallback, depth)
	}
	out.missing = append(out.missing, fmt.Sprintf("variable %s is not set; set it before the start, or write a default behind its name: %s:-…", name, name))
	return ""
}

// nested expands the text of a default or of a path, which the file itself holds.
func (e *expander) nested(out *expansion, s string, depth int) string {
	var in expansion
	e.into(&in, s, depth+1)
	out.from = append(out.from, in.from...)
	out.missing = append(out.missing, in.missing...)
	out.odd = out.odd || in.odd
	return in.text
}

func (e *expander) file(out *expansion, path string, depth int) (string, bool) {
	if path == "" {
		return "", false
	}
	before := len(out.missing)
	written := path
	path = e.abs(e.nested(out, path, depth))
	if len(out.missing) > before {
		return "", true
	}
	text, err := e.readFile(path)
	if err != nil {
		out.missing = append(out.missing, fmt.Sprintf("file %q cannot be read: %s", written, reason(err)))
		return "", true
	}
	out.from = append(out.from, "a file")
	value, found := strings.CutSuffix(string(text), "\r\n")
	if !found {
		value = strings.TrimSuffix(value, "\n")
	}
	return value, true
}

func (e *expander) home(out *expansion) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if dir, _ := e.getenv(name); dir != "" {
			out.from = append(out.from, "environment "+name)
			return dir
		}
	}
	out.missing = append(out.missing, "variable HOME is not set; set it before the start")
	return ""
}

// inputVariable is the variable that stands for ${input:ID}, which editors ask a person for.
func inputVariable(id string) string {
	return "MCP_INPUT_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, id)
}

// abs resolves a path against the directory of the configuration; ~/ is the home directory.
func (e *expander) abs(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, _ := e.getenv("HOME"); home != "" {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(e.dir, path)
}

var errNotRegular = errors.New("is not a regular file")

// readRegular reads a file that the configuration names. Only regular files: a pipe would make the start wait.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	return readLimited(path)
}

func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err == nil && len(text) > maxText {
		err = fmt.Errorf("is larger than %d bytes", maxText)
	}
	return text, err
}

// reason is an error of the file system without the path, which may come from a variable.
func reason(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
