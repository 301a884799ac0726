// Package stdio tests the built program with upstreams that frame badly, talk out of turn, die, hang or are not there
// at all. The tests are in the folders below; here is what they share.
package stdio

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// Way is one way in which an upstream can be reached, together with the era that it speaks.
type Way struct {
	Name string
	// Pipe says that it is a child process.
	Pipe bool
	// Entry serves the registered behaviour for the rest of the test and gives the JSON of its configuration entry; more
	// holds further raw members of it. The behaviour's first arguments are the word of the era, to be read with Era, and
	// the form of its answers: "pipe", "json", "events" or "sse".
	Entry func(t testing.TB, rec *testmcp.Recorder, behaviour string, args []string, more ...string) string
}

// Ways are all of them: child processes and HTTP of both eras, answers as JSON and as events, and HTTP+SSE.
var Ways = []Way{
	{"stdio-legacy", true, child("legacy")},
	{"stdio-modern", true, child("modern")},
	{"http-legacy-json", false, web("legacy", testmcp.AsJSON)},
	{"http-legacy-events", false, web("legacy", testmcp.AsEvents)},
	{"http-modern-json", false, web("modern", testmcp.AsJSON)},
	{"http-modern-events", false, web("modern", testmcp.AsEvents)},
	{"sse", false, oldSSE},
}

// Pipes are the ways that are child processes.
func Pipes() []Way { return Ways[:2] }

// Era reads the first argument of a behaviour.
func Era(args []string) testmcp.Era {
	if len(args) > 0 && args[0] == "modern" {
		return testmcp.Modern
	}
	return testmcp.Legacy
}

// Eras are those of clients, by name.
var Eras = map[string]testmcp.Era{"legacy": testmcp.Legacy, "modern": testmcp.Modern}

func child(era string) func(testing.TB, *testmcp.Recorder, string, []string, ...string) string {
	return func(_ testing.TB, rec *testmcp.Recorder, behaviour string, args []string, more ...string) string {
		return rec.Entry(behaviour, append([]string{era, "pipe"}, args...), more...)
	}
}

func web(era string, form testmcp.Answers) func(testing.TB, *testmcp.Recorder, string, []string, ...string) string {
	return func(t testing.TB, rec *testmcp.Recorder, behaviour string, args []string, more ...string) string {
		t.Helper()
		srv := testmcp.Registered(behaviour, append([]string{era, map[testmcp.Answers]string{testmcp.AsJSON: "json", testmcp.AsEvents: "events"}[form]}, args...)...)
		return testmcp.ServeHTTP(t, srv, testmcp.HTTPOptions{Recorder: rec, Answers: form, Event: event}).Entry(more...)
	}
}

func oldSSE(t testing.TB, rec *testmcp.Recorder, behaviour string, args []string, more ...string) string {
	t.Helper()
	srv := testmcp.Registered(behaviour, append([]string{"legacy", "sse"}, args...)...)
	return testmcp.ServeSSE(t, srv, testmcp.SSEOptions{Recorder: rec, Event: event}).Entry(append(more, `"type":"sse"`)...)
}

// EntryWith is Recorder.Entry for a child with further variables in its environment.
func EntryWith(rec *testmcp.Recorder, env map[string]string, behaviour string, args []string, more ...string) string {
	command, arguments, own := rec.Command(behaviour, args...)
	maps.Copy(own, env)
	return Entry(command, arguments, own, more...)
}

// Entry gives the JSON of a configuration entry for a command; more holds further raw members.
func Entry(command string, args []string, env map[string]string, more ...string) string {
	b, err := json.Marshal(map[string]any{"command": command, "args": append([]string{}, args...), "env": env})
	if err != nil {
		panic(err)
	}
	return strings.Join(append([]string{string(b[:len(b)-1])}, more...), ",") + "}"
}

// event writes a frame as an event. A frame with line breaks takes several lines of data.
func event(_ string, frame []byte) []byte {
	lines := strings.NewReplacer("\r\n", "\ndata: ", "\n", "\ndata: ", "\r", "\ndata: ")
	return []byte("event: message\ndata: " + lines.Replace(string(frame)) + "\n\n")
}

// UpstreamStatus gives what the status page says of one upstream, nil where it is not there.
func UpstreamStatus(p *testmcp.Proxy, id string) testmcp.Raw {
	for _, u := range p.Status().At("upstreams").Items() {
		if u.At("id").Str() == id {
			return u
		}
	}
	return nil
}

// LogRecords gives the records of the proxy's log with this message.
func LogRecords(p *testmcp.Proxy, msg string) []testmcp.Raw {
	var out []testmcp.Raw
	for _, line := range p.Log() {
		if r := testmcp.Raw(line); r.At("msg").Str() == msg {
			out = append(out, r)
		}
	}
	return out
}
