package proxy

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func naming(mode config.NamingMode) config.Naming {
	return config.Naming{Mode: mode, Template: "{server}__{tool}", MaxLength: 50, OnConflict: config.ConflictFail}
}

func ptr[T any](v T) *T { return &v }

func TestNames(t *testing.T) {
	gh := &config.Server{ID: "gh"}
	for _, c := range []struct {
		name     string
		naming   config.Naming
		server   *config.Server
		wire     string
		conflict bool
		want     string // an end in * stands for a hash
		why      string
	}{
		{"always", naming(config.NamingAlways), gh, "get_issue", false, "gh__get_issue", ""},
		{"none", naming(config.NamingNone), gh, "get_issue", false, "get_issue", ""},
		{"on conflict, without one", naming(config.NamingOnConflict), gh, "get_issue", false, "get_issue", ""},
		{"on conflict, with one", naming(config.NamingOnConflict), gh, "get_issue", true, "gh__get_issue", whyConflict},
		{"a prefix", naming(config.NamingAlways), &config.Server{ID: "gh", ToolPrefix: ptr("x-")}, "get", false, "x-get", ""},
		{"an empty prefix", naming(config.NamingAlways), &config.Server{ID: "gh", ToolPrefix: ptr("")}, "get", false, "get", ""},
		{"a prefix like a template", naming(config.NamingAlways), &config.Server{ID: "gh", ToolPrefix: ptr("{tool}")}, "get", false, "_tool_get_*", whyCharacters},
		{"a tool like a template", naming(config.NamingAlways), gh, "{server}", false, "gh___server__*", whyCharacters},
		{"dots", naming(config.NamingAlways), gh, "issues.get", false, "gh__issues_get_*", whyCharacters},
		{"other letters", naming(config.NamingNone), gh, "größe", false, "gr__e_*", whyCharacters},
		{"a long name", naming(config.NamingAlways), gh, strings.Repeat("x", 60), false, "gh__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_*", whyLength},
		{"just short enough", naming(config.NamingNone), gh, strings.Repeat("x", 50), false, strings.Repeat("x", 50), ""},
		{"another template", config.Naming{Mode: config.NamingAlways, Template: "{tool}-of-{server}", MaxLength: 50}, gh, "get", false, "get-of-gh", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNamer(c.naming, []*config.Server{c.server})
			got, why := n.name(c.server, c.wire, c.conflict)
			want, hashed := strings.CutSuffix(c.want, "*")
			if why != c.why || !strings.HasPrefix(got, want) || hashed == (got == want) {
				t.Errorf("got %q (%s), want %q (%s)", got, why, c.want, c.why)
			}
			if len(got) > c.naming.MaxLength {
				t.Errorf("%q is too long", got)
			}
			if again, _ := newNamer(c.naming, []*config.Server{c.server}).name(c.server, c.wire, c.conflict); again != got {
				t.Errorf("the name is %q one time and %q the other", got, again)
			}
		})
	}
}

// Servers whose names look alike once cleaned keep apart, and a name that needs no cleaning is as it is.
func TestNamesOfServersThatLookAlike(t *testing.T) {
	servers := []*config.Server{{ID: "my server"}, {ID: "my_server"}, {ID: "my.server"}}
	n := newNamer(naming(config.NamingAlways), servers)
	seen := map[string]bool{}
	for _, s := range servers {
		name, _ := n.name(s, "t", false)
		if seen[name] {
			t.Errorf("%q stands for two servers", name)
		}
		seen[name] = true
	}
	if !seen["my_server__t"] {
		t.Errorf("the names are %v", seen)
	}
	alone, _ := newNamer(naming(config.NamingAlways), servers[:1]).name(servers[0], "t", false)
	if alone != "my_server__t" {
		t.Errorf("alone it is %q", alone)
	}
}

func TestSuffixes(t *testing.T) {
	n := newNamer(naming(config.NamingNone), nil)
	s := &config.Server{ID: "a"}
	for _, name := range []string{"get", strings.Repeat("x", 50)} {
		got := n.suffixed(s, "get", name)
		if len(got) > 50 || got == name || got != n.suffixed(s, "get", name) || got == n.suffixed(s, "put", name) || got == n.suffixed(&config.Server{ID: "b"}, "get", name) {
			t.Errorf("%q becomes %q", name, got)
		}
	}
}

var cleanName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// FuzzNames holds that every name is one that model APIs take, that it is a pure function of configuration and wire
// name, and that different tools of a table have different names.
func FuzzNames(f *testing.F) {
	f.Add("github", "get_issue", "get.issue", "{server}__{tool}", uint8(50))
	f.Add("my server", "größe", "gr__e", "{tool}", uint8(16))
	f.Add("", "{tool}", "{{", "{{{server}{tool}", uint8(128))
	f.Add("\xff", strings.Repeat("x", 200), strings.Repeat("x", 201), "p{tool}", uint8(64))
	f.Fuzz(func(t *testing.T, server, one, two, template string, limit uint8) {
		if one == "" || two == "" || one == two || !strings.Contains(template, "{tool}") || strings.Contains(template, "{{") {
			t.Skip()
		}
		length := 16 + int(limit)%113
		servers := []*config.Server{{ID: server}, {ID: server + "2"}}
		n := newNamer(config.Naming{Mode: config.NamingAlways, Template: template, MaxLength: length}, servers)
		name, why := n.name(servers[0], one, false)
		if !cleanName.MatchString(name) || len(name) > length {
			t.Errorf("%q of %q becomes %q", one, server, name)
		}
		if again, _ := n.name(servers[0], one, false); again != name {
			t.Errorf("%q becomes %q and %q", one, name, again)
		}
		// Hashes are short and may meet; names that needed none never do.
		other, whyOther := n.name(servers[0], two, false)
		if name == other && (why == "" || whyOther == "") && !hashed(name) {
			t.Errorf("%q and %q both become %q", one, two, name)
		}
	})
}

var hashEnd = regexp.MustCompile(`_[0-9a-f]{4}([0-9a-f]{4})?$`)

// hashed says whether a name may end in a hash; a plain name may look so by chance.
func hashed(name string) bool { return hashEnd.MatchString(name) }

func TestNoNameStandsForTwoToolsOfATable(t *testing.T) {
	var offers []*offer
	for i := range 500 {
		for _, form := range []string{"tool_%d", "tool.%d", "tool/%d", "tool %d", "très_long_" + strings.Repeat("z", 60) + "_%d"} {
			offers = append(offers, &offer{kind: Tool, wire: fmt.Sprintf(form, i)})
		}
	}
	s := &config.Server{ID: "s"}
	n := newNamer(naming(config.NamingAlways), []*config.Server{s})
	seen, meet := map[string]string{}, 0
	for _, o := range offers {
		name, _ := n.name(s, o.wire, false)
		if seen[name] != "" {
			meet++
		}
		seen[name] = o.wire
	}
	// The hash tells "tool.1" from "tool/1"; that hardly any meet is all that can be asked of four digits.
	if meet > 1 {
		t.Errorf("%d of %d names meet", meet, len(offers))
	}
}
