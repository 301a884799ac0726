package config

import (
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"
)

// newProxy is the section proxy with every default. getenv finds the directory for state.
func newProxy(getenv func(string) (string, bool)) (Proxy, origin) {
	dir, from := defaultStateDir(getenv)
	return Proxy{
		Listen:       "127.0.0.1:8080",
		Server:       ServerInfo{Name: "mcp-proxy"},
		Naming:       Naming{Mode: NamingAlways, Template: "{server}__{tool}", MaxLength: 50, OnConflict: ConflictFail},
		Startup:      StartupLenient,
		StartupGrace: 10 * time.Second, ShutdownGrace: 25 * time.Second,
		Auth: Auth{Mode: AuthNone, Header: "Authorization"},
		Limits: Limits{
			MaxBodyBytes: 4 << 20, MaxFrameBytes: 32 << 20, MaxDepth: 256,
			MaxSessions: 10_000, MaxStreams: 10_000, MaxSlots: 1000, MaxSlotsPerPrincipal: 250, MaxInFlight: 10_000, MaxBufferedBytes: 256 << 20,
		},
		Sessions: Sessions{Mode: SessionsStateful, IdleTimeout: 30 * time.Minute, MaxAge: 30 * 24 * time.Hour, ResumeWindow: 30 * time.Second,
			ResumeBufferBytes: 1 << 20},
		Log:         Log{Level: "info", Format: "json"},
		KeptResults: KeptResults{MaxBytes: 64 << 20, MaxItems: 1000, MaxAge: 15 * time.Minute},
		StateDir:    dir,
		AllowStdio:  true,
		SocketMode:  0o600,
		StreamAfter: 3 * time.Second, KeepAlive: 15 * time.Second,
	}, from
}

var infoFields = []field[ServerInfo]{
	textField("name", "The name clients see.", `"team-tools"`, func(s *ServerInfo) *string { return &s.Name }, notEmpty),
	textField("title", "The name people see.", `"Tools of the team"`, func(s *ServerInfo) *string { return &s.Title }),
	withDefault("the version of the proxy", textField("version", "The version clients see.", `"2.1"`, func(s *ServerInfo) *string { return &s.Version })),
	textField("instructions", "Text that clients give to their model.", `"Search before you write."`, func(s *ServerInfo) *string { return &s.Instructions }),
}

var namingFields = []field[Naming]{
	choiceField("mode", "`always`: every name gets the template. `on_conflict`: only names that two servers share. `none`: never.", `"none"`,
		func(n *Naming) *NamingMode { return &n.Mode }, []NamingMode{NamingAlways, NamingOnConflict, NamingNone}),
	textField("template", "How a name is made; must contain `{tool}`, may contain `{server}`.", `"{server}.{tool}"`, func(n *Naming) *string { return &n.Template }, isTemplate),
	intField("max_length", "The longest name; longer ones are shortened with a hash. From 16 to 128.", `64`, 16, 128, func(n *Naming) *int { return &n.MaxLength }),
	choiceField("on_conflict", "What happens when two names are equal: no start, a suffix, or the later one left out.", `"suffix"`,
		func(n *Naming) *OnConflict { return &n.OnConflict }, []OnConflict{ConflictFail, ConflictSuffix, ConflictSkip}),
}

var profileFields = []field[Profile]{
	textsField("servers", "The servers of this profile; at least one.", `["github"]`, func(p *Profile) *[]string { return &p.Servers }, notEmpty),
	groupField("tool_policy", "Which of their tools are offered, as in a server; what a server's own policy hides stays hidden.", `{"deny": ["delete_*"]}`, policyFields, func(p *Profile) *Policy { return &p.ToolPolicy }),
	groupField("resource_policy", "The same for resources and templates.", `{"deny": ["*.env"]}`, resourceFields, func(p *Profile) *Policy { return &p.ResourcePolicy }),
	groupField("prompt_policy", "The same for prompts.", `{"deny": ["draft_*"]}`, promptFields, func(p *Profile) *Policy { return &p.PromptPolicy }),
	lazyField("As `proxy.lazy`, for this profile. `false` lists everything whole, whatever a server says.", "as `proxy.lazy`", func(p *Profile) **Lazy { return &p.Lazy }),
	{key: "naming", typ: "object", doc: "Names of its own, made among the servers of this profile; what is left out is as in `proxy.naming`.", example: `{"mode": "none"}`, def: "the names of `/mcp`",
		read: readProfileNaming, show: showProfileNaming},
	withDefault("those of `proxy.server`", textField("instructions", "Text that clients give to their model, before what the servers say.", `"Only read."`, func(p *Profile) *string { return &p.Instructions })),
}

