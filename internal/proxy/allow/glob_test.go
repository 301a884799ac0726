package allow

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "a", true}, {"a", "A", false}, {"a", "ab", false},
		{"*", "", true}, {"*", "anything", true}, {"a*", "a", true}, {"a*", "abc", true}, {"a*", "ba", false},
		{"*c", "abc", true}, {"*c", "abcd", false}, {"a*c", "ac", true}, {"a*c", "abcbc", true}, {"a*c*", "abd", false},
		{"?", "a", true}, {"?", "", false}, {"?", "ä", true}, {"a?c", "abc", true}, {"**", "x", true}, {"a**b", "ab", true},
		{"get_*", "get_issue", true}, {"*_issue*", "list_issues", true}, {"a.b", "axb", false}, {"[ab]", "a", false}, {"[ab]", "[ab]", true},
	} {
		if got := Matches(c.pattern, c.name); got != c.want {
			t.Errorf("Matches(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

// A pattern must not cost exponential time.
func TestGlobIsQuick(t *testing.T) {
	began := time.Now()
	if Matches(strings.Repeat("*a", 50)+"b", strings.Repeat("a", 2000)) {
		t.Error("it matches")
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		expose, deny []string
		allowed      string
	}{
		{nil, nil, "get list drop drop_all"},
		{[]string{"*"}, nil, "get list drop drop_all"},
		{[]string{"get", "drop*"}, nil, "get drop drop_all"},
		{nil, []string{"drop*"}, "get list"},
		{[]string{"drop", "get"}, []string{"drop"}, "get"},
		{[]string{"get"}, []string{"*"}, ""},
		{[]string{"GET"}, nil, ""},
	} {
		var got []string
		for _, name := range []string{"get", "list", "drop", "drop_all"} {
			if Name(config.Policy{Expose: c.expose, Deny: c.deny}, name) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != c.allowed {
			t.Errorf("expose %q, deny %q: %q, want %q", c.expose, c.deny, strings.Join(got, " "), c.allowed)
		}
	}
}

// FuzzGlob compares the matcher with a regular expression of the same meaning.
func FuzzGlob(f *testing.F) {
	for _, s := range [][2]string{{"a*b?c", "aXXbYc"}, {"**", ""}, {"?*?", "ab"}, {"*a*b*", "xxaxxbxx"}, {"ä?", "äö"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 100 || strings.ToValidUTF8(pattern, "") != pattern || strings.ToValidUTF8(name, "") != name {
			t.Skip()
		}
		re := strings.NewReplacer(`\*`, `(?s:.*)`, `\?`, `(?s:.)`).Replace(regexp.QuoteMeta(pattern))
		want := regexp.MustCompile(`\A` + re + `\z`).MatchString(name)
		if got := Matches(pattern, name); got != want {
			t.Errorf("Matches(%q, %q) = %v, want %v", pattern, name, got, want)
		}
	})
}
