package config

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// draft is a server while it is read.
type draft struct {
	Server
	env       map[string]string // what stands under env itself
	envFile   string
	envFileAt place
	kind      string // type as a word of ours, "" when it is not given
}

var restartFields = []field[Restart]{
	durationField("initial_delay", "Wait before the first new attempt.", `"2s"`, time.Millisecond, func(r *Restart) *time.Duration { return &r.InitialDelay }),
	durationField("max_delay", "The longest wait between two attempts.", `"5m"`, time.Millisecond, func(r *Restart) *time.Duration { return &r.MaxDelay }),
	factorField("multiplier", "By what the wait grows with each attempt; from 1 to 100.", `1.5`, func(r *Restart) *float64 { return &r.Multiplier }),
	durationField("healthy_after", "Uptime after which the wait begins at `initial_delay` again.", `"1m"`, 0, func(r *Restart) *time.Duration { return &r.HealthyAfter }),
}

var childLimitFields = []field[ChildLimits]{
	withDefault("none", sizeField("memory", "Memory, as a size such as `512MiB` or `2GiB`, or in bytes. A program that needs more is ended.", `"512MiB"`, 1<<20, func(l *ChildLimits) *int64 { return &l.Memory })),
	withDefault("none", intField("pids", "Processes and threads; 0 is without bound.", `200`, 0, 4_000_000, func(l *ChildLimits) *int { return &l.Pids })),
}

var toolFields = []field[ToolOverride]{
	textField("name", "Takes the place of the tool's own name in the template.", `"find"`, func(t *ToolOverride) *string { return &t.Name }),
	textField("title", "Takes the place of its title.", `"Find things"`, func(t *ToolOverride) *string { return &t.Title }),
	textField("description", "Takes the place of its description.", `"Finds things by name."`, func(t *ToolOverride) *string { return &t.Description }),
	durationField("call_timeout", "Takes the place of the server's `call_timeout`.", `"10m"`, time.Millisecond, func(t *ToolOverride) *time.Duration { return &t.CallTimeout }),
	withDefault("that of the server", sizeField("max_result_size", "Takes the place of the server's `max_result_size`.", `"1MiB"`, 1<<10, func(t *ToolOverride) *int64 { return &t.MaxResultSize })),
	boolField("disabled", "Leaves the tool out.", `true`, func(t *ToolOverride) *bool { return &t.Disabled }),
	{key: "arguments", typ: "object of objects", doc: "Values of arguments, by their names. `{\"fixed\": VALUE}` is sent with every call; clients neither see the argument nor may give it. `{\"default\": VALUE}` is sent where a client gives none.",
		example: `{"path": {"fixed": "/data"}, "limit": {"default": 10}}`, def: "none", read: readArguments, show: showArguments},
}

var elicitationFields = []field[Elicitation]{
	choiceField("mode", "`relay` brings questions to the client that caused them, `decline` declines them all.", `"decline"`, func(e *Elicitation) *ElicitationMode { return &e.Mode },
		[]ElicitationMode{ElicitationRelay, ElicitationDecline}),
	durationField("timeout", "How long a person may take to answer.", `"1m"`, time.Millisecond, func(e *Elicitation) *time.Duration { return &e.Timeout }),
	boolField("label", "Puts the name of the server before its questions on endpoints of several servers.", `false`, func(e *Elicitation) *bool { return &e.Label }),
}

var tasksFields = []field[Tasks]{
	boolField("enabled", "Whether such calls are driven at all; otherwise they are refused.", `false`, func(t *Tasks) *bool { return &t.Enabled }),
	durationField("poll_interval", "Wait between two looks at a task whose server names none.", `"2s"`, time.Millisecond, func(t *Tasks) *time.Duration { return &t.PollInterval }),
	durationField("timeout", "How long a task may take in all; then it is cancelled.", `"20m"`, time.Millisecond, func(t *Tasks) *time.Duration { return &t.Timeout }),
	intField("max_attempts", "How often a task is looked at before it is cancelled; 0 is without bound.", `100`, 0, 1_000_000, func(t *Tasks) *int { return &t.MaxAttempts }),
}

