package testmcp

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// names gives the names of the breaches found, each once, and allows them for the rest of the test.
func names(r *Recorder) []string {
	var out []string
	for _, v := range r.Violations() {
		name, _, _ := strings.Cut(v, ":")
		out = append(out, name)
	}
	r.Allow(out...)
	slices.Sort(out)
	return slices.Compact(out)
}

func TestBreachesOverHTTPAreFound(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":90,"method":"tools/call","params":{"name":"echo","arguments":{}}}`
	modern := (&Client{Era: Modern, Version: Rev2607, Capabilities: "{}"}).Body("91", "tools/call", `{"name":"echo","arguments":{}}`)
	for name, tt := range map[string]struct {
		era    Era
		body   string
		header []string // name, value; an empty value removes
	}{
		AcceptHeader:   {Legacy, call, []string{"Accept", "application/json"}},
		ContentHeader:  {Legacy, call, []string{"Content-Type", "text/plain"}},
		VersionHeader:  {Legacy, call, []string{"Mcp-Protocol-Version", Rev2503}},
		BadUTF8:        {Legacy, strings.Replace(call, "echo", "ec\xffho", 1), nil},
		LineBreak:      {Legacy, strings.Replace(call, `"params"`, "\n\"params\"", 1), nil},
		NotJSON:        {Legacy, "[" + call + "]", nil},
		NotJSONRPC:     {Legacy, strings.Replace(call, "2.0", "1.0", 1), nil},
		BadID:          {Legacy, strings.Replace(call, "90", "1.5", 1), nil},
		IDReused:       {Legacy, strings.Replace(call, "90", "1", 1), nil},
		StrayAnswer:    {Legacy, `{"jsonrpc":"2.0","id":"x","result":{}}`, nil},
		StrayCancel:    {Legacy, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, nil},
		MethodHeader:   {Modern, modern, []string{"Mcp-Name", "other"}},
		SessionHeader:  {Modern, modern, []string{"Mcp-Session-Id", "x"}},
		RemovedMethod:  {Modern, strings.ReplaceAll(modern, "tools/call", "logging/setLevel"), []string{"Mcp-Method", "logging/setLevel"}},
		MissingVersion: {Modern, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil},
		CancelOverHTTP: {Modern, strings.ReplaceAll(strings.ReplaceAll(modern, `"id":91,`, ""), "tools/call", "notifications/cancelled"), []string{"Mcp-Method", "notifications/cancelled"}},
	} {
		c, h := web(t, tt.era, HTTPOptions{})
		head := c.HeadersFor("tools/call", `{"name":"echo"}`)
		for pair := range slices.Chunk(tt.header, 2) {
			head.Set(pair[0], pair[1])
		}
		if got := names(h.Rec); len(got) != 0 {
			t.Fatalf("%s: found before it was there: %v", name, got)
		}
		c.Do(http.MethodPost, tt.body, head).Final()
		if got := names(h.Rec); !slices.Contains(got, name) {
			t.Errorf("%s: found %v", name, got)
		}
	}
}

func TestBreachesOnAPipeAreFound(t *testing.T) {
	const open = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`
	const ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	hang := func(id, token string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"hang","_meta":{"progressToken":` + token + `}}}`
	}
	for name, lines := range map[string][]string{
		"":             {open, ready, hang("1", "1"), hang(`"1"`, `"1"`), `{"jsonrpc":"2.0","id":2,"method":"ping"}`},
		TooEarly:       {open, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
		IDInFlight:     {open, ready, hang("1", "1"), hang("1", "2")},
		TokenInFlight:  {open, ready, hang("1", "1"), hang("2", "1")},
		ModernToLegacy: {open, ready, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"` + metaLogLevel + `":"info"}}}`},
		StrayCancel:    {open, ready, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`},
		LineBreak:      {open + "\r", ready},
	} {
		c, rec := child(t, Legacy, "basic")
		// Initialize must have been answered before the rest is sent, or all of it is too early.
		c.Write(lines[0] + "\n")
		c.Final("0")
		c.Write(strings.Join(lines[1:], "\n") + "\n")
		rec.WaitN(t, len(lines), Is(In))
		got := names(rec)
		if name == "" && len(got) != 0 || name != "" && !slices.Equal(got, []string{name}) {
			t.Errorf("%q: found %v", name, got)
		}
	}
}

func TestRecorderKeepsRestartsApart(t *testing.T) {
	rec := NewRecorder(t)
	for range 3 {
		command, args, env := rec.Command("basic")
		var list []string
		for k, v := range env {
			list = append(list, k+"="+v)
		}
		c := NewPipeClient(t, Legacy, list, command, args...)
		c.Open() // each process begins with the same ids, which is no breach
		if _, err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	rec.WaitGone(t)
	if starts, exits := rec.Count(Is(Start)), rec.Count(Is(Exit)); starts != 3 || exits != 3 {
		t.Errorf("%d starts, %d exits", starts, exits)
	}
	entry := Raw(rec.Entry("basic", []string{"x"}, `"instances":2`))
	if entry.At("instances").Int() != 2 || entry.At("args", 0).Str() != "x" || entry.At("env", envChild).Str() != "basic" {
		t.Errorf("entry %s", entry)
	}
}

func TestChildrenBehindLaunchers(t *testing.T) {
	for name, script := range map[string]string{"shells": BelowShells, "out of group": OutOfGroup} {
		rec := NewRecorder(t)
		e := Raw(rec.EntryVia(script, "basic", []string{"deep"}))
		var env []string
		for k, v := range e.At("env").Members() {
			env = append(env, k+"="+Raw(v).Str())
		}
		c := NewPipeClient(t, Legacy, env, e.At("command").Str(), strs(e.At("args"))...)
		if got := c.Open().Opened.Result().At("serverInfo", "name").Str(); got != "deep" {
			t.Errorf("%s: %q answers", name, got)
		}
		pid := rec.Live()[0]
		if pid == c.PID() || !slices.Contains(Descendants(c.PID()), pid) {
			t.Errorf("%s: %d is not below %d", name, pid, c.PID())
		}
		if _, err := c.Close(); err != nil {
			t.Error(err)
		}
		rec.WaitGone(t)
	}
}
