package config

import (
	"errors"
	"io/fs"
	"strings"
	"time"
	"unicode"
)

// The defaults of a server.
const (
	defaultConnectStdio = 60 * time.Second
	defaultConnectHTTP  = 15 * time.Second
	defaultCallTimeout  = 2 * time.Minute
	defaultMaxCallTime  = 30 * time.Minute
)

func newDraft(id string) *draft {
	return &draft{Server: Server{
		ID: id, Protocol: ProtocolAuto, Sharing: SharingShared, Instances: 1, Start: StartEager,
		CallTimeout: defaultCallTimeout, MaxCallTime: defaultMaxCallTime,
		MaxQueue: 1000, Replay: ReplaySafe, ReinitOnExpiredSession: true, Oversize: OversizeRefuse, ProbeInterval: time.Minute,
		Elicitation: Elicitation{Mode: ElicitationRelay, Timeout: 5 * time.Minute, Label: true},
		Tasks:       Tasks{Enabled: true, PollInterval: time.Second, Timeout: 10 * time.Minute},
		Restart:     Restart{InitialDelay: time.Second, MaxDelay: time.Minute, Multiplier: 2, HealthyAfter: 30 * time.Second},
	}}
}

// server reads one entry. Its mistakes are recorded and leave the other entries alone.
func (r *reader) server(at place, m member) *Server {
	r.id = m.key
	defer func() { r.id, r.lax = "", false }()
	d := newDraft(m.key)
	r.checkID(at, m)
	entry := canonical(r, at, m.value)
	if off := entry.get("disabled"); off != nil && off.value.kind == kindBool && off.value.text == "true" {
		r.lax = true
	}
	readFields(r, at, entry, serverFields, d)
	if entry.kind == kindObject {
		r.finishServer(at, m, entry, d)
	}
	return &d.Server
}

// checkID refuses names that cannot stand in a path, a metric or a tool name.
func (r *reader) checkID(at place, m member) {
	usable := strings.ContainsFunc(m.key, func(c rune) bool { return c < unicode.MaxASCII && (unicode.IsLetter(c) || unicode.IsDigit(c)) })
	switch {
	case !usable:
		r.mistake(at, m.line, "a server needs a name with at least one letter or digit of ASCII")
	case strings.ContainsFunc(m.key, unicode.IsControl):
		r.mistake(at, m.line, "the name of a server may not hold control characters")
	case len(m.key) > 128:
		r.mistake(at, m.line, "the name of a server may not be longer than 128 bytes")
	case m.key == "_proxy":
		r.mistake(at, m.line, "the name _proxy is taken by the proxy itself")
	}
}

func (r *reader) finishServer(at place, m member, entry *node, d *draft) {
	r.chooseTransport(at, m, entry, d)
	r.mergeEnv(d, entry, at.canon)
	if d.ConnectTimeout == 0 {
		d.ConnectTimeout = defaultConnectHTTP
		if d.Transport == TransportStdio {
			d.ConnectTimeout = defaultConnectStdio
		}
	}
	if d.Restart.MaxDelay < d.Restart.InitialDelay {
		r.mistake(at.member(member{key: "restart"}), entry.get("restart").line, "max_delay is shorter than initial_delay")
	}
	if len(d.ToolPolicy.Expose) == 1 && d.ToolPolicy.Expose[0] == "*" {
		d.ToolPolicy.Expose = nil
	}
	r.withoutEffect(at, entry, d)
	r.callersOwn(at, entry, d)
	r.adviseCommand(at, entry, d)
}

