package upstream

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/credentials"
)

// masker replaces what is secret of an upstream in texts that people read: servers say their credentials to everybody,
// in what they print and in what they answer. A nil *masker changes nothing.
type masker struct {
	replacer *strings.Replacer
	longest  int // secret, in bytes
	tokens   *credentials.Tokens
}

// longestToken is as long as a token may be that is hidden where a text is cut.
const longestToken = 4 << 10

func newMasker(secrets []string) *masker {
	m := &masker{}
	var pairs []string
	// Longer ones first: one may begin with another.
	for _, s := range slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return len(b) - len(a) }) {
		pairs = append(pairs, s, "<secret>")
		m.longest = max(m.longest, len(s))
	}
	m.replacer = strings.NewReplacer(pairs...)
	return m
}

// with hides the tokens of an authorization server too.
func (m *masker) with(tokens *credentials.Tokens) *masker {
	if tokens != nil {
		m.tokens, m.longest = tokens, max(m.longest, longestToken)
	}
	return m
}

func (m *masker) text(s string) string {
	if m == nil {
		return s
	}
	if m.tokens != nil {
		s = m.tokens.Hide(s)
	}
	return m.replacer.Replace(s)
}

// Reach is how far a text must be known beyond the end of what is shown of it.
func (m *masker) Reach() int {
	if m == nil {
		return 0
	}
	return m.longest
}

// Clip gives the first bytes of a text, at most so many. Where the text is longer than that and Reach together, or cut
// there, its end is left out first: it may be a part of a secret, which nobody would recognize.
func (m *masker) Clip(s string, most int) string {
	whole := len(s) < most+m.Reach()
	s = m.text(s[:min(len(s), most+m.Reach())])
	if !whole {
		s = s[:max(0, len(s)-m.Reach())]
	}
	return s[:min(len(s), most)]
}

// error hides secrets in the text of an error and keeps what it is.
func (m *masker) error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if masked := m.text(text); masked != text {
		return &maskedError{masked, err}
	}
	return err
}

type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }

// Mask hides what is secret of the upstream in a text of which a part came from it.
func (u *Upstream) Mask(text string) string { return u.mask.text(text) }

// shortestSecret is the length below which a value is no secret, and its masking would make texts unreadable.
const shortestSecret = 6

// secretValues are what must not stand in a log even if the upstream itself says it.
func secretValues(cfg *config.Server) []string {
	var out []string
	add := func(v string) {
		// A server may print a key of several lines line by line.
		for _, v := range append(strings.FieldsFunc(v, func(r rune) bool { return r == '\n' || r == '\r' }), v) {
			if len(v) >= shortestSecret && !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	add(cfg.AuthToken.Reveal())
	for _, v := range cfg.SignIn.Secrets() {
		add(v.Reveal())
	}
	for _, v := range cfg.Headers {
		scheme, credential, _ := strings.Cut(v.Reveal(), " ")
		add(v.Reveal())
		add(credential)
		if plain, err := base64.StdEncoding.DecodeString(credential); err == nil && strings.EqualFold(scheme, "basic") {
			_, password, _ := strings.Cut(string(plain), ":")
			add(password)
		}
	}
	for name, v := range cfg.Env {
		if looksSecret(name) {
			add(v)
		}
	}
	if u, err := url.Parse(cfg.URL.Reveal()); err == nil {
		password, _ := u.User.Password()
		add(password)
		for _, values := range u.Query() {
			for _, v := range values {
				add(v)
				add(url.QueryEscape(v))
			}
		}
		for _, segment := range strings.Split(u.EscapedPath(), "/") {
			if plain, err := url.PathUnescape(segment); err == nil && secretSegment(plain) {
				add(plain)
				add(segment)
			}
		}
	}
	return out
}

// secretSegment says whether a part of a path looks like a credential, as some services hand out addresses that are one:
// it is long, and not made of words and short numbers.
func secretSegment(s string) bool {
	if len(s) < 16 {
		return false
	}
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("-_.~", r) }) {
		letters := strings.ContainsFunc(part, unicode.IsLetter)
		digits := strings.ContainsFunc(part, unicode.IsDigit)
		if len(part) >= 24 || len(part) >= 8 && letters && digits {
			return true
		}
	}
	return false
}

func looksSecret(name string) bool {
	name = strings.ToUpper(name)
	for _, w := range []string{"TOKEN", "SECRET", "KEY", "PASS", "PWD", "CREDENTIAL", "AUTH"} {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}