var tokenFields = []field[Token]{
	textField("name", "Who this is, in logs; unique.", `"alice"`, func(t *Token) *string { return &t.Name }, notEmpty),
	{key: "token", typ: "string", doc: "The credential itself; unique.", example: `"${ALICE_TOKEN:-none}"`, def: "required", read: readToken, show: showToken},
	withDefault("everything", textField("profile", "The only profile this token may use.", `"readers"`, func(t *Token) *string { return &t.Profile })),
}

var authFields = []field[Auth]{
	{key: "mode", typ: "`none`, `tokens`", doc: "`none` must be said in words when the proxy listens for other machines.", example: `"none"`,
		def: "`tokens` when there are tokens, else `none`", read: readAuthMode, value: func(a *Auth) any { return string(a.Mode) }},
	textField("header", "The header that carries the credential; it is never passed on.", `"X-Proxy-Token"`, func(a *Auth) *string { return &a.Header }, isHeaderName),
	{key: "tokens", typ: "list of objects", doc: "The credentials that are let in.", example: `[{"name": "alice", "token": "${ALICE_TOKEN:-none}"}]`,
		def: "none", read: readTokens, show: showTokens},
}

var limitFields = []field[Limits]{
	bytesField("max_body_bytes", "The longest request of a client.", `1048576`, func(l *Limits) *int64 { return &l.MaxBodyBytes }),
	bytesField("max_frame_bytes", "The longest message of a server.", `16777216`, func(l *Limits) *int64 { return &l.MaxFrameBytes }),
	intField("max_depth", "How deep the JSON of a message may nest; from 8 to 10000.", `64`, 8, 10_000, func(l *Limits) *int { return &l.MaxDepth }),
	countField("max_sessions", "Client sessions at a time.", `100`, func(l *Limits) *int { return &l.MaxSessions }),
	countField("max_slots", "Connections with servers that sessions and principals have for themselves, at a time, over all servers.", `50`, func(l *Limits) *int { return &l.MaxSlots }),
	countField("max_slots_per_principal", "The same for one principal; callers without one count as one.", `5`, func(l *Limits) *int { return &l.MaxSlotsPerPrincipal }),
	countField("max_streams", "Open event streams at a time.", `100`, func(l *Limits) *int { return &l.MaxStreams }),
	countField("max_in_flight", "Requests being worked on at a time.", `100`, func(l *Limits) *int { return &l.MaxInFlight }),
	bytesField("max_buffered_bytes", "Bytes of all messages that wait to be sent.", `67108864`, func(l *Limits) *int64 { return &l.MaxBufferedBytes }),
}

var sessionFields = []field[Sessions]{
	choiceField("mode", "`stateful`: `initialize` opens a session. `stateless`: it brings no id, any id is ignored and each request stands alone; for clients that lose or invent theirs.",
		`"stateless"`, func(s *Sessions) *SessionMode { return &s.Mode }, []SessionMode{SessionsStateful, SessionsStateless}),
	{key: "keys", typ: "list of strings", doc: "Secrets of at least 32 characters that session ids are sealed with. The first makes ids, all open them: put a new one first and remove the old one after `max_age`.",
		example: `["${SESSION_KEY:-0123456789abcdef0123456789abcdef}"]`, def: "one that is made and kept in `state_dir`", read: readSessionKeys,
		show: func(s *shower, canon, key string, src *Sessions) { s.secretList(canon, key, src.Keys) }},
	durationField("idle_timeout", "After this time without a request the live state of a session is dropped.", `"10m"`, time.Millisecond,
		func(s *Sessions) *time.Duration { return &s.IdleTimeout }),
	durationField("max_age", "After this time a session ends in any case.", `"24h"`, time.Millisecond, func(s *Sessions) *time.Duration { return &s.MaxAge }),
	durationField("resume_window", "How long a call goes on after its client lost the connection, and how long what was said meanwhile is kept.", `"1m"`, 0,
		func(s *Sessions) *time.Duration { return &s.ResumeWindow }),
	withType("bytes", intField("resume_buffer_bytes", "What is kept of the event streams of one session, so that a client that lost a connection gets what it missed; 0 keeps nothing. All sessions together keep a quarter of `max_buffered_bytes` at most.", `65536`,
		0, math.MaxInt64>>10, func(s *Sessions) *int64 { return &s.ResumeBufferBytes })),
}

