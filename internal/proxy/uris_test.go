package proxy

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// The qualified form must be a URI for every name of a server, and tell servers apart.
func TestQualifiedForms(t *testing.T) {
	scheme := regexp.MustCompile(`^[a-z][a-z0-9+.-]*\+$`)
	seen := map[string]string{}
	for _, id := range []string{"files", "Files", "my server", "my-server", "my_server", "1a", "s1a", "-a", "s-a", ".", "größe", "", "s"} {
		p := uriPrefix(id)
		if !scheme.MatchString(p) || p != uriPrefix(id) {
			t.Errorf("%q: %q is no scheme", id, p)
		}
		if seen[p] != "" {
			t.Errorf("%q and %q are both %q", id, seen[p], p)
		}
		seen[p] = id
	}
	if uriPrefix("files") != "files+" {
		t.Errorf("a plain name becomes %q", uriPrefix("files"))
	}
}

// reading serves resources/read with what it was asked for.
func reading(s *server) *server {
	s.on = func(f *wire.Frame, _ io.Writer) (string, bool) {
		uri := string(f.Body.Get(f.Raw, "uri").Of(f.Raw))
		switch f.Method {
		case "resources/read":
			return `"result":{"contents":[{"uri":` + uri + `,"text":"of ` + s.id + `"}]}`, true
		case "tools/call":
			return `"result":{"content":[{"type":"resource_link","uri":"file:///same","name":"x"},{"type":"resource_link","uri":"file:///unlisted-` + s.id + `","name":"y"},{"type":"resource","resource":{"uri":"db:7","text":"z"}}]}`, true
		}
		return "", false
	}
	return s
}

