package allow

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func TestPoliciesOfURIs(t *testing.T) {
	data, noEnv := []string{"file:///data/*"}, []string{"*.env", "file:///etc/*"}
	for _, c := range []struct {
		expose, deny []string
		uri          string
		want         bool
	}{
		{nil, nil, "anything at all", true},
		{nil, noEnv, "file:///etc/passwd", false},
		{nil, noEnv, "file:///home/a.txt", true},
		{nil, noEnv, "file:///%65tc/passwd", false},
		{nil, noEnv, "file:///home/../etc/passwd", false},
		{nil, noEnv, "file:///home/%2e%2e/etc/passwd", false},
		{nil, noEnv, "file:///./etc/passwd", false},
		{nil, noEnv, "FILE:///etc/passwd", false},
		{nil, noEnv, "file:////etc/passwd", false},
		{nil, noEnv, "file:///a/x.env", false},
		{nil, noEnv, "file:///a/x.%65nv", false},
		{data, nil, "file:///data/x", true},
		{data, nil, "file:///data/../etc/passwd", false},
		{data, nil, "file:///data/%2e%2e/etc/passwd", false},
		{data, nil, "file:///other", false},
		{data, []string{"*secret*"}, "file:///data/secret", false},
		{[]string{"mem://HOST/*"}, nil, "mem://HOST/x", false}, // a host has no case: its plain form is in lower case
		{[]string{"mem://host/*"}, nil, "mem://host/x", true},
		{[]string{"urn:isbn:*"}, nil, "urn:isbn:1", true},
		{nil, []string{"urn:isbn:*"}, "URN:isbn:1", false},
		{nil, []string{"a b"}, "a b", false},
		// Servers differ in what they take for the same.
		{nil, noEnv, "file://localhost/etc/passwd", false},
		{nil, noEnv, "file://other/etc/passwd", false},
		{nil, noEnv, "file:etc/passwd", false},
		{nil, noEnv, " file:///etc/passwd", false},
		{nil, noEnv, "file:///e\ttc/passwd", false},
		{nil, noEnv, "file:///home/..\\etc/passwd", false},
		{nil, noEnv, "file:///home/..%5cetc/passwd", false},
		{nil, noEnv, "file:///home/../etc/%zz", false},
		{nil, noEnv, "file:///home/?/../../etc/passwd", false},
		{nil, noEnv, "file:///home/#/../../etc/passwd", false},
		{nil, noEnv, "file:///a/x.env?", false},
		{nil, noEnv, "file:///a/x.env?raw=1", false},
		{nil, noEnv, "file:///a/x%zz.env", false},
		{nil, noEnv, "file:///a/x.txt?raw=1", true},
		{data, nil, "file:///data/%2e%2e/etc/%zz", false},
		{data, nil, "file:///data/.\t./etc/passwd", false},
		{data, nil, "file:///data/x?/../../etc/passwd", false},
		{data, nil, "file:///data/x#/../../etc/passwd", false},
		{data, nil, "file:///data/..\\etc", false},
		{data, nil, "file:///data/a/../b", true},
		{data, nil, "file:///data/a..b/x", true},
		{data, nil, "file:///data/x?y=1", true},
		{nil, []string{"notes://b"}, "notes://a/../b", false},
		{[]string{"notes://a/*"}, nil, "notes://a/../b", false},
		{[]string{"notes://a/*"}, nil, "notes://a/c/../b", true},
		{nil, []string{"db://x?table=secret"}, "db://x?table=%73ecret", false},
		{nil, []string{"https://in/*"}, "https://in:443/x", false},
		{nil, []string{"https://in/*"}, "https://me@in/x", false},
		{[]string{"https://h/r?u=http://x/*"}, nil, "https://h/r?u=http://x/y", true},
		{[]string{`file:///C:\data\*`}, nil, `file:///C:\data\x`, true},
		{[]string{"file://localhost/data/*"}, nil, "file://localhost/data/x", true},
	} {
		if got := URI(config.Policy{Expose: c.expose, Deny: c.deny}, c.uri); got != c.want {
			t.Errorf("expose %q deny %q: %s is %v", c.expose, c.deny, c.uri, got)
		}
	}
}

func TestPoliciesOfTemplates(t *testing.T) {
	for _, c := range []struct {
		expose, deny []string
		template     string
		want         bool
	}{
		{nil, nil, "file:///{path}", true},
		{[]string{"file:///data/*"}, nil, "file:///{path}", true},
		{[]string{"file:///data/*"}, nil, "file:///data/{name}.txt", true},
		{[]string{"file:///data/*"}, nil, "file:///etc/{name}", false},
		{[]string{"file:///data/a"}, nil, "file:///{+path}", true},
		{[]string{"mem://*"}, nil, "file:///{path}", false},
		{nil, []string{"file:///*"}, "file:///{path}", false},
		{nil, []string{"file:///etc/*"}, "file:///{path}", true}, // each URI is judged when it is read
		{nil, []string{"file:///{path}"}, "file:///{path}", false},
		{[]string{"*"}, nil, "open{", true},
	} {
		if got := Template(config.Policy{Expose: c.expose, Deny: c.deny}, c.template); got != c.want {
			t.Errorf("expose %q deny %q: %s is %v", c.expose, c.deny, c.template, got)
		}
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "", true}, {"", "*", true}, {"a", "b", false}, {"a*", "*b", true}, {"a*c", "ab*", true}, {"a*c", "b*", false}, {"?", "a", true}, {"?", "", false},
		{"*x*", "*y*", true}, {"abc", "a?c", true}, {"abc", "a?d", false}, {"a?", "?b", true}, {"*a", "*b", false}, {"ab*", "a", false}, {"**", "", true},
	} {
		if got, back := overlap(c.a, c.b), overlap(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("%q and %q: %v and %v", c.a, c.b, got, back)
		}
	}
}

// FuzzOverlap compares with matching: a text that both match is one in which they meet.
func FuzzOverlap(f *testing.F) {
	f.Add("a*", "*b", "ab")
	f.Add("a?c", "abc", "abc")
	f.Fuzz(func(t *testing.T, a, b, text string) {
		if len(a)+len(b) < 200 && Matches(a, text) && Matches(b, text) && !overlap(a, b) {
			t.Errorf("%q and %q both match %q", a, b, text)
		}
	})
}

// FuzzPlainURI: what is plain stays so.
func FuzzPlainURI(f *testing.F) {
	for _, s := range []string{"file:///a/../b", "urn:x", "a b", "http://H/%2e%2e/x?q=1", "file:///a//b/", "../", "A:x/../y", "A://../", "a:/b#c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		if strings.Contains(uri, "%") {
			return // once decoded, a percent sign may begin another
		}
		plain := plainURI(uri)
		if again := plainURI(plain); again != plain {
			t.Errorf("%q becomes %q, and then %q", uri, plain, again)
		}
	})
}

// FuzzReadings: no reading of a path leads to another scheme or host, whatever it holds.
func FuzzReadings(f *testing.F) {
	for _, s := range []string{"etc/passwd", "a?b", "%", "..", "a/../b", "\t", `a\b`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		forms, _ := readings("file:///etc/x/" + name)
		for _, form := range forms {
			if !strings.HasPrefix(form, "file:///") {
				t.Errorf("%q may be %q", name, form)
			}
		}
	})
}
