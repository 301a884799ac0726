package config

import (
	"io/fs"
	"time"
)

// Proxy is the section "proxy": everything that is not about one upstream.
type Proxy struct {
	Listen      string
	AdminListen string
	// AdminAuth is who may use the admin listener. Its mode is empty where the configuration does not say.
	AdminAuth     Auth
	SocketMode    fs.FileMode // of a unix socket that is listened at
	PublicURL     string
	Server        ServerInfo
	Naming        Naming
	Lazy          *Lazy
	Profiles      map[string]Profile
	Startup       Startup
	StartupGrace  time.Duration
	ShutdownGrace time.Duration
	// ShutdownDelay is how long new requests are taken after the signal to stop, while readiness is refused already.
	ShutdownDelay  time.Duration
	Auth           Auth
	AllowedOrigins []string
	AllowedHosts   []string
	Limits         Limits
	Sessions       Sessions
	Log            Log
	Pin            Pin // of servers that say nothing
	KeptResults    KeptResults
	StateDir       string
	// AllowStdio is false where no program may be started, whatever the servers say.
	AllowStdio bool
	// StateDirGiven is true where the file names the directory.
	StateDirGiven bool
	// StreamAfter is how long a request may stay unanswered before the response becomes an event stream.
	StreamAfter time.Duration
	// KeepAlive is the interval of comments on open event streams.
	KeepAlive time.Duration
}

// ServerInfo is what we call ourselves towards clients.
type ServerInfo struct {
	Name, Title, Version, Instructions string
}

// Naming decides the exposed names of tools and prompts.
type Naming struct {
	Mode       NamingMode
	Template   string // with {server} and {tool}
	MaxLength  int
	OnConflict OnConflict
}

// NamingMode says when the template applies.
type NamingMode string

// The naming modes.
const (
	NamingAlways     NamingMode = "always"
	NamingOnConflict NamingMode = "on_conflict"
	NamingNone       NamingMode = "none"
)

// OnConflict says what happens when two exposed names are equal.
type OnConflict string

// What to do on a conflict of names.
const (
	ConflictFail   OnConflict = "fail"
	ConflictSuffix OnConflict = "suffix"
	ConflictSkip   OnConflict = "skip"
)

// Profile is a named subset of the servers.
type Profile struct {
	Servers        []string
	ToolPolicy     Policy
	ResourcePolicy Policy
	PromptPolicy   Policy
	// Lazy is nil where the profile lists what everything else lists.
	Lazy *Lazy
	// Naming is nil where the names are those of everything; what a profile leaves out of it is as there.
	Naming *Naming
	// Instructions take the place of those of the whole proxy where they are not empty.
	Instructions string
}

// Startup says what a broken server does to the start.
type Startup string

// The kinds of startup.
const (
	StartupLenient Startup = "lenient"
	StartupStrict  Startup = "strict"
)

// Auth is who may use the proxy.
type Auth struct {
	Mode   AuthMode
	Header string // the header that carries the credential, by default Authorization
	Tokens []Token
	// Explicit is true where the file itself says the mode; only then may "none" go with a listener for everybody.
	Explicit bool
}

// AuthMode is the kind of inbound authentication.
type AuthMode string

// The modes of inbound authentication.
const (
	AuthNone   AuthMode = "none"
	AuthTokens AuthMode = "tokens"
)

// Token is one static credential of a client.
type Token struct {
	Name    string
	Token   Secret
	Profile string // the only profile this principal sees; empty for everything
}

// Limits bound what clients and upstreams may use.
type Limits struct {
	MaxBodyBytes  int64
	MaxFrameBytes int64
	MaxDepth      int
	MaxSessions   int
	MaxStreams    int
	// MaxSlots and MaxSlotsPerPrincipal bound the connections that sessions and principals have for themselves, over all
	// upstreams.
	MaxSlots             int
	MaxSlotsPerPrincipal int
	MaxInFlight          int
	MaxBufferedBytes     int64
}

// Sessions say what legacy sessions are and bound their life.
type Sessions struct {
	Mode SessionMode
	// Keys seal the ids of sessions: the first makes them, all open them. Without any, one is made and kept.
	Keys         []Secret
	IdleTimeout  time.Duration
	MaxAge       time.Duration
	ResumeWindow time.Duration
	// ResumeBufferBytes bounds what is kept of one session for clients that come back; zero keeps nothing.
	ResumeBufferBytes int64
}

// SessionMode says whether legacy clients get sessions.
type SessionMode string

// The session modes.
const (
	SessionsStateful  SessionMode = "stateful"
	SessionsStateless SessionMode = "stateless"
)

// Log is how the proxy logs.
type Log struct {
	Level  string // debug, info, warn, error
	Format string // json or console
	File   string // empty for stderr
}

// KeptResults bounds the results that are kept because they were too long for an answer.
type KeptResults struct {
	MaxBytes int64
	MaxItems int
	MaxAge   time.Duration
}