var keptResultFields = []field[KeptResults]{
	sizeField("max_bytes", "Memory for all of them. Where it is used up, the oldest of whoever uses most goes first.", `"16MiB"`, 1<<10, func(k *KeptResults) *int64 { return &k.MaxBytes }),
	intField("max_items", "How many there may be; 0 keeps none.", `100`, 0, 1_000_000, func(k *KeptResults) *int { return &k.MaxItems }),
	durationField("max_age", "How long each is kept.", `"1h"`, time.Second, func(k *KeptResults) *time.Duration { return &k.MaxAge }),
}

var logFields = []field[Log]{
	choiceField("level", "The least level that is written.", `"debug"`, func(l *Log) *string { return &l.Level }, []string{"debug", "info", "warn", "error"}),
	choiceField("format", "JSON lines, or text for people.", `"console"`, func(l *Log) *string { return &l.Format }, []string{"json", "console"}),
	withDefault("standard error", textField("file", "File to write to; relative to the directory of the file.", `"mcp-proxy.log"`, func(l *Log) *string { return &l.File })),
}

var proxyFields = []field[Proxy]{
	textField("listen", "Address to serve at: `host:port`, or `unix:/path` for a unix socket. An address that other machines reach needs `auth`.", `"127.0.0.1:9000"`, func(p *Proxy) *string { return &p.Listen }),
	withDefault("none", textField("admin_listen", "Second address for metrics, status and reload. One that other machines reach needs `admin_auth`.", `"127.0.0.1:9090"`, func(p *Proxy) *string { return &p.AdminListen })),
	{key: "socket_mode", typ: "string", doc: "Permissions of a unix socket, in octal digits.", example: `"0660"`, def: "`0600`",
		read: readSocketMode, value: func(p *Proxy) any { return fmt.Sprintf("%04o", p.SocketMode) }},
	withDefault("none", textField("public_url", "The address clients use, where a reverse proxy stands in front.", `"https://mcp.example.com"`,
		func(p *Proxy) *string { return &p.PublicURL }, isPublicURL)),
	groupField("server", "What the proxy calls itself.", `{"name": "team-tools"}`, infoFields, func(p *Proxy) *ServerInfo { return &p.Server }),
	groupField("naming", "How the names of tools and prompts are made.", `{"mode": "none"}`, namingFields, func(p *Proxy) *Naming { return &p.Naming }),
	lazyField(lazyDoc+" Where this is not `false` it holds for all servers together; otherwise each server's own `lazy` does.", "`false`", func(p *Proxy) **Lazy { return &p.Lazy }),
	{key: "profiles", typ: "object of objects", doc: "Named subsets, served at `/profiles/<name>/mcp`.", example: `{"readers": {"servers": ["github"]}}`,
		def: "none", read: readProfiles, show: showProfiles},
	choiceField("startup", "`lenient`: a server with a mistake is reported and the others serve. `strict`: any mistake prevents the start.", `"strict"`,
		func(p *Proxy) *Startup { return &p.Startup }, []Startup{StartupLenient, StartupStrict}),
	durationField("startup_grace", "How long readiness waits for the first attempts at all servers.", `"5s"`, 0, func(p *Proxy) *time.Duration { return &p.StartupGrace }),
	durationField("shutdown_delay", "How long new requests are still taken after the signal to stop, while `/readyz` answers 503 already; for load balancers that notice late.", `"5s"`, 0, func(p *Proxy) *time.Duration { return &p.ShutdownDelay }),
	durationField("shutdown_grace", "How long calls may go on after the signal to stop.", `"5s"`, 0, func(p *Proxy) *time.Duration { return &p.ShutdownGrace }),
	boolField("allow_stdio", "Whether programs may be started at all; `false` refuses every server with a `command`.", `false`, func(p *Proxy) *bool { return &p.AllowStdio }),
	{key: "auth", typ: "object", doc: "Who may use the proxy.", example: `{"tokens": [{"name": "alice", "token": "${ALICE_TOKEN:-none}"}]}`,
		def: "see below", read: readAuth, show: func(s *shower, canon, key string, p *Proxy) { showGroup(s, canon, key, authFields, &p.Auth) }},
	{key: "admin_auth", typ: "object", doc: "Who may use `admin_listen`: the keys of `auth`. Without it a loopback address is open to everybody on this machine, but for a reload, which asks for a credential of `auth`.", example: `{"tokens": [{"name": "prometheus", "token": "${METRICS_TOKEN:-none}"}]}`,
		def: "none", read: readAdminAuth, show: showAdminAuth},
	textsField("allowed_origins", "Web pages that may call the proxy; `*` is all.", `["https://app.example.com"]`, func(p *Proxy) *[]string { return &p.AllowedOrigins }, isOrigin),
	textsField("allowed_hosts", "Host names the proxy answers to besides its own address, as behind a reverse proxy.", `["mcp.example.com"]`,
		func(p *Proxy) *[]string { return &p.AllowedHosts }, isHost),
	groupField("limits", "Bounds of what clients and servers may use.", `{"max_sessions": 100}`, limitFields, func(p *Proxy) *Limits { return &p.Limits }),
	groupField("sessions", "What sessions of the older revisions are, and how long they live.", `{"idle_timeout": "10m"}`, sessionFields, func(p *Proxy) *Sessions { return &p.Sessions }),
	groupField("log", "How the proxy logs.", `{"level": "debug"}`, logFields, func(p *Proxy) *Log { return &p.Log }),
	withDefault("`$XDG_STATE_HOME/mcp-proxy`, else `~/.local/state/mcp-proxy`", textField("state_dir",
		"Directory for what outlives a restart; relative to the directory of the file. Empty keeps everything in memory.", `"state"`, func(p *Proxy) *string { return &p.StateDir })),
	groupField("kept_results", "Bounds of results that are kept for servers with `oversize: resource`.", `{"max_age": "1h"}`, keptResultFields, func(p *Proxy) *KeptResults { return &p.KeptResults }),
	pinField("What `pin` is for servers that do not say it themselves.", "`false`", func(p *Proxy) *Pin { return &p.Pin }),
	durationField("stream_after", "How long a request may stay unanswered before its answer becomes an event stream.", `"1s"`, 0,
		func(p *Proxy) *time.Duration { return &p.StreamAfter }),
	durationField("keep_alive", "Interval of comments on open event streams.", `"20s"`, 100*time.Millisecond, func(p *Proxy) *time.Duration { return &p.KeepAlive }),
}

