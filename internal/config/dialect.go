package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// roots are the keys under which servers stand.
var roots = []string{"mcpServers", "mcp_servers", "servers", "context_servers"}

// spelling is a key of another client that means one of ours.
type spelling struct {
	from, to string
	remark   string // for the reference
	// convert gives the members that take the place of m; nil is a mere renaming.
	convert func(d *dialect, m member) []member
}

// spellings are looked at in this order only for the reference; a key stands here once.
var spellings = []spelling{
	{from: "serverUrl", to: "url"}, {from: "server_url", to: "url"}, {from: "httpUrl", to: "url"}, {from: "baseUrl", to: "url"},
	{from: "endpoint", to: "url"}, {from: "uri", to: "url"},
	{from: "transport", to: "type"}, {from: "transportType", to: "type"}, {from: "transport_type", to: "type"},
	{from: "cmd", to: "command"},
	{from: "environment", to: "env"}, {from: "envs", to: "env"},
	{from: "envFile", to: "env_file"},
	{from: "env_vars", to: "inherit_env"},
	{from: "workingDirectory", to: "cwd"}, {from: "working_directory", to: "cwd"}, {from: "workingDir", to: "cwd"}, {from: "working_dir", to: "cwd"},
	{from: "http_headers", to: "headers", convert: plainHeaders}, {from: "httpHeaders", to: "headers", convert: plainHeaders},
	{from: "env_http_headers", to: "headers", remark: "the values are names of variables", convert: variableHeaders},
	{from: "bearer_token_env_var", to: "auth_token", remark: "the name of a variable", convert: variableToken},
	{from: "bearer_token", to: "auth_token"}, {from: "authorization_token", to: "auth_token"},
	{from: "enabled", to: "disabled", remark: "the opposite", convert: opposite}, {from: "isActive", to: "disabled", remark: "the opposite", convert: opposite},
	{from: "includeTools", to: "tool_policy.expose"}, {from: "include_tools", to: "tool_policy.expose"}, {from: "enabled_tools", to: "tool_policy.expose"},
	{from: "enabledTools", to: "tool_policy.expose"}, {from: "allowedTools", to: "tool_policy.expose"},
	{from: "excludeTools", to: "tool_policy.deny"}, {from: "exclude_tools", to: "tool_policy.deny"}, {from: "disabled_tools", to: "tool_policy.deny"},
	{from: "disabledTools", to: "tool_policy.deny"},
	{from: "timeout", to: "call_timeout", remark: "a number below 1000 is seconds, from 1000 on milliseconds; beside `autoApprove`, `alwaysAllow`, `disabledTools` or `watchPaths` up to 3600 is seconds; a string is a duration", convert: timeoutOfUnknownUnit},
	{from: "tool_timeout_sec", to: "call_timeout", remark: "seconds", convert: numberOf(time.Second, "call_timeout")},
	{from: "startup_timeout_sec", to: "connect_timeout", remark: "seconds", convert: numberOf(time.Second, "connect_timeout")},
	{from: "startup_timeout_ms", to: "connect_timeout", remark: "milliseconds", convert: numberOf(time.Millisecond, "connect_timeout")},
	{from: "initTimeout", to: "connect_timeout", remark: "milliseconds", convert: numberOf(time.Millisecond, "connect_timeout")},
	{from: "restartPolicy", to: "restart", remark: "`initialDelayMs`, `maxDelayMs`, `healthyAfterMs` are milliseconds, `backoffMultiplier` is the multiplier", convert: restartPolicy},
	{from: "restart_policy", to: "restart", remark: "as `restartPolicy`", convert: restartPolicy},
}

// reshaped are keys of ours that other clients give another shape.
var reshaped = map[string]func(d *dialect, m member) []member{
	"command": commandShapes,
	"tools":   toolList,
	"source":  zedSource,
}

// foreign are keys of other clients that mean nothing here.
var foreign = []string{
	"autoApprove", "alwaysAllow", "alwaysLoad", "description", "gallery", "fromGalleryId", "icon", "icons", "iconPath", "logoUrl", "metadata", "trust", "dev",
	"name", "title", "displayName", "version", "tags", "author", "provider", "providerUrl", "homepage", "documentation", "registryUrl", "reference",
	"watchPaths", "chatMenu", "serverInstructions", "required", "supports_parallel_tool_calls", "default_tools_approval_mode", "sandboxEnabled", "sandbox",
	"settings", "longRunning", "installSource", "isTrusted", "searchKey", "timestamp", "$comment", "_comment", "comment", "//",
}

// foreignAuth are ways of signing in that other clients know and we do not; leaving them out is felt, so it is a warning.
var foreignAuth = []string{"oauth", "oauth_resource", "scopes", "headersHelper", "authProviderType", "targetAudience", "targetServiceAccount"}

// foreignTop are the same beside the servers.
var foreignTop = []string{
	"$schema", "inputs", "sandbox", "globalShortcut", "preferences", "version", "name", "description", "metadata", "isUsingBuiltInNodeForMcp",
	"$comment", "_comment", "comment", "//",
}

// dialect turns one entry of any client into our own keys.
type dialect struct {
	r     *reader
	at    place
	entry *node
	out   *node
}

