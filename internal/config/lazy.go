package config

import "strings"

// Lazy says how little of tools is listed. A nil Lazy is one that the file does not mention.
type Lazy struct {
	Mode LazyMode
	// SearchTool and CallTool are what the tools are called that stand in for what is not listed.
	SearchTool, CallTool string
	// Pinned are tools that are listed whole: exposed or wire names, and globs of them.
	Pinned []string
}

// LazyMode says what a list holds of a tool.
type LazyMode string

// The modes of lazy.
const (
	LazyOff LazyMode = "false"
	// LazyOn lists tools without their schemas.
	LazyOn LazyMode = "true"
	// LazySearchOnly lists no tools but the pinned ones.
	LazySearchOnly LazyMode = "search_only"
)

// The names of the tools of lazy where the file gives no others.
const (
	DefaultSearchTool = "search_tools"
	DefaultCallTool   = "call_tool"
)

// NewLazy gives the settings of a mode with nothing else said.
func NewLazy(mode LazyMode) *Lazy {
	return &Lazy{Mode: mode, SearchTool: DefaultSearchTool, CallTool: DefaultCallTool}
}

// On says whether anything is left out of lists.
func (l *Lazy) On() bool { return l != nil && l.Mode != LazyOff }

// SearchOnly says whether only pinned tools are listed.
func (l *Lazy) SearchOnly() bool { return l != nil && l.Mode == LazySearchOnly }

var lazyFields = []field[Lazy]{
	{key: "mode", typ: "`true`, `false`, `search_only`", doc: "As above.", example: `"search_only"`, read: readLazyMode, show: showLazyMode,
		value: func(l *Lazy) any { return string(l.Mode) }},
	textField("tool_name", "What `search_tools` is called; the `lazy` of a server puts its prefix before it.", `"find_tools"`, func(l *Lazy) *string { return &l.SearchTool }, isToolName),
	textField("call_tool_name", "The same of `call_tool`.", `"run_tool"`, func(l *Lazy) *string { return &l.CallTool }, isToolName),
	textsField("pinned", "Tools that are listed whole, as they are listed or as their server names them; `*` stands for any text.", `["read_*"]`, func(l *Lazy) *[]string { return &l.Pinned }, notEmpty),
}

const lazyDoc = "`true` lists tools without their schemas, and beside them a tool `search_tools` that finds tools and gives their schemas. " +
	"`search_only` lists only that, the pinned tools, and a tool `call_tool`. All tools can be called by their names as before."

// lazyField is a boolean, search_only, or an object that says more.
func lazyField[T any](doc, def string, at func(*T) **Lazy) field[T] {
	return field[T]{
		key: "lazy", typ: "`true`, `false`, `search_only` or an object, see below", doc: doc, example: `"search_only"`, def: def,
		read: func(r *reader, here place, n *node, dst *T) {
			l := NewLazy(LazyOn)
			if n.kind == kindObject {
				readFields(r, here, n, lazyFields, l)
				if l.SearchTool == l.CallTool {
					r.mistake(here, n.line, "tool_name and call_tool_name are the same")
				}
			} else {
				readLazyMode(r, here, n, l)
			}
			*at(dst) = l
		},
		show: func(s *shower, canon, key string, src *T) {
			switch l := *at(src); {
			case l == nil && strings.HasPrefix(def, "`"):
				s.entry(canon, key+": ", string(LazyOff))
			case l == nil:
			case l.SearchTool == DefaultSearchTool && l.CallTool == DefaultCallTool && len(l.Pinned) == 0:
				s.entry(canon, key+": ", l.Mode.yaml())
			default:
				showGroup(s, canon, key, lazyFields, l)
			}
		},
	}
}

func readLazyMode(r *reader, at place, n *node, l *Lazy) {
	text, ok := n.text, n.kind == kindBool
	if n.kind == kindString {
		text, ok = r.text(at, n)
	} else if !ok {
		r.want(at, n, "true, false or search_only")
	}
	if !ok {
		return
	}
	words := []string{string(LazyOn), string(LazyOff), string(LazySearchOnly)}
	for _, w := range words {
		if text == w {
			l.Mode = LazyMode(w)
			return
		}
	}
	p := r.mistake(at, n.line, "%q is not known; known are %s", n.text, strings.Join(words, ", "))
	p.Suggestion = suggest(n.text, words)
}

func showLazyMode(s *shower, canon, key string, l *Lazy) { s.entry(canon, key+": ", l.Mode.yaml()) }

// yaml is the mode as YAML writes it.
func (m LazyMode) yaml() string {
	if m == LazySearchOnly {
		return quoted(string(m))
	}
	return string(m)
}

// isToolName is for names that models are given as they stand.
func isToolName(s string) string {
	if s == "" || len(s) > 64 || strings.ContainsFunc(s, func(c rune) bool { return !strings.ContainsRune("_-", c) && !isAlnum(c) }) {
		return "is made of at most 64 letters, digits, _ and -"
	}
	return ""
}

func isAlnum(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