// proxyLater and topLater are keys that another version will know.
var (
	proxyLater = []string{"tracing", "elicitation"}
	topLater   []string
)

// bytesField is a size in bytes, from 1 KiB up.
func bytesField[T any](key, doc, example string, at func(*T) *int64) field[T] {
	return withType("bytes", intField(key, doc, example, 1024, math.MaxInt64>>10, at))
}

func withType[T any](typ string, f field[T]) field[T] {
	f.typ = typ
	return f
}

func countField[T any](key, doc, example string, at func(*T) *int) field[T] {
	return intField(key, doc, example, 1, 10_000_000, at)
}

func readAuthMode(r *reader, at place, n *node, a *Auth) {
	known := choiceField("mode", "", "", func(a *Auth) *AuthMode { return &a.Mode }, []AuthMode{AuthNone, AuthTokens}, "jwt")
	before := len(r.problems)
	known.read(r, at, n, a)
	a.Explicit = len(r.problems) == before
}

func readToken(r *reader, at place, n *node, t *Token) {
	if s, ok := r.text(at, n); ok && r.passes(at, n, s, []check{isCredential}) {
		t.Token = Secret(strings.TrimSpace(s))
	}
}

// readSessionKeys reads the secrets that session ids are sealed with.
func readSessionKeys(r *reader, at place, n *node, s *Sessions) {
	all, ok := r.texts(at, n, r.text)
	seen := map[string]bool{}
	for i, key := range all {
		key = strings.TrimSpace(key)
		switch {
		case len(key) < minSessionKey:
			r.mistake(at.index(i), n.items[i].line, "must have at least %d characters; make one with openssl rand -base64 32", minSessionKey)
		case seen[key]:
			r.mistake(at.index(i), n.items[i].line, "stands twice")
		default:
			seen[key] = true
			if ok {
				s.Keys = append(s.Keys, Secret(key))
			}
		}
	}
}