func read(st *stage, c *Caller, uri string) string {
	return st.text(c, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"`+uri+`"}}`)
}

func TestWhoseResourceItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := reading(&server{id: "a"}).set(Resource, `{"uri":"file:///same","name":"r"}`).set(Template, `{"uriTemplate":"db:{n}","name":"t"}`).tools("t")
		b := reading(&server{id: "b"}).set(Resource, `{"uri":"file:///same","name":"r"}`, `{"uri":"file:///own","name":"r"}`).
			set(Template, `{"uriTemplate":"db:{n}","name":"t"}`, `{"uriTemplate":"db:special-{n}","name":"t"}`).tools("t")
		st := newStage(t, Options{}, nil, a, b)
		defer st.stop()
		if got := st.listed(ViewAll, Resource); got != "file:///same b+file:///same file:///own" {
			t.Errorf("resources: %s", got)
		}
		if got := st.listed(ViewAll, Template); got != "db:{n} b+db:{n} db:special-{n}" {
			t.Errorf("templates: %s", got)
		}
		anna := legacyCaller()
		anna.Principal = "anna"
		for uri, want := range map[string]string{
			"file:///same":   `"uri":"file:///same","text":"of a"`,
			"b+file:///same": `"uri":"b+file:///same","text":"of b"`,
			"file:///own":    `"uri":"file:///own","text":"of b"`,
			"db:1":           `"uri":"db:1","text":"of a"`,
			"b+db:1":         `"uri":"b+db:1","text":"of b"`,
			"db:special-1":   `"uri":"db:special-1","text":"of b"`,
			"a+any:thing":    `"uri":"a+any:thing","text":"of a"`,
			"c+any:thing":    `"code":-32002`,
			"file:///none":   `"code":-32002`,
		} {
			if got := read(st, anna, uri); !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", uri, got, want)
			}
		}
		// Links lead to whom they came from, also where nobody lists them, and only for who has seen them.
		got := st.text(anna, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"b__t"}}`)
		want := `"content":[{"type":"resource_link","uri":"b+file:///same","name":"x"},{"type":"resource_link","uri":"file:///unlisted-b","name":"y"},{"type":"resource","resource":{"uri":"b+db:7","text":"z"}}]`
		if !strings.Contains(got, want) {
			t.Errorf("the links are %s\nwant %s", got, want)
		}
		if got := read(st, anna, "file:///unlisted-b"); !strings.Contains(got, "of b") {
			t.Errorf("what a link told: %s", got)
		}
		bob := legacyCaller()
		bob.Principal = "bob"
		if got := read(st, bob, "file:///unlisted-b"); !strings.Contains(got, `"code":-32002`) {
			t.Errorf("what a link told somebody else: %s", got)
		}
		// By its wire names nothing of a server is changed.
		c := legacyCaller()
		c.View = ServerView("b")
		if got := st.text(c, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`); !strings.Contains(got, `"uri":"file:///same"`) || strings.Contains(got, "b+") {
			t.Errorf("by its wire names: %s", got)
		}
	})
}

func TestLinksAreBounded(t *testing.T) {
	l := newLinks()
	u := &upstream.Upstream{}
	for i := range maxLinksPerPrincipal + 10 {
		l.learn("anna", fmt.Sprint(i), u)
		l.find("anna", "0") // always in use
	}
	l.learn("bob", "1", u)
	l.learn("bob", strings.Repeat("x", maxLinkedURI+1), u)
	if n := l.order.Len(); n != maxLinksPerPrincipal+1 || len(l.known) != n || l.held["anna"].Len() != maxLinksPerPrincipal || l.held["bob"].Len() != 1 {
		t.Errorf("%d links are known", n)
	}
	if l.find("anna", "0") == nil || l.find("anna", "1") != nil || l.find("bob", "1") == nil {
		t.Error("something else was forgotten than what was not used for longest")
	}
}

// BenchmarkLinksAtTheirBound learns where others hold many older ones: the time must not grow with those.
func BenchmarkLinksAtTheirBound(b *testing.B) {
	for _, others := range []int{0, 80_000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			l, u := newLinks(), &upstream.Upstream{}
			for i := range others {
				l.learn(fmt.Sprint("p", i%8), fmt.Sprint(i), u)
			}
			for i := range maxLinksPerPrincipal {
				l.learn("anna", fmt.Sprint(i), u)
			}
			for i := 0; b.Loop(); i++ {
				l.learn("anna", fmt.Sprint("new", i), u)
			}
		})
	}
}

func TestLongListsComeInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 2*pageItems + 5 {
			names = append(names, fmt.Sprintf("t%05d", i))
		}
		s := (&server{id: "s"}).tools(names...)
		st := newStage(t, Options{}, nil, s)
		defer st.stop()
		c := legacyCaller()
		c.Principal = "anna"
		list := func(c *Caller, cursor string) (string, int, string) {
			params := "{}"
			if cursor != "" {
				params = `{"cursor":"` + cursor + `"}`
			}
			got := st.text(c, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":`+params+`}`)
			_, next, _ := strings.Cut(got, `"nextCursor":"`)
			next, _, _ = strings.Cut(next, `"`)
			return got, strings.Count(got, `"name":"s__t`), next
		}
		_, n, second := list(c, "")
		if n != pageItems || second == "" {
			t.Fatalf("the first page has %d tools, next %q", n, second)
		}
		// The pages are of one state, whatever happens meanwhile.
		s.tools("other")
		s.notify("notifications/tools/list_changed", `{}`)
		pass(5 * time.Second)
		_, n, third := list(c, second)
		if n != pageItems || third == "" {
			t.Errorf("the second page has %d tools, next %q", n, third)
		}
		got, n, end := list(c, third)
		if n != 5 || end != "" || !strings.Contains(got, "s__t02004") {
			t.Errorf("the third page has %d tools, next %q", n, end)
		}
		if got := st.listed(ViewAll, Tool); got != "s__other" {
			t.Errorf("from the beginning it is %.60s", got)
		}
		other := legacyCaller()
		other.Principal = "bob"
		for name, try := range map[string]func() string{
			"somebody else's": func() string { got, _, _ := list(other, second); return got },
			"of another list": func() string {
				return st.text(c, `{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{"cursor":"`+second+`"}}`)
			},
			"changed": func() string { got, _, _ := list(c, "A"+second[1:]+"x"); return got },
			"made up": func() string { got, _, _ := list(c, "2"); return got },
			"of no string": func() string {
				return st.text(c, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":7}}`)
			},
		} {
			if got := try(); !strings.Contains(got, `"code":-32602`) {
				t.Errorf("a cursor that is %s: %.100s", name, got)
			}
		}
	})
}
