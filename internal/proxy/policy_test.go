package proxy

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// A tool is of the effect that its server says, and only the plain word counts.
func TestEffects(t *testing.T) {
	reads, writes := []config.Effect{config.EffectReadOnly}, []config.Effect{config.EffectSideEffect}
	for _, c := range []struct {
		annotations string
		reads       bool
	}{
		{`,"annotations":{"readOnlyHint":true}`, true}, {`,"annotations":{"readOnlyHint":false}`, false}, {`,"annotations":{"readOnlyHint":"true"}`, false},
		{`,"annotations":{"readonlyhint":true}`, false}, {`,"annotations":{}`, false}, {``, false}, {`,"annotations":null`, false}, {`,"annotations":{"idempotentHint":true}`, false},
	} {
		o, err := parseOffer(Tool, []byte(`{"name":"t"`+c.annotations+`}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, effects := range [][]config.Effect{nil, reads, writes, slices.Concat(reads, writes)} {
			want := len(effects) != 1 || (effects[0] == config.EffectReadOnly) == c.reads
			if got := (&policies{tools: config.Policy{Effects: effects}}).offers(o); got != want {
				t.Errorf("%s with effects %v: %v", o.raw, effects, got)
			}
			if (&policies{tools: config.Policy{Effects: effects, Deny: []string{"t"}}}).offers(o) {
				t.Errorf("%s is denied and offered", o.raw)
			}
		}
	}
}

// everythingOf is a server that has something of each kind to hide.
func everythingOf(id string) *server {
	s := (&server{id: id}).set(Tool, `{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`, tool("write"), tool("drop")).
		set(Prompt, `{"name":"review"}`, `{"name":"draft_mail"}`).
		set(Resource, `{"uri":"mem:///open","name":"o"}`, `{"uri":"mem:///secret","name":"s"}`).
		set(Template, `{"uriTemplate":"mem:///{x}","name":"t"}`, `{"uriTemplate":"vault:///{x}","name":"v"}`)
	s.caps = `{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{}}`
	s.on = func(f *wire.Frame, _ io.Writer) (string, bool) {
		switch f.Method {
		case "resources/read", "prompts/get", "completion/complete", "resources/subscribe":
			return `"result":{}`, true
		case "tools/call":
			return `"result":{"content":[{"type":"resource_link","uri":"mem:///secret/linked","name":"l"},{"type":"resource_link","uri":"mem:///other","name":"l"}]}`, true
		}
		return "", false
	}
	return s
}

// What a policy hides is reached in no way, and answered as what never was.
func TestNoWayLeadsToWhatIsHidden(t *testing.T) {
	hide := []string{"mem:///secret*", "vault:///*"}
	for _, where := range []string{"server", "profile"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var o Options
				var change func(*config.Server)
				tools := config.Policy{Deny: []string{"drop"}, Effects: []config.Effect{config.EffectReadOnly}}
				prompts, resources := config.Policy{Deny: []string{"draft_*"}}, config.Policy{Deny: hide}
				profile := config.Profile{Servers: []string{"a"}, Lazy: lazyOf(config.LazySearchOnly, "*")}
				views := []string{ProfileView("p")}
				if where == "profile" {
					profile.ToolPolicy, profile.PromptPolicy, profile.ResourcePolicy = tools, prompts, resources
				} else {
					change = func(s *config.Server) { s.ToolPolicy, s.PromptPolicy, s.ResourcePolicy = tools, prompts, resources }
					views = append(views, ViewAll, ServerView("a"))
				}
				o.Profiles = map[string]config.Profile{"p": profile}
				s := everythingOf("a")
				st := newStage(t, o, change, s)
				defer st.stop()
				for _, view := range views {
					for _, base := range []*Caller{legacyCaller(), modernCaller()} {
						who := *base
						who.View = view
						hidesAll(t, st, &who)
					}
				}
				for _, method := range []string{"tools/call", "prompts/get", "resources/read", "resources/subscribe", "completion/complete"} {
					for _, raw := range s.received(method) {
						for _, hidden := range []string{"drop", `"write"`, "draft_mail", "secret", "vault"} {
							if strings.Contains(raw, hidden) {
								t.Errorf("the server saw %s", raw)
							}
						}
					}
				}
			})
		})
	}
}

// hidesAll tries everything that leads to the hidden items of everythingOf.
func hidesAll(t *testing.T, st *stage, who *Caller) {
	t.Helper()
	prefix := "a__"
	if strings.HasPrefix(who.View, "server/") {
		prefix = ""
	}
	what := who.View + " " + who.Era.String()
	for k, want := range map[Kind]string{Tool: prefix + "read", Prompt: prefix + "review", Resource: "mem:///open", Template: "mem:///{x}"} {
		got := strings.ReplaceAll(st.listed(who.View, k), " search_tools call_tool", "")
		if got != want {
			t.Errorf("%s: %ss %q, want %q", what, k, got, want)
		}
	}
	st.text(who, callOf(prefix+"read", `{}`)) // brings links
	// Pairs of what is hidden and what never was.
	pairs := [][2]string{
		{callOf(prefix+"drop", `{}`), callOf(prefix+"none", `{}`)},
		{callOf(prefix+"write", `{}`), callOf(prefix+"none", `{}`)},
		{callOf("call_tool", `{"name":"`+prefix+`drop"}`), callOf("call_tool", `{"name":"`+prefix+`none"}`)},
		{`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"` + prefix + `draft_mail"}}`, `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"` + prefix + `none"}}`},
		{complete(`"type":"ref/prompt","name":"` + prefix + `draft_mail"`), complete(`"type":"ref/prompt","name":"` + prefix + `none"`)},
		{complete(`"type":"ref/resource","uri":"vault:///{x}"`), complete(`"type":"ref/resource","uri":"none:///{x}"`)},
	}
	for _, uri := range []string{"mem:///secret", "mem:///secret/linked", "vault:///x", "mem:///%73ecret", "mem:///a/../secret", "a+mem:///secret"} {
		pairs = append(pairs, [2]string{readOf(uri), readOf("never:///was")})
		subs := st.p.NewSubscriptions(func(string) {})
		if _, ok := subs.Add(t.Context(), who, uri); ok {
			t.Errorf("%s: %s can be watched", what, uri)
		}
		subs.Close()
	}
	for _, p := range pairs {
		hidden, never := strip(st.text(who, p[0])), strip(st.text(who, p[1]))
		if strings.Contains(p[1], ":///") && prefix == "" {
			never = hidden // at a server's own address what it does not list is asked of itself
		}
		if hidden != never || !strings.Contains(hidden, `"error"`) {
			t.Errorf("%s: %s is answered %s, and what never was %s", what, p[0], hidden, never)
		}
	}
	if got := st.text(who, callOf("search_tools", `{"query":"drop write"}`)); !strings.Contains(got, `"total_matches":0`) && !strings.Contains(got, "unknown tool") {
		t.Errorf("%s: a search gives %s", what, got)
	}
	for _, uri := range []string{"mem:///open", "mem:///other"} {
		if got := st.text(who, readOf(uri)); strings.Contains(got, `"error"`) {
			t.Errorf("%s: %s is answered %s", what, uri, got)
		}
	}
}

func complete(ref string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{` + ref + `},"argument":{"name":"x","value":"y"}}}`
}