// minSessionKey is the shortest secret that a session id is sealed with.
const minSessionKey = 32

func readTokens(r *reader, at place, n *node, a *Auth) {
	if n.kind != kindList {
		r.want(at, n, "a list of objects")
		return
	}
	names, values := map[string]int{}, map[Secret]int{}
	for i, item := range n.items {
		here := at.index(i)
		var t Token
		readFields(r, here, item, tokenFields, &t)
		if item.kind != kindObject {
			continue
		}
		for _, key := range []string{"name", "token"} {
			if item.get(key) == nil {
				r.mistake(here, item.line, "%s is missing", key)
			}
		}
		if line := names[t.Name]; line > 0 && t.Name != "" {
			r.mistake(here, item.line, "has the same name as the token in line %d", line)
		}
		if line := values[t.Token]; line > 0 && t.Token != "" {
			r.mistake(here, item.line, "is the same token as the one in line %d", line)
		}
		names[t.Name], values[t.Token] = item.line, item.line
		a.Tokens = append(a.Tokens, t)
	}
}

// readAuth reads the section and settles the mode.
func readAuth(r *reader, at place, n *node, p *Proxy) { readAuthInto(r, at, n, &p.Auth) }

func readAuthInto(r *reader, at place, n *node, a *Auth) {
	readFields(r, at, n, authFields, a, "jwt", "type")
	if n.kind != kindObject {
		return
	}
	tokens := n.get("tokens")
	some := tokens != nil && !tokens.value.isEmpty()
	switch {
	case !a.Explicit && some:
		a.Mode = AuthTokens
	case a.Explicit && a.Mode == AuthNone && some:
		r.mistake(at.member(*tokens), tokens.line, "are given, but mode is none: say tokens, or leave them out")
	case a.Mode == AuthTokens && !some:
		r.mistake(at, n.line, "mode is tokens, but no tokens are given")
	}
}

func readAdminAuth(r *reader, at place, n *node, p *Proxy) {
	p.AdminAuth.Header = authorization
	readAuthInto(r, at, n, &p.AdminAuth)
	if n.kind == kindObject && p.AdminAuth.Mode == "" {
		r.mistake(at, n.line, `needs tokens, or "mode": "none" if everybody may use admin_listen`)
	}
	for i, t := range p.AdminAuth.Tokens {
		if t.Profile != "" {
			r.mistake(at.member(*n.get("tokens")).index(i), n.get("tokens").value.items[i].line, "has a profile; profiles are for clients")
		}
	}
}

func showAdminAuth(s *shower, canon, key string, p *Proxy) {
	if p.AdminAuth.Mode != "" {
		showGroup(s, canon, key, authFields, &p.AdminAuth)
	}
}

func readProfiles(r *reader, at place, n *node, p *Proxy) {
	if !r.isObject(at, n) {
		return
	}
	p.Profiles = make(map[string]Profile, len(n.members))
	for _, m := range n.members {
		here := at.member(m)
		var one Profile
		readFields(r, here, m.value, profileFields, &one)
		if !profileName.MatchString(m.key) {
			r.mistake(here, m.line, "the name of a profile is made of letters, digits, - _ and . and begins with a letter or digit")
		}
		if servers := m.value.get("servers"); m.value.kind == kindObject && (servers == nil || servers.value.isEmpty()) {
			r.mistake(here, m.line, "servers must name at least one server")
		}
		p.Profiles[m.key] = one
	}
}

func readSocketMode(r *reader, at place, n *node, p *Proxy) {
	s, ok := r.text(at, n)
	if !ok {
		return
	}
	mode, err := strconv.ParseUint(s, 8, 9)
	if err != nil || mode&0o600 != 0o600 {
		r.mistake(at, n.line, `must be the octal digits of permissions that the owner reads and writes with, such as "0660"`)
		return
	}
	p.SocketMode = fs.FileMode(mode)
}
