package config

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// AgentSchema is the input schema of the tool of every agent, of whatever kind.
const AgentSchema = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`

// Agent is what makes an upstream an agent: something that is offered as one tool, which takes a text and answers with one.
type Agent struct {
	Kind AgentKind
	// Name is the name of its tool: that of the entry, with everything but letters, digits, - and _ as _.
	Name               string
	Title, Description string
	// Instructions are what the agent is told before the input.
	Instructions string
	// Timeout bounds one run.
	Timeout time.Duration
	// MaxAnswerBytes bounds its answer.
	MaxAnswerBytes int64

	Input AgentInput // of a command

	Model   string          // of an OpenAI-compatible endpoint
	API     AgentAPI        // empty where the address tells
	Request json.RawMessage // a JSON object of further members of the request, or nil

	Tool     string // of an MCP server; empty for its only one
	Argument string // of that tool; empty for its only required string
}

// AgentKind is what runs an agent.
type AgentKind string

// The kinds of agents.
const (
	AgentCommand  AgentKind = "command"
	AgentOpenAI   AgentKind = "openai"
	AgentA2A      AgentKind = "a2a"
	AgentMCP      AgentKind = "mcp"
	AgentFunction AgentKind = "function" // of the program that the proxy is a part of; no file can name one
)

// AgentInput says how a command gets its input.
type AgentInput string

// The ways of the input.
const (
	InputStdin    AgentInput = "stdin"
	InputArgument AgentInput = "argument"
)

// InputMark stands in an argument of a command for the input.
const InputMark = "{input}"

// AgentAPI is the kind of an OpenAI-compatible endpoint.
type AgentAPI string

// The kinds of endpoints.
const (
	APIChat      AgentAPI = "chat"
	APIResponses AgentAPI = "responses"
)

const (
	defaultAgentTimeout = 10 * time.Minute
	defaultAnswerBytes  = 1 << 20
	defaultPrograms     = 16 // at a time
)

// agentName is the name of the tool that an agent is.
func agentName(id string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			return c
		}
		return '_'
	}, id)
}

func newAgent(id string, kind AgentKind) (*Server, *Agent) {
	a := &Agent{Kind: kind, Name: agentName(id), Timeout: defaultAgentTimeout, MaxAnswerBytes: defaultAnswerBytes, Input: InputStdin}
	d := newDraft(id)
	d.Agent = a
	return &d.Server, a
}

// NewFunction makes the entry of an agent that is a function of this program. Zero timeouts are the default one.
func NewFunction(id, title, description string, timeout time.Duration) *Server {
	s, a := newAgent(id, AgentFunction)
	a.Title, a.Description = title, description
	if timeout > 0 {
		a.Timeout = timeout
	}
	s.Transport, s.ConnectTimeout, s.Pin = TransportInProcess, defaultConnectStdio, PinOff
	s.settleAgent()
	return s
}

// settleAgent makes the settings of the upstream follow from those of the agent.
func (s *Server) settleAgent() {
	none := ""
	s.ToolPrefix = &none
	// One limit holds, whatever progress there is.
	s.CallTimeout, s.MaxCallTime = s.Agent.Timeout, s.Agent.Timeout
	switch {
	case s.Agent.Kind != AgentMCP:
		s.Sharing = SharingShared // its runs have nothing in common anyway
	case s.Sharing == SharingCall:
		s.Sharing, s.Fresh = SharingSession, true
	}
}

// agents reads the entries under agents. They stand behind the servers, and share one space of names with them.
func (r *reader) agents(m member, cfg *Config) {
	at := place{path: m.key, canon: "agents"}
	if m.value.kind == kindNull || !r.isObject(at, m.value) {
		return
	}
	for _, one := range m.value.members {
		if slices.ContainsFunc(cfg.Servers, func(s *Server) bool { return s.ID == one.key }) {
			r.refuse(at.member(one), one.line, "has the name of a server; servers and agents need different names")
			continue
		}
		cfg.Servers = append(cfg.Servers, r.agent(at.member(one), one))
	}
}

// agent reads one entry. Its mistakes are recorded and leave the other entries alone.
func (r *reader) agent(at place, m member) *Server {
	r.id = m.key
	defer func() { r.id, r.lax = "", false }()
	r.checkID(at, m)
	s, a := newAgent(m.key, "")
	d := &draft{Server: *s}
	if !r.isObject(at, m.value) {
		return &d.Server
	}
	own, entry := splitAgent(m.value)
	entry = canonical(r, at, entry)
	if off := entry.get("disabled"); off != nil && off.value.kind == kindBool && off.value.text == "true" {
		r.lax = true
	}
	readFields(r, at, own, agentFields, a)
	if a.Kind == "" {
		if own.get("kind") == nil {
			r.mistake(at, m.line, "kind is missing; known are %s", strings.Join(agentKindNames(), ", "))
		}
		return &d.Server
	}
	r.agentEntry(at, entry, d)
	for _, one := range own.members {
		if kinds := agentKeys[one.key]; len(kinds) > 0 && !slices.Contains(kinds, a.Kind) && !one.value.isEmpty() {
			r.warn(at.member(one), one.line, "has no effect on an agent of kind %s", a.Kind)
		}
	}
	r.finishAgent(at, m, entry, d)
	return &d.Server
}

// splitAgent parts the keys of agents from those of servers.
func splitAgent(n *node) (own, entry *node) {
	own, entry = &node{kind: kindObject, pos: n.pos}, &node{kind: kindObject, pos: n.pos}
	for _, m := range n.members {
		to := entry
		if fieldOf(agentFields, m.key) != nil {
			to = own
		}
		to.members = append(to.members, m)
	}
	return own, entry
}

// agentEntry reads the keys of a server that an agent of this kind has.
func (r *reader) agentEntry(at place, entry *node, d *draft) {
	switch d.Agent.Kind {
	case AgentCommand:
		d.MaxConcurrency = defaultPrograms
	case AgentMCP:
		d.Sharing = SharingCall
	}
	may := serverKeysOf(d.Agent.Kind)
	for _, m := range entry.members {
		here := at.member(m)
		f := fieldOf(serverFields, m.key)
		switch {
		case f == nil:
			r.unknownKey(here, m, append(fieldKeys(agentFields), may...), nil)
		case !slices.Contains(may, m.key):
			r.warn(here, m.line, "has no effect on an agent of kind %s", d.Agent.Kind)
		case m.value.kind != kindNull:
			r.origins[here.canon] = origin{file: r.file, line: m.value.line, raw: m.value.text}
			f.read(r, here, m.value, d)
		}
	}
}

func (r *reader) finishAgent(at place, m member, entry *node, d *draft) {
	a := d.Agent
	switch a.Kind {
	case AgentMCP:
		r.finishServer(at, m, entry, d)
	case AgentCommand:
		d.Transport = TransportInProcess
		r.needs(at, m, entry, "command", "the program to run")
		r.mayStart(at, entry.get("command"), d)
		r.mergeEnv(d, entry, at.canon)
		r.adviseCommand(at, entry, d)
	default:
		d.Transport = TransportInProcess
		r.needs(at, m, entry, "url", "the address of the agent")
		r.checkSignIn(at, entry, d)
		if a.Kind == AgentOpenAI && a.Model == "" {
			r.mistake(at, m.line, "model is missing")
		}
	}
	if a.Description == "" && (a.Kind == AgentCommand || a.Kind == AgentOpenAI) {
		r.warn(at, m.line, "has no description, by which models choose their tools")
	}
	if d.ConnectTimeout == 0 {
		d.ConnectTimeout = defaultConnectStdio
	}
	d.settleAgent()
}

func (r *reader) needs(at place, m member, entry *node, key, what string) {
	if v := entry.get(key); v == nil || v.value.kind == kindNull {
		r.mistake(at, m.line, "%s is missing: %s", key, what)
	}
}
