package catalog

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// mistake is one line of a file, where check must find fault with it, and words of what it must say about the remedy.
type mistake struct{ line, path, remedy string }

// Mistakes in servers, which stand in the file one a line.
var serverMistakes = []mistake{
	{`"no-command": {}`, "mcpServers.no-command", "give a command"},
	{`"both": {"command": "/bin/cat", "url": "http://127.0.0.1:1/mcp"}`, "mcpServers.both", "keep one"},
	{`"typo": {"command": "/bin/cat", "agrs": []}`, "mcpServers.typo.agrs", `did you mean "args"`},
	{`"args": {"command": "/bin/cat", "args": "one two"}`, "mcpServers.args.args", "must be a list of strings"},
	{`"env": {"command": "/bin/cat", "env": ["A=1"]}`, "mcpServers.env.env", "must be an object"},
	{`"unset": {"command": "/bin/cat", "env": {"KEY": "${NOBODY_SETS_THIS}"}}`, "mcpServers.unset.env.KEY", "NOBODY_SETS_THIS is not set; set it"},
	{`"file": {"command": "/bin/cat", "env": {"KEY": "${file:/nowhere/at/all}"}}`, "mcpServers.file.env.KEY", "/nowhere/at/all"},
	{`"url": {"url": "127.0.0.1:1/mcp"}`, "mcpServers.url.url", "write for example http://"},
	{`"scheme": {"url": "ftp://127.0.0.1/mcp"}`, "mcpServers.scheme.url", "must begin with http:// or https://"},
	{`"type": {"url": "http://127.0.0.1:1/mcp", "type": "websocket"}`, "mcpServers.type.type", "known are stdio, http"},
	{`"headers": {"url": "http://127.0.0.1:1/mcp", "headers": {"Bad Name": "x"}}`, `mcpServers.headers.headers["Bad Name"]`, "not the name of a header"},
	{`"protocol": {"command": "/bin/cat", "protocol": "2025"}`, "mcpServers.protocol.protocol", "known are auto, legacy, modern"},
	{`"sharing": {"command": "/bin/cat", "sharing": "everybody"}`, "mcpServers.sharing.sharing", "known are shared, session, call"},
	{`"instances": {"command": "/bin/cat", "instances": 0}`, "mcpServers.instances.instances", "must be from 1"},
	{`"soon": {"command": "/bin/cat", "call_timeout": "soon"}`, "mcpServers.soon.call_timeout", `write for example "30s"`},
	{`"negative": {"command": "/bin/cat", "connect_timeout": "-5s"}`, "mcpServers.negative.connect_timeout", "at least"},
	{`"restart": {"command": "/bin/cat", "restart": {"initial_delay": "1m", "max_delay": "1s"}}`, "mcpServers.restart.restart", "shorter than initial_delay"},
	{`"policy": {"command": "/bin/cat", "tool_policy": {"expose": "all"}}`, "mcpServers.policy.tool_policy.expose", "must be a list of strings"},
	{`"bool": {"command": "/bin/cat", "disabled": "yes"}`, "mcpServers.bool.disabled", "must be true or false"},
	{`"start": {"command": "/bin/cat", "start": "tomorrow"}`, "mcpServers.start.start", "known are eager, lazy"},
}

// Mistakes under "proxy".
var proxyMistakes = []mistake{
	{`"listen": "everywhere"`, "proxy.listen", "write host:port"},
	{`"lissten": "127.0.0.1:1"`, "proxy.lissten", `did you mean "listen"`},
	{`"naming": {"mode": "sometimes"}`, "proxy.naming.mode", "known are always, on_conflict, none"},
	{`"startup": "careful"`, "proxy.startup", "known are lenient, strict"},
	{`"limits": {"max_body_bytes": "much"}`, "proxy.limits.max_body_bytes", "must be a whole number"},
	{`"sessions": {"keys": ["short"]}`, "proxy.sessions.keys[0]", "make one with openssl"},
	{`"auth": {"mode": "tokens"}`, "proxy.auth", "no tokens are given"},
	{`"log": {"level": "loud"}`, "proxy.log.level", "known are debug, info, warn, error"},
	{`"allowed_origins": ["not an origin"]`, "proxy.allowed_origins[0]", "write for example"},
	{`"profiles": {"p": {"servers": ["nobody"]}}`, "proxy.profiles.p.servers[0]", `there is no server "nobody"`},
	{`"shutdown_grace": 5`, "proxy.shutdown_grace", "a duration has a unit"},
}

// Whoever has made thirty mistakes is told of all of them at once, each in a line with its place and what to do.
func TestCheckTellsThirtyMistakesInThirtyLines(t *testing.T) {
	t.Parallel()
	lines := []string{"{", `"mcpServers": {`}
	want := map[string]mistake{} // by the place in front of the line
	add := func(mistakes []mistake) {
		for i, m := range mistakes {
			comma := ","
			if i == len(mistakes)-1 {
				comma = ""
			}
			lines = append(lines, m.line+comma)
			want[fmt.Sprintf("mcp-proxy.json:%d: %s: ", len(lines), m.path)] = m
		}
	}
	add(serverMistakes)
	lines = append(lines, "},", `"proxy": {`)
	add(proxyMistakes)
	lines = append(lines, "}", "}")
	if len(want) < 30 {
		t.Fatalf("there are %d mistakes", len(want))
	}
	ran := testmcp.Run(t, map[string]string{"mcp-proxy.json": strings.Join(lines, "\n")}, nil, "check")
	told := strings.Split(strings.TrimSpace(ran.Stdout+ran.Stderr), "\n")
	if ran.Code != 1 || len(told) != len(want) {
		t.Errorf("exit code %d and %d lines for %d mistakes", ran.Code, len(told), len(want))
	}
	last := 0
	for _, line := range told {
		place, rest := placeOf(line)
		m, known := want[place]
		if !known || !strings.Contains(rest, m.remedy) {
			t.Errorf("%q\n\twas not expected, or lacks %q", line, m.remedy)
		}
		delete(want, place)
		number, err := strconv.Atoi(strings.Split(line, ":")[1])
		if err != nil || number < last {
			t.Errorf("%q comes after line %d", line, last)
		}
		last = number
	}
	for place, m := range want {
		t.Errorf("nothing is said of %s%s", place, m.line)
	}
}

// placeOf cuts a line behind file, number and path.
func placeOf(line string) (place, rest string) {
	parts := strings.SplitN(line, ": ", 3)
	if len(parts) < 3 {
		return line, ""
	}
	return parts[0] + ": " + parts[1] + ": ", parts[2]
}