var policyFields = []field[Policy]{
	textsField("expose", "Only these tools are offered; empty means all.", `["search_*"]`, func(p *Policy) *[]string { return &p.Expose }, notEmpty),
	textsField("deny", "These tools are not offered, whatever `expose` says.", `["delete_*"]`, func(p *Policy) *[]string { return &p.Deny }, notEmpty),
	{key: "effects", typ: "list of `read_only`, `side_effect`", doc: "Of the tools that are left, only those whose annotations say this of them: `read_only` where `readOnlyHint` is true, else `side_effect`. Empty means all.",
		example: `["read_only"]`, def: "", read: readEffects, value: func(p *Policy) any { return effectWords(p.Effects) }},
}

// resourceFields and promptFields are those of the policies that know no effects.
var (
	resourceFields = []field[Policy]{
		textsField("expose", "Only resources with these URIs are offered and read; empty means all.", `["file:///data/*"]`, func(p *Policy) *[]string { return &p.Expose }, notEmpty),
		textsField("deny", "Resources with these URIs are neither offered nor read, whatever `expose` says.", `["*.env"]`, func(p *Policy) *[]string { return &p.Deny }, notEmpty),
	}
	promptFields = []field[Policy]{
		textsField("expose", "Only these prompts are offered; empty means all.", `["review_*"]`, func(p *Policy) *[]string { return &p.Expose }, notEmpty),
		textsField("deny", "These prompts are not offered, whatever `expose` says.", `["draft_*"]`, func(p *Policy) *[]string { return &p.Deny }, notEmpty),
	}
)

