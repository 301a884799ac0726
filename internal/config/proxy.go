package config

import (
	"path/filepath"
	"regexp"
	"slices"
)

var profileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// defaultStateDir follows the XDG base directories; without a home there is none.
func defaultStateDir(getenv func(string) (string, bool)) (string, origin) {
	if dir, _ := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "mcp-proxy"), origin{from: []string{"default", "environment XDG_STATE_HOME"}}
	}
	if dir, _ := getenv("HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".local", "state", "mcp-proxy"), origin{from: []string{"default", "environment HOME"}}
	}
	return "", origin{from: []string{"default"}}
}

// finishProxy resolves paths, lets the command line win, and checks the addresses.
func (r *reader) finishProxy(root *node, cfg *Config, o Options) {
	p := &cfg.Proxy
	section := &node{}
	if m := root.get("proxy"); m != nil {
		section = m.value
	}
	for path, at := range map[*string]string{&p.StateDir: "proxy.state_dir", &p.Log.File: "proxy.log.file"} {
		if *path != "" && r.origins[at].file != "" {
			*path = r.exp.abs(*path)
		}
	}
	p.completeNaming()
	r.noStdio = !p.AllowStdio
	p.StateDirGiven = r.origins["proxy.state_dir"].file != ""
	r.override(&p.Listen, o.Listen, "proxy.listen")
	r.override(&p.AdminListen, o.AdminListen, "proxy.admin_listen")
	for listen, at := range map[*string]string{&p.Listen: "proxy.listen", &p.AdminListen: "proxy.admin_listen"} {
		path, ok := SocketPath(*listen)
		if !ok || path == "" || path[0] == '@' {
			continue
		}
		if r.origins[at].file != "" {
			path = r.exp.abs(path)
		} else if abs, err := filepath.Abs(path); err == nil {
			path = abs
		}
		*listen = "unix:" + path
	}
	at, line := section.placeOf("listen")
	if err := CheckListen(p.Listen, p.Auth); err != nil {
		r.refuse(at, line, "%v", err)
	}
	if p.AdminListen == "" {
		if at, line = section.placeOf("admin_auth"); p.AdminAuth.Mode != "" {
			r.warn(at, line, "has no effect without admin_listen")
		}
		return
	}
	at, line = section.placeOf("admin_listen")
	switch host, err := splitListen(p.AdminListen); {
	case err != nil:
		r.refuse(at, line, "%v", err)
	case !isLoopback(host) && p.AdminAuth.Mode == "":
		r.refuse(at, line, `can be reached from outside this machine and proxy.admin_auth is not set: give it tokens ("admin_auth": {"tokens": [...]}), or make it a loopback address such as 127.0.0.1:9090`)
	case p.AdminListen == p.Listen && p.Listen != "127.0.0.1:0":
		r.refuse(at, line, "is the same address as listen")
	}
}

func (r *reader) override(dst *string, flag, canon string) {
	if flag != "" {
		*dst = flag
		r.origins[canon] = origin{from: []string{"command line"}}
	}
}

// placeOf says where a key of the section proxy stands, or would stand.
func (n *node) placeOf(key string) (place, int) {
	at := place{path: "proxy", canon: "proxy"}
	if m := n.get(key); m != nil {
		return at.member(*m), m.line
	}
	return at.member(member{key: key}), n.line
}

// checkReferences looks at what needs the whole file: names that refer to others, and servers that are ourselves.
func (r *reader) checkReferences(root *node, cfg *Config, known []string) {
	section := root.get("proxy")
	ids := slices.Clone(known)
	for _, s := range cfg.Servers {
		ids = append(ids, s.ID)
	}
	if section != nil {
		r.checkProfiles(section.value, cfg, ids)
		r.checkTokens(section.value, cfg)
	}
	for _, s := range cfg.Servers {
		if s.URL != "" && PointsAtSelf(s.URL.Reveal(), cfg.Proxy.Listen) {
			r.serverMistake(root, s, "url", "leads back to this proxy itself")
		}
	}
	r.checkForwards(root, cfg)
	r.checkPins(root, cfg)
}

func (r *reader) rootOf(root *node) string {
	for _, m := range root.members {
		if slices.Contains(roots, m.key) && !m.value.isEmpty() {
			return m.key
		}
	}
	return roots[0]
}

func (r *reader) checkProfiles(section *node, cfg *Config, ids []string) {
	profiles := section.get("profiles")
	if profiles == nil {
		return
	}
	at := place{path: "proxy.profiles"}
	for _, m := range profiles.value.members {
		servers := m.value.get("servers")
		if servers == nil {
			continue
		}
		for i, id := range cfg.Proxy.Profiles[m.key].Servers {
			if !slices.Contains(ids, id) {
				p := r.refuse(at.member(m).member(*servers).index(i), servers.value.items[i].line, "there is no server %q", servers.value.items[i].text)
				p.Suggestion = suggest(id, ids)
			}
		}
	}
}

func (r *reader) checkTokens(section *node, cfg *Config) {
	auth := section.get("auth")
	if auth == nil || auth.value.get("tokens") == nil {
		return
	}
	var names []string
	for name := range cfg.Proxy.Profiles {
		names = append(names, name)
	}
	slices.Sort(names)
	at := place{path: "proxy.auth.tokens"}
	for i, item := range auth.value.get("tokens").value.items {
		profile := item.get("profile")
		if profile == nil || profile.value.kind != kindString {
			continue
		}
		name := r.exp.expand(profile.value.text).text
		if name != "" && !slices.Contains(names, name) {
			p := r.refuse(at.index(i).member(*profile), profile.line, "there is no profile %q", profile.value.text)
			p.Suggestion = suggest(name, names)
		}
	}
}
