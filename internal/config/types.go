// Package config reads the configuration of the proxy: the mcp.json dialects of IDEs and our own keys, in JSON, JSONC
// or YAML. It finds every mistake at once, each with its place and a remedy, and hands the other rooms plain values.
package config

import (
	"encoding/json"
	"time"
)

// Config is one loaded configuration. It is immutable once loaded.
type Config struct {
	// Source names where the text came from: a path, "MCP_PROXY_CONFIG" or "demo".
	Source string
	// Dir is the directory that relative paths are resolved against.
	Dir     string
	Servers []*Server // in the order of the file, with the agents behind them
	Proxy   Proxy
}

// Server is one entry under mcpServers or agents: an upstream.
type Server struct {
	ID string
	// Problem is set when this entry has a mistake and startup is lenient: the server is failed with this reason.
	Problem error

	// Agent is what makes this entry an agent; nil for a server.
	Agent *Agent
	// Fresh gives each call a connection of its own that is made for it and ends with it.
	Fresh bool

	Disabled bool
	// Transport is how the upstream is reached.
	Transport Transport
	// TransportGuessed is true when the entry names no type, so that an HTTP upstream may turn out to be legacy SSE.
	TransportGuessed bool

	Command string
	Args    []string
	// Env are the variables added for the child: env_file first, env on top.
	Env        map[string]string
	InheritEnv []string // names of further variables of our own environment that the child gets
	Cwd        string   // absolute; empty for the directory of the configuration

	URL       Secret // used verbatim; may carry credentials in its query
	Headers   map[string]Secret
	AuthToken Secret
	// SignIn is another way of signing in; its type is empty where there is none.
	SignIn SignIn
	// MessageURL takes the place of the path that a server of the type sse announces to post to; it may be relative to URL.
	MessageURL string
	// ForwardHeaders are the headers of clients that the server gets, in canonical form: as headers over HTTP, under
	// "forwarded_headers" in _meta over stdio.
	ForwardHeaders []string
	// ForwardCallerAuth sends the client's Authorization on, unless the entry has a credential of its own: see ForwardsAuth.
	ForwardCallerAuth bool
	// CatalogScope says for whom the lists are the same.
	CatalogScope CatalogScope
	// ReinitOnExpiredSession replaces a session that the server has lost within the call that finds out.
	ReinitOnExpiredSession bool

	Protocol  Protocol
	Sharing   Sharing
	Instances int

	ConnectTimeout time.Duration
	CallTimeout    time.Duration
	MaxCallTime    time.Duration
	Restart        Restart
	// IdleStop is after how long without use a connection is ended until it is needed again; 0 for never.
	IdleStop time.Duration
	// Prewarm keeps one connection ready beside those in use, where connections are not shared.
	Prewarm bool
	// Start says when the first connection is made.
	Start Start
	// ProbeInterval is how often a connection that nobody uses is asked whether it lives; 0 for never.
	ProbeInterval time.Duration
	// Limits bound the processes of a child.
	Limits ChildLimits

	// ToolPrefix takes the place of the naming template; nil where it is not set, "" is a prefix too.
	ToolPrefix *string
	ToolPolicy Policy
	// ResourcePolicy goes by URIs, PromptPolicy by names.
	ResourcePolicy Policy
	PromptPolicy   Policy
	// MaxConcurrency bounds the calls under way at a time; 0 for no bound. MaxQueue bounds those that wait.
	MaxConcurrency int
	MaxQueue       int
	// Serialize lets one call at a time through, but for those that only read on a server whose annotations are trusted.
	Serialize        bool
	TrustAnnotations bool
	Replay           Replay

	Elicitation Elicitation
	Tasks       Tasks
	Lazy        *Lazy
	Pin         Pin
	// MaxResultSize bounds the results of tools, in bytes; 0 for no bound. Oversize says what happens to a longer one.
	MaxResultSize int64
	Oversize      Oversize
	// Tools are changes to single tools, by wire name.
	Tools       map[string]ToolOverride
	RequestMeta json.RawMessage // a JSON object, or nil
}