var serverFields = []field[draft]{
	{key: "command", typ: "string", doc: "Program to start. With a slash it is relative to the directory of the file, else it is looked up in `PATH`.",
		example: `"/usr/local/bin/my-server"`, def: "this or `url`", read: readCommand, value: func(d *draft) any { return d.Command }},
	{key: "args", typ: "list of strings", doc: "Arguments of the program.", example: `["--root", "/data"]`, read: readArgs, show: showArgs},
	{key: "env", typ: "object of strings", doc: "Variables added to the small base environment of the program. Wins over `env_file`.",
		example: `{"API_KEY": "${API_KEY:-none}"}`, def: "none", read: readEnv, show: showEnv},
	{key: "env_file", typ: "string", doc: "File of `NAME=value` lines: comments, `export` and quotes are understood, nothing in it is expanded.",
		example: `"my.env"`, def: "none", read: readEnvFile},
	textsField("inherit_env", "Names of further variables of the proxy's own environment that the program gets.", `["SSH_AUTH_SOCK"]`,
		func(d *draft) *[]string { return &d.InheritEnv }, isVariableName),
	{key: "cwd", typ: "string", doc: "Working directory of the program; relative to the directory of the file.", example: `"work"`,
		def: "the directory of the file", read: readCwd, value: func(d *draft) any { return d.Cwd }},
	{key: "url", typ: "string", doc: "Address of a remote server, used exactly as written.", example: `"https://example.com/mcp"`,
		def: "this or `command`", read: readURL, show: showURL},
	{key: "headers", typ: "object of strings", doc: "Headers sent with every request to `url`.", example: `{"X-Team": "blue"}`,
		def: "none", read: readHeaders, show: showHeaders},
	{key: "auth_token", typ: "string", doc: "Sent to `url` as `Authorization: Bearer ...`.", example: `"${TOKEN:-none}"`,
		def: "none", read: readAuthToken, show: showAuthToken},
	{key: "auth", typ: "object", doc: "Another way of signing in at `url`.", example: `{"type": "api_key", "header": "X-API-Key", "key": "${API_KEY:-none}"}`,
		def: "see below", read: readSignIn, show: showSignIn},
	boolField("forward_caller_auth", "The server gets the client's own `Authorization` header, in a connection that serves no other credential. `auth_token` or such a header in `headers` wins over it. Clients must then sign in here with another header (`proxy.auth.header`).", `true`,
		func(d *draft) *bool { return &d.ForwardCallerAuth }),
	textsField("forward_headers", "Headers of the client's request that the server gets too: as headers, or over stdio under `forwarded_headers` in `_meta`. Credentials and headers of the protocol cannot be forwarded.", `["X-Request-Id"]`,
		func(d *draft) *[]string { return &d.ForwardHeaders }, isForwardable),
	{key: "type", typ: "`stdio`, `http`, `sse`", doc: "How the server is reached; other spellings are listed below. Without it, `command` means `stdio`, and `url` means `http` with `sse` tried after it.",
		example: `"sse"`, def: "inferred", read: readType, value: showType},
	withDefault("what the server announces", textField("message_url", "Where messages are posted to a server of the type `sse`, for one behind a gateway that hides a part of the path from it. A path or a whole address, relative to `url`; the query that the server announces is kept.", `"/gateway/messages/"`,
		func(d *draft) *string { return &d.MessageURL }, isMessageURL)),
	boolField("disabled", "Leaves the server out without removing it.", `true`, func(d *draft) *bool { return &d.Disabled }),
	choiceField("protocol", "Which era of the protocol to speak; `auto` finds out.", `"legacy"`, func(d *draft) *Protocol { return &d.Protocol },
		[]Protocol{ProtocolAuto, ProtocolLegacy, ProtocolModern}),
	choiceField("sharing", "`shared`: all clients use the same connections. `session`: one connection for each client session. `call`: one connection for each call while it runs.", `"session"`,
		func(d *draft) *Sharing { return &d.Sharing }, []Sharing{SharingShared, SharingSession, SharingCall}),
	intField("instances", "How many connections there are: with `sharing: shared` they serve everybody, with `call` each serves one call at a time, with `session` it is how many sessions may have one (64 where it is not set); from 1 to 1024.", `2`, 1, 1024, func(d *draft) *int { return &d.Instances }),
	intField("max_concurrency", "How many calls the server gets at a time; 0 is without bound.", `4`, 0, 100_000, func(d *draft) *int { return &d.MaxConcurrency }),
	intField("max_queue", "How many calls may wait for `max_concurrency`, `call_timeout` at most; more are refused at once.", `10`, 0, 100_000, func(d *draft) *int { return &d.MaxQueue }),
	boolField("serialize", "One call at a time. With `trust_annotations`, tools that say they only read run beside it.", `true`, func(d *draft) *bool { return &d.Serialize }),
	boolField("trust_annotations", "Takes the server's word that a tool only reads or may be repeated.", `true`, func(d *draft) *bool { return &d.TrustAnnotations }),
	choiceField("replay", "`safe` repeats a call after a lost connection where it cannot do harm: reads, and with `trust_annotations` tools that say so. `never` repeats nothing.", `"never"`,
		func(d *draft) *Replay { return &d.Replay }, []Replay{ReplaySafe, ReplayNever}),
	withDefault("`60s` for `command`, `15s` for `url`", durationField("connect_timeout", "Time for start and handshake together.", `"20s"`, time.Millisecond,
		func(d *draft) *time.Duration { return &d.ConnectTimeout })),
	durationField("call_timeout", "How long a call may go without a sign of life; progress begins it anew.", `"5m"`, time.Millisecond,
		func(d *draft) *time.Duration { return &d.CallTimeout }),
	durationField("max_call_time", "How long a call may take in all.", `"1h"`, time.Millisecond, func(d *draft) *time.Duration { return &d.MaxCallTime }),
	withDefault("`0`, never", durationField("idle_stop", "After this time without a call or a watched resource the connection is ended, and a program is stopped. What it offers stays listed; the next call starts it again.", `"15m"`, 0,
		func(d *draft) *time.Duration { return &d.IdleStop })),
	withDefault("`principal` with `forward_caller_auth`, else `global`", choiceField("catalog_scope", "For whom the server's lists are the same. `global`: everybody. `principal`: those who send the same forwarded credentials; others see what the server lists without any. `session`: with `sharing: session`, each session that has a connection of its own.", `"principal"`,
		func(d *draft) *CatalogScope { return &d.CatalogScope }, []CatalogScope{ScopeGlobal, ScopePrincipal, ScopeSession})),
	boolField("reinit_on_expired_session", "A session that the server has lost is opened again, and the call that found out is sent once more. Otherwise that call fails, and the next one gets a new connection.", `false`,
		func(d *draft) *bool { return &d.ReinitOnExpiredSession }),
	boolField("prewarm", "With `sharing: session` or `call`: keeps one connection ready beside those in use, so that a new session or a further call does not wait for a start.", `true`, func(d *draft) *bool { return &d.Prewarm }),
	choiceField("start", "`eager` starts or reaches the server with the proxy. `lazy` does it when a call needs it, once it is known from an earlier run what the server offers (`state_dir`); until then it is started like the others.", `"lazy"`, func(d *draft) *Start { return &d.Start },
		[]Start{StartEager, StartLazy}),
	durationField("probe_interval", "How often a connection that nobody uses is asked whether the server still lives: with `ping`, or `server/discover` on modern servers. One that does not answer several times is replaced. 0 is never.", `"5m"`, 0,
		func(d *draft) *time.Duration { return &d.ProbeInterval }),
	groupField("limits", "What a program and everything it starts may use together. Needs Linux with a cgroup (v2) that is delegated to the proxy; elsewhere the server is not started.", `{"memory": "512MiB"}`, childLimitFields,
		func(d *draft) *ChildLimits { return &d.Limits }),
	groupField("restart", "Waits between attempts to start or reach the server.", `{"initial_delay": "2s"}`, restartFields, func(d *draft) *Restart { return &d.Restart }),
	{key: "tool_prefix", typ: "string", doc: "Put before each tool name in place of `naming.template`; may be empty.", example: `"gh_"`,
		def: "not set", read: readToolPrefix, value: showToolPrefix},
	groupField("tool_policy", "Which tools are offered, by the names the server itself uses; `*` stands for any text.", `{"deny": ["delete_*"]}`, policyFields,
		func(d *draft) *Policy { return &d.ToolPolicy }),
	groupField("resource_policy", "Which resources and templates are offered, and which URIs are read and watched, by the URIs of the server itself.", `{"deny": ["*.env"]}`, resourceFields,
		func(d *draft) *Policy { return &d.ResourcePolicy }),
	groupField("prompt_policy", "Which prompts are offered, by the names the server itself uses.", `{"deny": ["draft_*"]}`, promptFields,
		func(d *draft) *Policy { return &d.PromptPolicy }),
	lazyField(lazyDoc, "`false`", func(d *draft) **Lazy { return &d.Lazy }),
	withDefault("`0`, none", sizeField("max_result_size", "The longest result of a tool, in bytes or as `64KiB`, `1MiB`; at least 1 KiB. A tool can have its own.", `"64KiB"`, 1<<10,
		func(d *draft) *int64 { return &d.MaxResultSize })),
	choiceField("oversize", "What becomes of a longer result. `refuse`: the client gets an error that says so. `resource`: it gets the beginning and the link of a resource under which the whole is kept for a while.", `"resource"`,
		func(d *draft) *Oversize { return &d.Oversize }, []Oversize{OversizeRefuse, OversizeResource}),
	pinField("`true`: a tool is offered only while its name, description, title, annotations and schemas are what was approved. What is there on first use counts as approved; what changes or comes later is withheld until `mcp-proxy approve`. `\"strict\"`: nothing counts as approved on first use either.",
		"that of `proxy.pin`", func(d *draft) *Pin { return &d.Pin }),
	groupField("elicitation", "What happens when the server asks the person behind a client.", `{"timeout": "1m"}`, elicitationFields, func(d *draft) *Elicitation { return &d.Elicitation }),
	groupField("tasks", "How calls are driven to their end that the server runs as tasks, for clients that know no tasks.", `{"enabled": false}`, tasksFields, func(d *draft) *Tasks { return &d.Tasks }),
	{key: "tools", typ: "object of objects", doc: "Changes to single tools, by the names the server itself uses.", example: `{"search": {"name": "find"}}`,
		def: "none", read: readTools, show: showTools},
	{key: "request_meta", typ: "object", doc: "Members added to `_meta` of every request to the server. Numbers are kept to the digit.",
		example: `{"tenant": "blue"}`, def: "none", read: readRequestMeta, show: showRequestMeta},
}

