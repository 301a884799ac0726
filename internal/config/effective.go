package config

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const hidden = "<secret>"

// PrintEffective writes the configuration in force as YAML: every default filled in, each value with its origin as a
// comment, secrets hidden. It writes what it can; an error of w ends it early.
func (l *Loaded) PrintEffective(w io.Writer) error {
	out := bufio.NewWriter(w)
	s := &shower{w: out, origins: l.origins}
	agents := slices.DeleteFunc(slices.Clone(l.Config.Servers), func(srv *Server) bool { return srv.Agent == nil })
	s.line(roots[0] + ":" + map[bool]string{true: " {}"}[len(l.Config.Servers) == len(agents)])
	s.indent++
	for _, srv := range l.Config.Servers {
		if srv.Agent == nil {
			s.server(srv)
		}
	}
	s.indent--
	if len(agents) > 0 {
		s.line("agents:")
	}
	s.indent++
	for _, srv := range agents {
		s.agent(srv)
	}
	s.indent--
	p := l.Config.Proxy
	s.line("proxy:")
	s.indent++
	showFields(s, "proxy", proxyFields, &p)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("printing the configuration: %w", err)
	}
	return nil
}

// shower writes YAML lines.
type shower struct {
	w       *bufio.Writer
	origins map[string]origin
	indent  int
}

// line ignores the error of the writer, which Flush gives at the end.
func (s *shower) line(text string) {
	_, _ = s.w.WriteString(strings.Repeat("  ", s.indent) + text + "\n")
}

func (s *shower) entry(canon, head, value string) {
	from := "default"
	if o, ok := s.origins[canon]; ok && o.String() != "" {
		from = o.String()
	}
	s.line(head + value + "  # " + from)
}

func (s *shower) server(srv *Server) {
	canon := place{canon: roots[0]}.member(member{key: srv.ID}).canon
	// Quoted, because words such as "no" are no strings in YAML.
	s.line(quoted(srv.ID) + ":")
	s.indent++
	if srv.Problem != nil {
		s.line("# not usable: see the problems of this server")
	}
	d := &draft{Server: *srv}
	if d.Transport == TransportStdio || d.Transport == "" {
		d.URL, d.Headers, d.AuthToken, d.SignIn = "", nil, "", SignIn{}
	}
	showFields(s, canon, serverFields, d)
	s.indent--
}

// showFields writes the keys of a table that have a value.
func showFields[T any](s *shower, canon string, fields []field[T], src *T) {
	for _, f := range fields {
		key := joinPath(canon, f.key)
		switch {
		case f.show != nil:
			f.show(s, key, f.key, src)
		case f.value != nil:
			s.value(key, f.key, f.value(src))
		}
	}
}

func showGroup[T any](s *shower, canon, key string, fields []field[T], src *T) {
	var b strings.Builder
	inner := &shower{w: bufio.NewWriter(&b), origins: s.origins, indent: s.indent + 1}
	showFields(inner, canon, fields, src)
	_ = inner.w.Flush() // a strings.Builder takes everything
	if b.Len() == 0 {
		return
	}
	s.line(key + ":")
	_, _ = s.w.WriteString(b.String())
}

// value writes one key; what is empty says nothing and is left out, except an explicit empty string.
func (s *shower) value(canon, key string, v any) {
	switch v := v.(type) {
	case nil:
	case string:
		if _, given := s.origins[canon]; v != "" || given {
			s.entry(canon, key+": ", quoted(v))
		}
	case []string:
		s.list(canon, key, v)
	default:
		s.entry(canon, key+": ", scalarText(v))
	}
}