func readOf(uri string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":%q}}`, uri)
}

// strip takes the name out of a refusal.
func strip(answer string) string {
	for _, name := range []string{"drop", "write", "draft_mail", "none", "vault:///{x}", "none:///{x}", "never:///was", "a+mem:///secret", "mem:///secret/linked",
		"mem:///secret", "vault:///x", "mem:///%73ecret", "mem:///a/../secret"} {
		answer = strings.ReplaceAll(answer, name, "NAME")
	}
	return strings.ReplaceAll(answer, "NAME:///{x}", "NAME")
}

// A part of what a client watches may be hidden from it; then it is not told of that part, by whatever policy it is hidden.
func TestUpdatesOfHiddenParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := subscribable("a")
		hide := config.Policy{Deny: []string{"*/secret*"}}
		o := Options{Shape: Shape{Profiles: map[string]config.Profile{"p": {Servers: []string{"a"}, ResourcePolicy: hide}}}}
		st := newStage(t, o, func(c *config.Server) { c.ResourcePolicy = config.Policy{Deny: []string{"*/private*"}} }, s)
		defer st.stop()
		all, few := newWatchingClient(st), newWatchingClient(st)
		few.caller.View = ProfileView("p")
		for _, w := range []*watchingClient{all, few} {
			w.ask("resources/subscribe", `"file:///dir"`)
		}
		for _, part := range []string{"", "/open", "/secret", "/private", "/%73ecret"} {
			s.notify("notifications/resources/updated", `{"uri":"file:///dir`+part+`"}`)
		}
		if got := all.heard(); got != "file:///dir file:///dir/open file:///dir/secret file:///dir/%73ecret" {
			t.Errorf("everybody is told of %s", got)
		}
		if got := few.heard(); got != "file:///dir file:///dir/open" {
			t.Errorf("the profile is told of %s", got)
		}
	})
}