func withDefault[T any](def string, f field[T]) field[T] {
	f.def = def
	return f
}

func readCommand(r *reader, at place, n *node, d *draft) {
	s, ok := r.text(at, n)
	switch {
	case !ok:
	case s == "":
		r.mistake(at, n.line, "is empty")
	case filepath.Base(s) != s:
		d.Command = r.exp.abs(s)
	default:
		d.Command = s
	}
}

func readArgs(r *reader, at place, n *node, d *draft) {
	if all, ok := r.texts(at, n, r.loose); ok && r.noNUL(at, n, strings.Join(all, "")) {
		d.Args = all
	}
}

// noNUL refuses what no process can be given.
func (r *reader) noNUL(at place, n *node, s string) bool {
	if strings.ContainsRune(s, 0) {
		r.mistake(at, n.line, "holds a zero byte")
		return false
	}
	return true
}

func readEnv(r *reader, at place, n *node, d *draft) {
	d.env = map[string]string{}
	r.textMap(at, n, func(at place, m member, value string) {
		if m.key == "" || strings.ContainsAny(m.key, "=\x00") {
			r.mistake(at, m.line, "is not the name of a variable")
			return
		}
		if r.noNUL(at, m.value, value) {
			d.env[m.key] = value
		}
	})
}

func readEnvFile(r *reader, at place, n *node, d *draft) {
	s, ok := r.text(at, n)
	if ok && s == "" {
		r.mistake(at, n.line, "is empty")
		return
	}
	d.envFile, d.envFileAt = s, at
}

