package config

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

const (
	// maxText bounds a configuration and every file it names, in bytes. It also bounds the recursion of the parsers.
	maxText = 1 << 20
	// maxTreeDepth and maxTreeNodes bound what a text may unfold to; YAML aliases can repeat parts of it.
	maxTreeDepth = 100
	maxTreeNodes = 200_000
)

// fault is a mistake of the syntax, before any schema.
type fault struct {
	pos
	path string
	msg  string
}

// parse turns the text into a tree. Faults that leave a tree (a key given twice) come together with it;
// without a tree there is at least one fault.
func parse(name string, text []byte) (*node, []fault) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if f := checkText(text); f != nil {
		return nil, []fault{*f}
	}
	if looksLikeYAML(name, text) {
		return parseYAML(text)
	}
	return parseJSON(text)
}

func checkText(text []byte) *fault {
	switch {
	case len(text) > maxText:
		return &fault{msg: fmt.Sprintf("is larger than %d bytes", maxText)}
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return &fault{msg: "is UTF-16; save it as UTF-8"}
	case len(bytes.TrimSpace(text)) == 0:
		return &fault{msg: `is empty; the least is {"mcpServers": {}}`}
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return &fault{pos: posOf(text, i), msg: "is not UTF-8 text here"}
		}
		i += n
	}
	return nil
}

// looksLikeYAML goes by the extension, and without a telling one by the first character.
func looksLikeYAML(name string, text []byte) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		return true
	case ".json", ".jsonc", ".json5":
		return false
	}
	text = bytes.TrimSpace(text)
	return !bytes.HasPrefix(text, []byte("{")) && !bytes.HasPrefix(text, []byte("//")) && !bytes.HasPrefix(text, []byte("/*"))
}

func posOf(text []byte, offset int) pos {
	before := text[:offset]
	return pos{1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])}
}

// tree builds nodes within the bounds and collects the faults of doing so.
type tree struct {
	faults []fault
	nodes  int
	full   bool
}

func (t *tree) fail(at pos, path, format string, args ...any) {
	t.faults = append(t.faults, fault{at, path, fmt.Sprintf(format, args...)})
}

// room is false when the bounds are reached, which is told once.
func (t *tree) room(at pos, path string, depth int) bool {
	t.nodes++
	if depth <= maxTreeDepth && t.nodes <= maxTreeNodes {
		return true
	}
	if !t.full {
		t.full = true
		// The path of an endless alias is long, and only its beginning says anything.
		const most = 60
		if len(path) > most {
			path = strings.ToValidUTF8(path[:most], "") + "..."
		}
		t.fail(at, path, "is nested deeper than %d levels or unfolds to more than %d values", maxTreeDepth, maxTreeNodes)
	}
	return false
}

// keys finds members that were given before; both places are told, because either may be the wrong one.
type keys map[string]pos

func (k keys) add(t *tree, path, key string, at pos) bool {
	first, twice := k[key]
	if !twice {
		k[key] = at
		return true
	}
	t.fail(at, joinPath(path, key), "is given twice: line %d, column %d and line %d, column %d", first.line, first.col, at.line, at.col)
	return false
}