// canonical gives the entry in our own keys. Unknown keys are left for the schema to refuse.
func canonical(r *reader, at place, entry *node) *node {
	if entry.kind != kindObject {
		return entry
	}
	d := &dialect{r: r, at: at, entry: entry, out: &node{kind: kindObject, pos: entry.pos}}
	// Our own keys go first, so that what comes hoisted into one of them finds it.
	for _, late := range []bool{false, true} {
		for _, m := range entry.members {
			if late == (spellingOf(m.key) != nil || m.key == "tools") {
				d.take(m)
			}
		}
	}
	return d.out
}

func (d *dialect) take(m member) {
	here := d.at.member(m)
	if slices.Contains(foreign, m.key) {
		d.r.note(here, m.line, "is a setting of other clients and means nothing here")
		return
	}
	if slices.Contains(foreignAuth, m.key) {
		d.r.warn(here, m.line, "is a way of signing in that this version does not know; the server is contacted without it")
		return
	}
	if reshape := reshaped[m.key]; reshape != nil {
		for _, new := range reshape(d, m) {
			d.put(new.key, new)
		}
		return
	}
	s := spellingOf(m.key)
	if s == nil {
		if fieldOf(serverFields, m.key) == nil {
			m.meant = suggest(m.key, spelledKeys())
		}
		d.put(m.key, m)
		return
	}
	if m.value.kind == kindNull {
		return
	}
	m.written = joinPath("", m.key)
	if s.convert == nil {
		d.put(s.to, m)
		return
	}
	for _, new := range s.convert(d, m) {
		d.put(new.key, new)
	}
}

func spelledKeys() []string {
	out := make([]string, len(spellings))
	for i, s := range spellings {
		out[i] = s.from
	}
	return out
}

func spellingOf(key string) *spelling {
	for i := range spellings {
		if spellings[i].from == key {
			return &spellings[i]
		}
	}
	return nil
}

// put adds a member under a key of ours; "a.b" goes into the object a. What is there already was said twice.
func (d *dialect) put(key string, m member) {
	target, full := d.out, key
	outer, inner, nested := strings.Cut(key, ".")
	// Only keys of this file's tables are split; a key that a person wrote may hold a dot.
	if nested && m.written != "" {
		m.hoisted = true
		if target = d.object(outer, m); target == nil {
			return
		}
		key = inner
	}
	m.key = key
	if old := target.get(key); old != nil {
		if old.value.kind != kindNull {
			d.said(*old, m, full)
			return
		}
		*old = m
		return
	}
	target.members = append(target.members, m)
}

func (d *dialect) said(old, m member, full string) {
	first := cmp.Or(old.written, full)
	m.hoisted = false // the path of a hoisted member begins at the entry, where we are
	d.r.mistake(d.at.member(m), m.line, "says the same as %q in line %d; keep one", first, old.line)
}

// object finds or makes the object that hoisted members go into. A value of another kind is left for the schema to refuse.
func (d *dialect) object(key string, m member) *node {
	old := d.out.get(key)
	if old == nil {
		obj := &node{kind: kindObject, pos: m.pos}
		d.out.members = append(d.out.members, member{key: key, pos: m.pos, value: obj})
		return obj
	}
	if old.value.kind == kindNull {
		old.value = &node{kind: kindObject, pos: m.pos}
	}
	if old.value.kind != kindObject {
		return nil
	}
	// The parsed tree stays as it is: an alias of YAML may use the same object elsewhere.
	clone := *old.value
	clone.members = append([]member(nil), clone.members...)
	old.value = &clone
	return old.value
}

// with is a copy of m with another key and value; the place in messages stays.
func (m member) with(key string, value *node) member {
	m.key, m.value = key, value
	return m
}

func (n *node) as(kind nodeKind, text string) *node { return &node{kind: kind, text: text, pos: n.pos} }

func plainHeaders(d *dialect, m member) []member {
	return headersOf(d, m, func(_ place, h member) *node { return h.value })
}

func variableHeaders(d *dialect, m member) []member {
	return headersOf(d, m, func(at place, h member) *node { return d.variable(at, h.value) })
}

func headersOf(d *dialect, m member, value func(place, member) *node) []member {
	here := d.at.member(m)
	if !d.r.isObject(here, m.value) {
		return nil
	}
	var out []member
	for _, h := range m.value.members {
		if v := value(here.member(h), h); v != nil {
			out = append(out, member{key: "headers." + h.key, written: joinPath(m.written, h.key), pos: h.pos, value: v})
		}
	}
	if len(out) == 0 {
		d.object("headers", m)
	}
	return out
}

// variable makes a reference of the name of a variable.
func (d *dialect) variable(at place, n *node) *node {
	if n.kind != kindString || !plainName.MatchString(n.text) {
		d.r.mistake(at, n.line, "must be the name of a variable, as a string")
		return nil
	}
	return n.as(kindString, "${"+n.text+"}")
}

func variableToken(d *dialect, m member) []member {
	v := d.variable(d.at.member(m), m.value)
	if v == nil {
		return nil
	}
	return []member{m.with("auth_token", v)}
}