// chooseTransport settles how the server is reached from type, command and url.
func (r *reader) chooseTransport(at place, m member, entry *node, d *draft) {
	command, address, kind := entry.get("command"), entry.get("url"), entry.get("type")
	has := func(m *member) bool { return m != nil && m.value.kind != kindNull }
	switch {
	case has(command) && has(address):
		r.mistake(at, m.line, "has both command (line %d) and url (line %d); keep one: command starts a program, url reaches a server", command.line, address.line)
	case !has(command) && !has(address):
		r.mistake(at, m.line, "has neither command nor url; give a command to start a program or a url to reach a server")
	case has(command):
		if d.kind != "" && d.kind != string(TransportStdio) {
			r.mistake(at.member(*kind), kind.line, "%q goes with url, and this server has a command", kind.value.text)
		}
		d.Transport = TransportStdio
		r.mayStart(at, command, d)
	case d.kind == string(TransportStdio):
		r.mistake(at.member(*kind), kind.line, "%q goes with command, and this server has a url", kind.value.text)
	default:
		if d.TransportGuessed = d.Transport == ""; d.TransportGuessed {
			d.Transport = TransportHTTP
		}
	}
}

// mayStart refuses programs where none may be started.
func (r *reader) mayStart(at place, command *member, d *draft) {
	if r.noStdio && !d.Disabled && command != nil {
		r.mistake(at.member(*command), command.line, "starts a program, which proxy.allow_stdio: false forbids; run the server elsewhere and reach it by url")
	}
}

// mergeEnv puts env on top of env_file.
func (r *reader) mergeEnv(d *draft, entry *node, canon string) {
	if d.envFile == "" {
		d.Env = d.env
		return
	}
	line := entry.get("env_file").value.line
	text, err := r.exp.readFile(r.exp.abs(d.envFile))
	written := entry.get("env_file").value.text
	if err != nil {
		r.envFileFault(d, line, fault{msg: written + " cannot be read: " + reason(err)}, err)
		return
	}
	vars, err := parseEnvFile(string(text))
	if err != nil {
		r.envFileFault(d, line, fault{msg: written + ", " + err.Error()}, err)
		return
	}
	d.Env = make(map[string]string, len(vars)+len(d.env))
	env := place{canon: joinPath(canon, "env")}
	for _, v := range vars {
		if strings.ContainsRune(v.value, 0) {
			r.envFileFault(d, line, fault{msg: written + " holds a zero byte"}, nil)
			return
		}
		d.Env[v.name] = v.value
		if _, given := d.env[v.name]; !given {
			r.origins[env.member(member{key: v.name}).canon] = origin{file: written, line: v.line, from: []string{"env_file"}}
		}
	}
	for name, value := range d.env {
		d.Env[name] = value
	}
}

// envFileFault is a mistake, unless the file is only absent for a server that is disabled anyway.
func (r *reader) envFileFault(d *draft, line int, f fault, err error) {
	if r.lax && errors.Is(err, fs.ErrNotExist) {
		r.warn(d.envFileAt, line, "%s", f.msg)
		return
	}
	r.mistake(d.envFileAt, line, "%s", f.msg)
}

// withoutEffect tells of settings that the transport has no use for. Empty ones are what templates of editors leave.
func (r *reader) withoutEffect(at place, entry *node, d *draft) {
	idle, other := []string{"headers", "auth_token", "auth", "message_url"}, "command"
	if d.Transport != TransportStdio {
		idle, other = []string{"args", "env", "env_file", "inherit_env", "cwd"}, "url"
	}
	for _, key := range idle {
		m := entry.get(key)
		if m != nil && !m.value.isEmpty() {
			r.warn(at.member(*m), m.line, "has no effect on a server with %s", other)
		}
	}
	if m := entry.get("limits"); m != nil && d.Transport != TransportStdio && d.Limits != (ChildLimits{}) {
		r.mistake(at.member(*m), m.line, "bounds a program, and this server has a url: nothing could hold to it")
	}
	if m := entry.get("message_url"); m != nil && d.Transport == TransportHTTP && !d.TransportGuessed {
		r.mistake(at.member(*m), m.line, "is for servers of the type sse")
	}
	if d.Transport != TransportStdio {
		r.checkSignIn(at, entry, d)
	}
}
