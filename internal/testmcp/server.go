package testmcp

// Era says which protocol generations a server speaks or a client uses.
type Era int

// The eras. The zero value of a server is Both; a client is Legacy unless told Modern.
const (
	Both   Era = iota
	Legacy     // initialize and sessions, revisions up to 2025-11-25
	Modern     // stateless, 2026-07-28
)

func (e Era) legacy() bool { return e != Modern }
func (e Era) modern() bool { return e != Legacy }

// Handler answers one request or reacts to one notification. It runs in a goroutine of its own, unless the
// server is Serial. Returning without an answer leaves the request unanswered for ever; acting on after the
// answer is allowed, that is how late progress is played.
type Handler func(*Call)

// Tool is one tool: its definition as raw JSON, sent byte for byte, and what it does.
type Tool struct {
	Definition string
	Handle     Handler
}

// Resource is one entry of resources/list and the result of reading it.
type Resource struct {
	Definition string
	Read       Handler // nil answers with one empty text
}

// Prompt is one entry of prompts/list and the result of getting it.
type Prompt struct {
	Definition string
	Get        Handler // nil answers with one user message
}

// Server describes how an upstream behaves. It is a value to be filled in and then served, any number of times,
// as a child process, over streamable HTTP or over HTTP+SSE. Once served it must not be changed; what changes
// while it runs is changed through Instance.
type Server struct {
	Name         string // serverInfo name, "testmcp" if empty
	Era          Era
	Versions     []string // legacy revisions offered, newest first; all if nil
	Modern       []string // modern revisions offered; 2026-07-28 if nil
	Capabilities string   // raw JSON; all capabilities with listChanged if empty
	Instructions string
	PageSize     int // items per list page; 0 puts all on one

	Tools     []Tool
	Resources []Resource
	Templates []string // raw JSON definitions
	Prompts   []Prompt

	// On takes a method's place, of requests and notifications alike. Call.Default does what the kit would
	// have done.
	On map[string]Handler
	// Before sees every request and notification first; true means that it has dealt with it.
	Before func(*Call) bool
	// Write turns a frame into the bytes for a pipe, delimiter included; nil writes the frame and "\n".
	// The n-th frame of the process has number n, from 0.
	Write func(n int, frame []byte) []byte
	// Serial handles one message after the other and reads no further meanwhile. Pipes only.
	Serial bool
	// Start runs in a child before anything is read.
	Start func(*Process)
	// AtEOF runs in a child when stdin ends; nil exits with code 0. Returning from it keeps the process alive.
	AtEOF func(*Process)
	// Quiet records starts, exits, cancels and notes but no frames, for benchmarks.
	Quiet bool
}

const defaultCapabilities = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}`

func (s *Server) name() string { return orElse(s.Name, "testmcp") }

func (s *Server) capabilities() string { return orElse(s.Capabilities, defaultCapabilities) }

func (s *Server) legacyVersions() []string {
	if s.Versions != nil {
		return s.Versions
	}
	return []string{Rev2511, Rev2506, Rev2503, Rev2024}
}

func (s *Server) modernVersions() []string {
	if s.Modern != nil {
		return s.Modern
	}
	return []string{Rev2607}
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