func opposite(d *dialect, m member) []member {
	switch {
	case m.value.kind != kindBool:
		d.r.want(d.at.member(m), m.value, "true or false")
		return nil
	case m.value.text == "true":
		return []member{m.with("disabled", m.value.as(kindBool, "false"))}
	}
	return []member{m.with("disabled", m.value.as(kindBool, "true"))}
}

// numberOf reads a number of a fixed unit, which may have a fraction.
func numberOf(unit time.Duration, key string) func(*dialect, member) []member {
	return func(d *dialect, m member) []member { return d.duration(key, m, unit) }
}

func (d *dialect) duration(key string, m member, unit time.Duration) []member {
	f, err := strconv.ParseFloat(m.value.text, 64)
	// Beyond a century the product would not fit, and nobody means it.
	const most = 100 * 365 * 24 * time.Hour
	if m.value.kind != kindNumber || err != nil || f < 0 || f > float64(most/unit) {
		d.r.mistake(d.at.member(m), m.value.line, "must be a number, not negative and not longer than a century")
		return nil
	}
	text := time.Duration(f * float64(unit)).String()
	return []member{m.with(key, m.value.as(kindString, text))}
}

// timeoutOfUnknownUnit reads the bare number that some clients count in seconds and others in milliseconds.
func timeoutOfUnknownUnit(d *dialect, m member) []member {
	if m.value.kind == kindString {
		return []member{m.with("call_timeout", m.value)}
	}
	unit, word, f := time.Second, "seconds", 0.0
	if m.value.kind == kindNumber {
		f, _ = strconv.ParseFloat(m.value.text, 64)
	}
	if f >= 1000 && !(f <= 3600 && d.countsSeconds()) {
		unit, word = time.Millisecond, "milliseconds"
	}
	out := d.duration("call_timeout", m, unit)
	if out != nil {
		d.r.note(d.at.member(m), m.line, "is read as %s, so call_timeout is %s", word, out[0].value.text)
	}
	return out
}

// countsSeconds recognises clients that allow an hour and write it as 3600.
func (d *dialect) countsSeconds() bool {
	for _, key := range []string{"autoApprove", "alwaysAllow", "disabledTools", "watchPaths"} {
		if d.entry.get(key) != nil {
			return true
		}
	}
	return false
}

// restartKeys are the members of restartPolicy; a unit of 0 is no duration.
var restartKeys = map[string]struct {
	key  string
	unit time.Duration
}{
	"initialDelayMs": {"restart.initial_delay", time.Millisecond}, "maxDelayMs": {"restart.max_delay", time.Millisecond},
	"healthyAfterMs": {"restart.healthy_after", time.Millisecond}, "backoffMultiplier": {"restart.multiplier", 0},
}

func restartPolicy(d *dialect, m member) []member {
	here := d.at.member(m)
	if !d.r.isObject(here, m.value) {
		return nil
	}
	var out []member
	for _, one := range m.value.members {
		rk, known := restartKeys[one.key]
		if !known {
			d.r.unknownKey(here.member(one), one, []string{"initialDelayMs", "maxDelayMs", "healthyAfterMs", "backoffMultiplier"}, nil)
			continue
		}
		one.written = joinPath(m.written, one.key)
		if rk.unit == 0 {
			out = append(out, one.with(rk.key, one.value))
			continue
		}
		out = append(out, d.duration(rk.key, one, rk.unit)...)
	}
	return out
}

// commandShapes reads a command with its arguments in one list, and the object {path, args, env}.
func commandShapes(d *dialect, m member) []member {
	v := m.value
	switch {
	case v.kind == kindList && len(v.items) > 0:
		args := v.as(kindList, "")
		args.items, args.skipped = v.items[1:], 1
		first := m.with("command", v.items[0])
		first.written = "command[0]"
		rest := m.with("args", args)
		rest.written = "command"
		if len(args.items) == 0 {
			return []member{first}
		}
		return []member{first, rest}
	case v.kind == kindObject:
		return commandObject(d, m)
	}
	return []member{m}
}

func commandObject(d *dialect, m member) []member {
	var out []member
	here := d.at.member(m)
	for _, one := range m.value.members {
		key := map[string]string{"path": "command", "args": "args", "env": "env"}[one.key]
		if key == "" {
			d.r.unknownKey(here.member(one), one, []string{"path", "args", "env"}, nil)
			continue
		}
		one.written = joinPath("command", one.key)
		out = append(out, one.with(key, one.value))
	}
	return out
}

// toolList reads a list of tools to offer, where "*" alone is all of them. An object is another thing.
func toolList(_ *dialect, m member) []member {
	if m.value.kind != kindList {
		return []member{m}
	}
	m.written = "tools"
	return []member{m.with("tool_policy.expose", m.value)}
}

func zedSource(d *dialect, m member) []member {
	here := d.at.member(m)
	if m.value.kind == kindString && m.value.text == "custom" {
		d.r.note(here, m.line, "is a setting of other clients and means nothing here")
		return nil
	}
	d.r.mistake(here, m.line, `must be "custom"; a server that comes with an editor's extension cannot be started here`)
	return nil
}