// Transport is how an upstream is reached.
type Transport string

// The transports.
const (
	TransportStdio     Transport = "stdio"
	TransportHTTP      Transport = "http" // streamable HTTP
	TransportSSE       Transport = "sse"  // HTTP+SSE of 2024-11-05
	TransportInProcess Transport = "inprocess"
)

// Protocol says which era to speak with an upstream.
type Protocol string

// The protocols.
const (
	ProtocolAuto   Protocol = "auto"
	ProtocolLegacy Protocol = "legacy"
	ProtocolModern Protocol = "modern"
)

// Sharing says who shares a connection of an upstream.
type Sharing string

// The kinds of sharing.
const (
	SharingShared  Sharing = "shared"
	SharingSession Sharing = "session"
	SharingCall    Sharing = "call"
)

// CatalogScope says for whom the lists of an upstream are the same.
type CatalogScope string

// The scopes.
const (
	ScopeGlobal    CatalogScope = "global"    // for everybody
	ScopePrincipal CatalogScope = "principal" // for those with the same forwarded credentials
	ScopeSession   CatalogScope = "session"   // for one legacy session, where it has a connection of its own
)

// Start says when an upstream is started.
type Start string

// The ways to start.
const (
	StartEager Start = "eager"
	StartLazy  Start = "lazy"
)

// ToolOverride changes one tool. What is empty stays as the server has it.
type ToolOverride struct {
	Name, Title, Description string
	CallTimeout              time.Duration
	Disabled                 bool
	MaxResultSize            int64
	Arguments                []ArgumentOverride // in the order of the file
}

// ArgumentOverride gives one argument of a tool a value; one of the two is set.
type ArgumentOverride struct {
	Name string
	// Fixed is the JSON value of every call; clients neither see nor give the argument.
	Fixed json.RawMessage
	// Default is the JSON value of calls that give none.
	Default json.RawMessage
}

// Oversize says what happens to results that are over their bound.
type Oversize string

// The ways to deal with them.
const (
	OversizeRefuse   Oversize = "refuse"
	OversizeResource Oversize = "resource" // kept for a while, to be read in pages
)

// Replay says which calls are repeated after a lost connection.
type Replay string

// The kinds of replay.
const (
	ReplaySafe  Replay = "safe"
	ReplayNever Replay = "never"
)

// Elicitation is what happens when a server asks the person behind a client.
type Elicitation struct {
	Mode    ElicitationMode
	Timeout time.Duration
	Label   bool
}

// ElicitationMode says whether questions are brought to clients.
type ElicitationMode string

// The modes of elicitation.
const (
	ElicitationRelay   ElicitationMode = "relay"
	ElicitationDecline ElicitationMode = "decline"
)

// Tasks bounds the driving of tasks for clients that know none.
type Tasks struct {
	Enabled      bool
	PollInterval time.Duration
	Timeout      time.Duration
	MaxAttempts  int // 0 for no bound
}

// ChildLimits bound what the processes of one child may use together; 0 is without bound.
type ChildLimits struct {
	Memory int64 // bytes
	Pids   int
}

// Restart is the backoff between attempts to start or reach an upstream.
type Restart struct {
	InitialDelay time.Duration
	MaxDelay     time.Duration
	Multiplier   float64
	// HealthyAfter is the uptime after which the backoff begins anew.
	HealthyAfter time.Duration
}

// Policy chooses items by wire name or URI; entries are exact or globs. Deny wins, an empty Expose means all.
type Policy struct {
	Expose []string
	Deny   []string
	// Effects are what a tool may do by its own word; empty means anything.
	Effects []Effect
}

// Effect is what a tool does to its world.
type Effect string

// The effects. A tool that does not say that it only reads has one.
const (
	EffectReadOnly   Effect = "read_only"
	EffectSideEffect Effect = "side_effect"
)
