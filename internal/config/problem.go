package config

import (
	"fmt"
	"strings"
)

// Severity says whether a Problem is a mistake or only advice.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Problem is one mistake, or one piece of advice, with its place. No part of it holds the value of a variable.
type Problem struct {
	Severity Severity
	// File is the file as the user named it, or MCP_PROXY_CONFIG; empty where no file is concerned.
	File string
	// Line counts from 1; 0 is the file as a whole.
	Line int
	// Path leads to the key as the file spells it, for example mcpServers.github.args[1].
	Path string
	Msg  string
	// Suggestion is the key that was probably meant.
	Suggestion string
	// Server is the entry the mistake belongs to; empty for everything else.
	Server string
	// Stops is true for what no configuration is served with.
	Stops bool

	order int // the line in the main file, by which problems are listed
}

// String is the problem in one line.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	if p.Severity == SeverityWarning {
		b.WriteString("warning: ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Msg)
	if p.Suggestion != "" {
		fmt.Fprintf(&b, "; did you mean %q?", p.Suggestion)
	}
	return b.String()
}

// Note tells of a key that was understood in another way than written, or left alone.
type Note struct {
	File   string
	Line   int
	Path   string
	Msg    string
	Server string
}

// String is the note in one line.
func (n Note) String() string { return fmt.Sprintf("%s:%d: %s: %s", n.File, n.Line, n.Path, n.Msg) }

// ServerError is why one server of an otherwise good configuration cannot be used.
type ServerError struct{ Problems []Problem }

// Error lists the mistakes, "; " between them.
func (e *ServerError) Error() string {
	all := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		all[i] = p.String()
	}
	return strings.Join(all, "; ")
}
