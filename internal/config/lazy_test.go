package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestTheFormsOfLazy(t *testing.T) {
	pinned := NewLazy(LazySearchOnly)
	pinned.SearchTool, pinned.CallTool, pinned.Pinned = "find", "run", []string{"a*"}
	for _, c := range []struct {
		text    string
		want    *Lazy
		mistake string
	}{
		{`true`, NewLazy(LazyOn), ""}, {`false`, NewLazy(LazyOff), ""}, {`"search_only"`, NewLazy(LazySearchOnly), ""}, {`"true"`, NewLazy(LazyOn), ""},
		{`"${LAZY:-search_only}"`, NewLazy(LazySearchOnly), ""}, {`null`, nil, ""}, {`{}`, NewLazy(LazyOn), ""}, {`{"mode":false}`, NewLazy(LazyOff), ""},
		{`{"mode":"search_only","tool_name":"find","call_tool_name":"run","pinned":["a*"]}`, pinned, ""},
		{`1`, nil, "must be true, false or search_only, not a number"}, {`"searchonly"`, nil, `"searchonly" is not known`}, {`[]`, nil, "must be true, false or search_only, not a list"},
		{`{"mode":"no"}`, nil, `"no" is not known`}, {`{"tool_name":"a b"}`, nil, "is made of at most 64"}, {`{"tool_name":""}`, nil, "is made of at most 64"},
		{`{"pinned":[""]}`, nil, "is empty"}, {`{"tool_name":"x","call_tool_name":"x"}`, nil, "are the same"}, {`{"pined":[]}`, nil, "unknown key"},
	} {
		l := loadText(t, `{"mcpServers":{"a":{"command":"/x","lazy":`+c.text+`}},"proxy":{"lazy":`+c.text+`,"profiles":{"p":{"servers":["a"],"lazy":`+c.text+`}}}}`, variables{})
		errs := l.Errors()
		if c.mistake != "" {
			if len(errs) != 3 || !strings.Contains(errs[0].String(), c.mistake) {
				t.Errorf("%s: %v, want %s", c.text, errs, c.mistake)
			}
			continue
		}
		if len(errs) > 0 {
			t.Errorf("%s: %v", c.text, errs)
			continue
		}
		for where, got := range map[string]*Lazy{"server": l.Config.Servers[0].Lazy, "proxy": l.Config.Proxy.Lazy, "profile": l.Config.Proxy.Profiles["p"].Lazy} {
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s of a %s is %+v, want %+v", c.text, where, got, c.want)
			}
		}
	}
}

func TestArgumentsOfTools(t *testing.T) {
	load := func(args string) *Loaded {
		return loadText(t, `{"mcpServers":{"a":{"command":"/x","tools":{"t":{"arguments":`+args+`}}}}}`, variables{"DIR": "/data"})
	}
	l := load(`{"path":{"fixed":"${DIR}"},"n":{"default":9007199254740993},"o":{"fixed":{"a":[1.10,null]}},"z":{"default":null}}`)
	if errs := l.Errors(); len(errs) > 0 {
		t.Fatal(errs)
	}
	var got []string
	for _, a := range l.Config.Servers[0].Tools["t"].Arguments {
		got = append(got, a.Name+" "+string(a.Fixed)+"|"+string(a.Default))
	}
	if want := `path "/data"| n |9007199254740993 o {"a":[1.10,null]}| z |null`; strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	var b strings.Builder
	if err := l.PrintEffective(&b); err != nil || strings.Contains(b.String(), "/data") || !strings.Contains(b.String(), "default: 9007199254740993") {
		t.Errorf("the effective configuration is %s (%v)", b.String(), err)
	}
	for args, want := range map[string]string{
		`[]`: "must be an object", `{"p":1}`: "must be an object", `{"p":{}}`: "needs one of fixed and default", `{"p":{"fixed":1,"default":2}}`: "needs one of fixed and default",
		`{"p":{"value":1}}`: "unknown key", `{"p":{"fixed":"${NOPE}"}}`: "NOPE",
	} {
		if errs := load(args).Errors(); len(errs) == 0 || !strings.Contains(errs[0].String(), want) {
			t.Errorf("%s: %v, want %s", args, errs, want)
		}
	}
}

func TestProfilesCompleteTheirNaming(t *testing.T) {
	l := loadText(t, `{"mcpServers":{"a":{"command":"/x"}},"proxy":{"profiles":{"p":{"servers":["a"],"naming":{"mode":"none"},"instructions":"x"},"q":{"servers":["a"]}},
		"naming":{"template":"{tool}-{server}","on_conflict":"suffix"}}}`, variables{})
	if errs := l.Errors(); len(errs) > 0 {
		t.Fatal(errs)
	}
	want := Naming{Mode: NamingNone, Template: "{tool}-{server}", MaxLength: 50, OnConflict: ConflictSuffix}
	if got := l.Config.Proxy.Profiles["p"].Naming; got == nil || *got != want {
		t.Errorf("the naming is %+v", got)
	}
	if l.Config.Proxy.Profiles["q"].Naming != nil {
		t.Error("a profile without naming has one")
	}
}

func TestEffectsOfPolicies(t *testing.T) {
	l := loadText(t, `{"mcpServers":{"a":{"command":"/x","tool_policy":{"effects":["read_only"]},"resource_policy":{"effects":[]}},"b":{"command":"/x","tool_policy":{"effects":["readonly"]}}}}`, variables{})
	if got := l.Config.Servers[0].ToolPolicy.Effects; len(got) != 1 || got[0] != EffectReadOnly {
		t.Errorf("the effects are %v", got)
	}
	errs := l.Errors()
	if len(errs) != 2 || !strings.Contains(errs[0].String(), "unknown key") || !strings.Contains(errs[1].String(), `"readonly" is not known`) {
		t.Errorf("the mistakes are %v", errs)
	}
}