// scalarText is a value as YAML writes it.
func scalarText(v any) string {
	switch v := v.(type) {
	case time.Duration:
		return durationText(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

func (s *shower) list(canon, key string, items []string) {
	if len(items) == 0 {
		return
	}
	s.line(key + ":")
	for i, item := range items {
		s.entry(place{canon: canon}.index(i).canon, "  - ", quoted(item))
	}
}

// secretList shows how many secrets there are and where each comes from.
func (s *shower) secretList(canon, key string, items []Secret) {
	hiddenItems := make([]string, len(items))
	for i := range items {
		hiddenItems[i] = hidden
	}
	s.list(canon, key, hiddenItems)
}

func (s *shower) secrets(canon, key string, names []string) {
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	s.line(key + ":")
	for _, name := range names {
		s.entry(place{canon: canon}.member(member{key: name}).canon, "  "+quoted(name)+": ", quoted(hidden))
	}
}

func namesOf[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	return names
}

func showEnv(s *shower, canon, key string, d *draft) { s.secrets(canon, key, namesOf(d.Env)) }

func showHeaders(s *shower, canon, key string, d *draft) { s.secrets(canon, key, namesOf(d.Headers)) }

func showAuthToken(s *shower, canon, key string, d *draft) { s.secret(canon, key, d.AuthToken) }

func showToken(s *shower, canon, key string, t *Token) { s.secret(canon, key, t.Token) }

func (s *shower) secret(canon, key string, v Secret) {
	if v != "" {
		s.entry(canon, key+": ", quoted(hidden))
	}
}

func showURL(s *shower, canon, key string, d *draft) { s.address(canon, key, d.URL) }

// address writes a URL without what may be a credential in it.
func (s *shower) address(canon, key string, v Secret) {
	if v == "" {
		return
	}
	text := v.Reveal()
	// With references in it the file's own text is shown: any part may be the credential.
	if o := s.origins[canon]; len(o.from) > 0 {
		text = o.raw
	}
	s.entry(canon, key+": ", quoted(hideURL(text)))
}

var (
	urlUser  = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*://)[^/?#]*@`)
	urlValue = regexp.MustCompile(`([?&][^=&#]*=)[^&#]*`)
)

// hideURL hides the user and the values of the query; it works on text that does not parse, too.
func hideURL(s string) string {
	s = urlUser.ReplaceAllString(s, "${1}"+hidden+"@")
	return urlValue.ReplaceAllString(s, "${1}"+hidden)
}

func showArgs(s *shower, canon, key string, d *draft) {
	if len(d.Args) == 0 {
		return
	}
	s.line(key + ":")
	for i, arg := range hideArgs(d.Args) {
		at := place{canon: canon}.index(i).canon
		if o := s.origins[at]; len(o.from) > 0 && arg != hidden {
			arg = hideArgs([]string{o.raw})[0]
		}
		s.entry(at, "  - ", quoted(arg))
	}
}

var (
	secretOption = regexp.MustCompile(`(?i)^--?[a-z0-9-]*(token|secret|passw|key|auth|header|credential|bearer)[a-z0-9-]*$`)
	assignment   = regexp.MustCompile(`^(-{0,2}[A-Za-z_][A-Za-z0-9_-]*=).`)
	variableArg  = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*=`)
)

// hideArgs hides what is likely a secret among arguments: the value of an option that sounds like one, and variables.
func hideArgs(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		option, _, joined := strings.Cut(arg, "=")
		switch {
		case i > 0 && secretOption.MatchString(args[i-1]):
			out[i] = hidden
		case joined && assignment.MatchString(arg) && (secretOption.MatchString(option) || variableArg.MatchString(arg)):
			out[i] = option + "=" + hidden
		case strings.Contains(arg, "://"):
			out[i] = hideURL(arg)
		default:
			out[i] = arg
		}
	}
	return out
}

func showRequestMeta(s *shower, canon, key string, d *draft) { s.json(canon, key, d.RequestMeta) }

// json shows a JSON value, which YAML reads as well; one that references were replaced in may hold a secret.
func (s *shower) json(canon, key string, value []byte) {
	if value == nil {
		return
	}
	text := string(value)
	if len(s.origins[canon].from) > 0 {
		text = quoted(hidden)
	}
	s.entry(canon, key+": ", text)
}

func showTokens(s *shower, canon, key string, a *Auth) {
	if len(a.Tokens) == 0 {
		return
	}
	s.line(key + ":")
	for i := range a.Tokens {
		s.indent++
		s.line("-")
		s.indent++
		showFields(s, place{canon: canon}.index(i).canon, tokenFields, &a.Tokens[i])
		s.indent -= 2
	}
}

func showTools(s *shower, canon, key string, d *draft) { showNamed(s, canon, key, toolFields, d.Tools) }

func showProfiles(s *shower, canon, key string, p *Proxy) {
	showNamed(s, canon, key, profileFields, p.Profiles)
}

// showNamed writes groups that stand under names of the user's choice, in the order of the names.
func showNamed[T any](s *shower, canon, key string, fields []field[T], all map[string]T) {
	names := namesOf(all)
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	s.line(key + ":")
	s.indent++
	for _, name := range names {
		one := all[name]
		showGroup(s, place{canon: canon}.member(member{key: name}).canon, quoted(name), fields, &one)
	}
	s.indent--
}
