package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// variable is one assignment of an env_file.
type variable struct {
	name, value string
	line        int
}

// envFileError is a mistake in one line of an env_file. The line itself is not shown: it may be a secret.
type envFileError struct {
	line int
	msg  string
}

func (e *envFileError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.msg) }

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

var (
	errUnclosed = errors.New("a quote is not closed")
	errTrailing = errors.New("text after the closing quote")
)

// parseEnvFile reads NAME=value lines: comments, "export", single quotes (as they are), double quotes
// (with \n, \t, \", \\ and \$) over several lines. Nothing is expanded in it.
func parseEnvFile(text string) ([]variable, error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	var out []variable
	line := 1
	for text != "" {
		first, _, _ := strings.Cut(text, "\n")
		trimmed := strings.TrimSpace(first)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			text, line = strings.TrimPrefix(text[len(first):], "\n"), line+1
			continue
		}
		v, used, err := parseAssignment(text)
		if err != nil {
			return nil, &envFileError{line, err.Error()}
		}
		v.line = line
		out = append(out, v)
		line += strings.Count(text[:used], "\n")
		text = text[used:]
	}
	return out, nil
}

// parseAssignment reads the assignment that text begins with, and says how many bytes it took, its newline included.
func parseAssignment(text string) (variable, int, error) {
	name, rest, found := strings.Cut(text, "=")
	if !found || strings.Contains(name, "\n") {
		return variable{}, 0, errors.New("is not NAME=value")
	}
	name = strings.TrimSpace(name)
	if after, ok := strings.CutPrefix(name, "export"); ok && strings.TrimLeft(after, " \t") != after {
		name = strings.TrimSpace(after)
	}
	if !variableName.MatchString(name) {
		return variable{}, 0, errors.New("what stands before = is not the name of a variable")
	}
	rest = strings.TrimLeft(rest, " \t")
	value, after, err := parseEnvValue(rest)
	if err != nil {
		return variable{}, 0, err
	}
	return variable{name: name, value: value}, len(text) - len(after), nil
}

// parseEnvValue gives the value and what is left after its line.
func parseEnvValue(s string) (value, after string, err error) {
	if s != "" && (s[0] == '\'' || s[0] == '"') {
		value, after, ok := cutQuoted(s[1:], s[0])
		if !ok {
			return "", "", errUnclosed
		}
		tail, after, _ := strings.Cut(after, "\n")
		if tail = strings.TrimSpace(tail); tail != "" && tail[0] != '#' {
			return "", "", errTrailing
		}
		return value, after, nil
	}
	value, after, _ = strings.Cut(s, "\n")
	if value != "" && value[0] == '#' {
		return "", after, nil
	}
	for _, comment := range []string{" #", "\t#"} {
		value, _, _ = strings.Cut(value, comment)
	}
	return strings.TrimSpace(value), after, nil
}

var envEscapes = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '$': '$'}

func cutQuoted(s string, quote byte) (value, after string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == quote:
			return b.String(), s[i+1:], true
		case quote == '"' && s[i] == '\\' && i+1 < len(s) && envEscapes[s[i+1]] != 0:
			i++
			b.WriteByte(envEscapes[s[i]])
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}
