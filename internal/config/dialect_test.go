package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func one(t *testing.T, l *Loaded) *Server {
	t.Helper()
	if errs := l.Errors(); len(errs) > 0 {
		t.Fatalf("errors: %v", errs)
	}
	if len(l.Config.Servers) != 1 {
		t.Fatalf("%d servers", len(l.Config.Servers))
	}
	return l.Config.Servers[0]
}

// TestSpellings reads entries as other clients write them; each must be what our own keys say.
func TestSpellings(t *testing.T) {
	env := variables{"TOK": "secret", "HDR": "blue"}
	for _, c := range []struct{ name, other, ours string }{
		{"serverUrl", `{"serverUrl":"http://h/mcp"}`, `{"url":"http://h/mcp"}`},
		{"httpUrl", `{"httpUrl":"http://h/mcp/"}`, `{"url":"http://h/mcp/"}`},
		{"endpoint", `{"endpoint":"http://h/mcp?k=a%2Fb"}`, `{"url":"http://h/mcp?k=a%2Fb"}`},
		{"streamable", `{"url":"http://h","type":"Streamable HTTP"}`, `{"url":"http://h","type":"http"}`},
		{"streamableHttp", `{"url":"http://h","transportType":"streamableHttp"}`, `{"url":"http://h","type":"http"}`},
		{"SSE", `{"url":"http://h","transport":"SSE"}`, `{"url":"http://h","type":"sse"}`},
		{"remote", `{"url":"http://h","type":"remote","enabled":true}`, `{"url":"http://h"}`},
		{"local", `{"type":"local","command":["/x","-a","b"],"environment":{"A":"1"}}`, `{"command":"/x","args":["-a","b"],"env":{"A":"1"}}`},
		{"local alone", `{"type":"local","command":["/x"]}`, `{"command":"/x"}`},
		{"zed", `{"source":"custom","command":{"path":"/x","args":["a"],"env":{"A":"1"}}}`, `{"command":"/x","args":["a"],"env":{"A":"1"}}`},
		{"zed flat", `{"source":"custom","command":"/x","settings":{}}`, `{"command":"/x"}`},
		{"codex", `{"url":"http://h","bearer_token_env_var":"TOK","http_headers":{"A":"1"},"env_http_headers":{"B":"HDR"},"startup_timeout_sec":20,"tool_timeout_sec":1.5}`,
			`{"url":"http://h","auth_token":"secret","headers":{"A":"1","B":"blue"},"connect_timeout":"20s","call_timeout":"1500ms"}`},
		{"codex stdio", `{"command":"/x","env_vars":["HDR"],"startup_timeout_ms":500,"required":true}`, `{"command":"/x","inherit_env":["HDR"],"connect_timeout":"500ms"}`},
		{"gemini", `{"httpUrl":"http://h","includeTools":["a"],"excludeTools":["b"],"timeout":30000,"trust":true}`,
			`{"url":"http://h","tool_policy":{"expose":["a"],"deny":["b"]},"call_timeout":"30s"}`},
		{"cline", `{"command":"/x","autoApprove":["a"],"timeout":60,"disabled":false}`, `{"command":"/x","call_timeout":"1m"}`},
		{"an hour of seconds", `{"command":"/x","alwaysAllow":[],"timeout":3600}`, `{"command":"/x","call_timeout":"1h"}`},
		{"timeout with a unit", `{"command":"/x","timeout":"90s"}`, `{"command":"/x","call_timeout":"90s"}`},
		{"copilot", `{"type":"local","command":"/x","tools":["*"]}`, `{"command":"/x"}`},
		{"some tools", `{"command":"/x","tools":["a"],"tool_policy":{"deny":["b"]}}`, `{"command":"/x","tool_policy":{"expose":["a"],"deny":["b"]}}`},
		{"goose", `{"cmd":"/x","envs":{"A":"1"},"args":[]}`, `{"command":"/x","env":{"A":"1"},"args":[]}`},
		{"off", `{"command":"/x","isActive":false}`, `{"command":"/x","disabled":true}`},
		{"restart", `{"command":"/x","restartPolicy":{"initialDelayMs":250,"maxDelayMs":4000,"backoffMultiplier":3}}`,
			`{"command":"/x","restart":{"initial_delay":"250ms","max_delay":"4s","multiplier":3}}`},
		{"cwd", `{"command":"/x","workingDirectory":"/d"}`, `{"command":"/x","cwd":"/d"}`},
		{"bare numbers", `{"command":"/x","args":["-p",8080,true],"env":{"P":1.10,"N":null}}`, `{"command":"/x","args":["-p","8080","true"],"env":{"P":"1.10"}}`},
		{"null", `{"command":"/x","url":null,"headers":null}`, `{"command":"/x"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := one(t, loadText(t, `{"mcpServers":{"a":`+c.other+`}}`, env))
			want := one(t, loadText(t, `{"mcpServers":{"a":`+c.ours+`}}`, env))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %#v\nwant %#v", got, want)
			}
		})
	}
}

// TestEverySpellingMeansSomething holds the table to what readers of other clients need: no key is ours or foreign too.
func TestEverySpellingMeansSomething(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range serverFields {
		seen[f.key] = true
	}
	for _, key := range append(append([]string{}, foreign...), foreignAuth...) {
		if seen[key] {
			t.Errorf("%s stands twice", key)
		}
		seen[key] = true
	}
	for _, s := range spellings {
		if seen[s.from] {
			t.Errorf("%s stands twice", s.from)
		}
		seen[s.from] = true
		outer, inner, nested := strings.Cut(s.to, ".")
		if fieldOf(serverFields, outer) == nil || nested && fieldOf(policyFields, inner) == nil {
			t.Errorf("%s means %s, which is no key", s.from, s.to)
		}
	}
}

func TestTimeoutIsNoted(t *testing.T) {
	l := loadText(t, `{"mcpServers":{"a":{"command":"/x","timeout":5000}}}`, nil)
	if s := one(t, l); s.CallTimeout != 5*time.Second {
		t.Errorf("call timeout %v", s.CallTimeout)
	}
	if len(l.Notes) != 1 || !strings.Contains(l.Notes[0].String(), "milliseconds") || l.Notes[0].Server != "a" {
		t.Errorf("notes %v", l.Notes)
	}
}

func TestForeignKeysAreNoted(t *testing.T) {
	l := loadText(t, `{"$schema":"s","inputs":[],"x-mine":{},"mcpServers":{"a":{"command":"/x","autoApprove":[],"description":"d","gallery":true}}}`, nil)
	one(t, l)
	var paths []string
	for _, n := range l.Notes {
		paths = append(paths, n.Path)
	}
	want := []string{"$schema", "inputs", "x-mine", "mcpServers.a.autoApprove", "mcpServers.a.description", "mcpServers.a.gallery"}
	if !reflect.DeepEqual(paths, want) || len(l.Problems) > 0 {
		t.Errorf("notes %v, problems %v", paths, l.Problems)
	}
}

func TestTransportIsInferred(t *testing.T) {
	for entry, want := range map[string]struct {
		transport Transport
		guessed   bool
		connect   time.Duration
	}{
		`{"command":"/x"}`:                             {TransportStdio, false, time.Minute},
		`{"url":"http://h"}`:                           {TransportHTTP, true, 15 * time.Second},
		`{"url":"http://h","type":"http"}`:             {TransportHTTP, false, 15 * time.Second},
		`{"url":"http://h","type":"sse"}`:              {TransportSSE, false, 15 * time.Second},
		`{"command":"/x","connect_timeout":"1s"}`:      {TransportStdio, false, time.Second},
		`{"url":"http://h","startup_timeout_sec":0.5}`: {TransportHTTP, true, 500 * time.Millisecond},
	} {
		s := one(t, loadText(t, `{"mcpServers":{"a":`+entry+`}}`, nil))
		if s.Transport != want.transport || s.TransportGuessed != want.guessed || s.ConnectTimeout != want.connect {
			t.Errorf("%s: %v, guessed %v, connect %v", entry, s.Transport, s.TransportGuessed, s.ConnectTimeout)
		}
	}
}

// TestSyntaxesAgree loads the same configuration in three syntaxes; the order of the servers is that of the file.
func TestSyntaxesAgree(t *testing.T) {
	meta := `{"big":9007199254740993,"price":1.10,"deep":[{"x":"${V}"}]}`
	plain := `{"servers":{"z":{"command":"/x","request_meta":` + meta + `},"a":{"url":"http://h//x","lazy":true}},"proxy":{"naming":{"mode":"none"}}}`
	commented := "\xef\xbb\xbf// top\r\n{ /* in */ \"servers\": {\r\n\"z\":{\"command\":\"/x\",\"request_meta\":" + meta + ",}, // after\r\n" +
		"\"a\":{\"url\":\"http://h//x\",\"lazy\":true},\r\n},\"proxy\":{\"naming\":{\"mode\":\"none\"}}} // the end"
	yaml := "x-base: &base {lazy: true}\nservers:\n  z:\n    command: /x\n    request_meta:\n      big: 9007199254740993\n      price: 1.10\n      deep: [{x: \"${V}\"}]\n" +
		"  a:\n    <<: *base\n    url: http://h//x\nproxy:\n  naming: {mode: none}\n"
	var first *Config
	for name, text := range map[string]string{"plain": plain, "commented": commented, "yaml": yaml} {
		l := loadText(t, text, variables{"V": "v"})
		if len(l.Errors()) > 0 {
			t.Fatalf("%s: %v", name, l.Errors())
		}
		l.Config.Dir = ""
		if first == nil {
			first = l.Config
		}
		if !reflect.DeepEqual(first, l.Config) {
			t.Errorf("%s is %+v and not %+v", name, l.Config, first)
		}
		if got := l.Config.Servers[0]; got.ID != "z" || string(got.RequestMeta) != strings.Replace(meta, "${V}", "v", 1) {
			t.Errorf("%s: the first server is %s with %s", name, got.ID, got.RequestMeta)
		}
	}
}

func TestYAMLNumbers(t *testing.T) {
	for in, want := range map[string]string{"0x10": "16", "1_000": "1000", "+1": "1", "0o17": "15", "1.5e3": "1.5e3", ".5": "0.5", "-0": "-0"} {
		if got, ok := jsonNumber(in); got != want || !ok {
			t.Errorf("%s is %s, %v", in, got, ok)
		}
	}
	for _, in := range []string{".inf", ".nan", "word"} {
		if _, ok := jsonNumber(in); ok {
			t.Errorf("%s is taken as JSON", in)
		}
	}
}