func readCwd(r *reader, at place, n *node, d *draft) {
	if s, ok := r.text(at, n); ok && s != "" {
		d.Cwd = r.exp.abs(s)
	}
}

func readURL(r *reader, at place, n *node, d *draft) {
	s, ok := r.text(at, n)
	if ok && r.passes(at, n, s, []check{isHTTPURL}) {
		d.URL = Secret(s)
	}
}

func readHeaders(r *reader, at place, n *node, d *draft) {
	d.Headers = map[string]Secret{}
	seen := map[string]int{}
	r.textMap(at, n, func(at place, m member, value string) {
		if !isToken(m.key) {
			r.mistake(at, m.line, "is not the name of a header")
			return
		}
		folded := strings.ToLower(m.key)
		if line := seen[folded]; line > 0 {
			r.mistake(at, m.line, "is given twice: line %d and line %d; case makes no difference in header names", line, m.line)
			return
		}
		seen[folded] = m.line
		if strings.ContainsAny(value, "\r\n\x00") {
			r.mistake(at, m.value.line, "holds a line break; a file read by ${file:} must be one line")
			return
		}
		d.Headers[m.key] = Secret(value)
	})
}

func readAuthToken(r *reader, at place, n *node, d *draft) {
	s, ok := r.text(at, n)
	if ok && r.passes(at, n, s, []check{isCredential}) {
		d.AuthToken = Secret(strings.TrimSpace(s))
	}
}

func readToolPrefix(r *reader, at place, n *node, d *draft) {
	if s, ok := r.text(at, n); ok {
		d.ToolPrefix = &s
	}
}

func showToolPrefix(d *draft) any {
	if d.ToolPrefix == nil {
		return nil
	}
	return *d.ToolPrefix
}

// transportNames are the spellings of type, in lower case and without separators.
var transportNames = map[string]Transport{
	"stdio": TransportStdio, "local": TransportStdio,
	"http": TransportHTTP, "streamablehttp": TransportHTTP, "httpstream": TransportHTTP, "streaminghttp": TransportHTTP,
	"sse": TransportSSE, "remote": "",
}

func readType(r *reader, at place, n *node, d *draft) {
	s, ok := r.text(at, n)
	if !ok {
		return
	}
	t, known := transportNames[strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))]
	if !known {
		r.mistake(at, n.line, "%q is not a transport; known are stdio, http (also streamable-http) and sse", n.text)
		return
	}
	d.Transport, d.kind = t, string(t)
	// "remote" says no more than that there is a url.
	if t == "" {
		d.kind = "remote"
	}
}

// showType says "remote" where the kind of a url is still to be found out.
func showType(d *draft) any {
	if d.TransportGuessed {
		return "remote"
	}
	return string(d.Transport)
}

func readTools(r *reader, at place, n *node, d *draft) {
	if !r.isObject(at, n) {
		return
	}
	d.Tools = make(map[string]ToolOverride, len(n.members))
	for _, m := range n.members {
		var one ToolOverride
		readFields(r, at.member(m), m.value, toolFields, &one)
		d.Tools[m.key] = one
	}
}

func readRequestMeta(r *reader, at place, n *node, d *draft) {
	if raw, ok := r.rawObject(at, n); ok {
		d.RequestMeta = raw
	}
}

// rawObject reads an object that is kept as JSON; an empty one is none.
func (r *reader) rawObject(at place, n *node) (json.RawMessage, bool) {
	if !r.isObject(at, n) {
		return nil, false
	}
	value, ok := r.json(at, n)
	return value, ok && !slices.Equal(value, []byte("{}"))
}
