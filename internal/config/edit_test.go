package config

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

func TestSetEntry(t *testing.T) {
	entry := json.RawMessage(`{"url":"http://x/mcp"}`)
	for name, c := range map[string]struct{ text, want string }{
		"no file":      {"", "{\n  \"mcpServers\":{\n    \"p\":{\"url\":\"http://x/mcp\"}\n  }\n}\n"},
		"empty object": {"{}", "{\n  \"mcpServers\":{\n    \"p\":{\"url\":\"http://x/mcp\"}\n  }\n}"},
		"others stay": {
			`{"mcpServers":{"mine":{"command":"x","args":["1.10"]}},"other":{"n":1.10}}`,
			"{\"mcpServers\":{\"mine\":{\"command\":\"x\",\"args\":[\"1.10\"]},\n    \"p\":{\"url\":\"http://x/mcp\"}\n  },\"other\":{\"n\":1.10}}",
		},
		"comments stay": {
			"// mine\n{\n  \"a\": 1, // one\n  \"mcpServers\": {\n    /* q */ \"q\": {},\n  },\n}\n",
			"// mine\n{\n  \"a\": 1, // one\n  \"mcpServers\": {\n    /* q */ \"q\": {},\n    \"p\":{\"url\":\"http://x/mcp\"}\n  },\n}\n",
		},
		"replaced": {`{"mcpServers": {"p": {"url": "old"}, "q": 1}}`, `{"mcpServers": {"p": {"url":"http://x/mcp"}, "q": 1}}`},
	} {
		out, changed, err := SetEntry([]byte(c.text), "mcpServers", "p", entry)
		if err != nil || !changed || string(out) != c.want {
			t.Errorf("%s: %v, %v\n%s\nwant\n%s", name, changed, err, out, c.want)
		}
		again, changed, err := SetEntry(out, "mcpServers", "p", entry)
		if err != nil || changed || string(again) != string(out) {
			t.Errorf("%s: a second time: %v, %v\n%s", name, changed, err, again)
		}
	}
	for _, text := range []string{"[]", "1", `{"mcpServers":[]}`, "{", `{"mcpServers":null}`, `{"mcpServers":{"p":1,"p":2}}`, `{"mcpServers":{},"mcpServers":{}}`} {
		if out, _, err := SetEntry([]byte(text), "mcpServers", "p", entry); err == nil {
			t.Errorf("%s gives %s", text, out)
		}
	}
}

func TestAddTable(t *testing.T) {
	values := map[string]any{"url": "http://x/mcp"}
	const table = "[mcp_servers.p]\nurl = 'http://x/mcp'\n"
	for name, c := range map[string]struct{ text, want string }{
		"no file":     {"", table},
		"others stay": {"# mine\nmodel = \"m\"\n\n[mcp_servers.q]\ncommand = \"x\"\n", "# mine\nmodel = \"m\"\n\n[mcp_servers.q]\ncommand = \"x\"\n\n" + table},
	} {
		out, changed, err := AddTable([]byte(c.text), "mcp_servers", "p", values)
		if err != nil || !changed || string(out) != c.want {
			t.Errorf("%s: %v, %v\n%s\nwant\n%s", name, changed, err, out, c.want)
		}
		if _, changed, err := AddTable(out, "mcp_servers", "p", values); err != nil || changed {
			t.Errorf("%s: a second time: %v, %v", name, changed, err)
		}
		if _, _, err := AddTable(out, "mcp_servers", "p", map[string]any{"url": "other"}); !errors.Is(err, ErrThere) {
			t.Errorf("%s: with other values: %v", name, err)
		}
	}
	for _, text := range []string{"mcp_servers = { q = { command = \"x\" } }\n", "= 1\n", "mcp_servers = 1\n"} {
		if out, _, err := AddTable([]byte(text), "mcp_servers", "p", values); err == nil {
			t.Errorf("%q gives %q", text, out)
		}
	}
}

func TestServersIn(t *testing.T) {
	for name, c := range map[string]struct {
		text, object string
		toml         bool
		want         string
	}{
		"JSON with comments": {"{\"servers\": {\"a\": {\"url\": \"u\"}, /* x */}}", "servers", false, `{"a":{"url":"u"}}`},
		"TOML":               {"[mcp_servers.a]\ncommand = \"x\"\nargs = [\"y\"]\n", "mcp_servers", true, `{"a":{"args":["y"],"command":"x"}}`},
		"none":               {"{}", "servers", false, `{}`},
	} {
		servers, err := ServersIn([]byte(c.text), c.object, c.toml)
		got, _ := json.Marshal(servers)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for _, text := range []string{`[]`, `{"servers":1}`, `{`} {
		if s, err := ServersIn([]byte(text), "servers", false); err == nil {
			t.Errorf("%s gives %v", text, s)
		}
	}
}

// Whatever a file of settings holds, its edit is understood again and has the entry, and only that is new.
func FuzzSetEntry(f *testing.F) {
	for _, text := range []string{"", "{}", `{"mcpServers":{"p":1,"q":{"a":[1.10]}},"x":"\u2028"}`, "// c\n{\"a\":1,}", `{"mcpServers":{"p":1,"p":2}}`, "[]"} {
		f.Add([]byte(text))
	}
	entry := json.RawMessage(`{"url":"u"}`)
	f.Fuzz(func(t *testing.T, text []byte) {
		out, _, err := SetEntry(text, "mcpServers", "p", entry)
		if err != nil {
			return
		}
		if len(text) == 0 {
			text = []byte("{}")
		}
		before, err := ServersIn(text, "mcpServers", false)
		if err != nil {
			return // such as the same member twice, of which another reader takes the other
		}
		after, err := ServersIn(out, "mcpServers", false)
		var got, want any
		if err != nil || json.Unmarshal(after["p"], &got) != nil || json.Unmarshal(entry, &want) != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q gives %q: %v", text, out, err)
		}
		for name, raw := range before {
			if name != "p" && string(after[name]) != string(raw) {
				t.Errorf("%q: %q was %s and is %s", text, name, raw, after[name])
			}
		}
	})
}
