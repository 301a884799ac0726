package config

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/configuration.md anew")

const referencePage = "../../docs/configuration.md"

// docRow is one key for the reference.
type docRow struct{ key, typ, def, doc, example string }

type docTable struct {
	name string
	path string // where the object stands
	rows []docRow
}

func tableOf[T any](name, path string, fields []field[T], defaults *T) docTable {
	t := docTable{name: name, path: path}
	for _, f := range fields {
		def := f.def
		if def == "" && f.value != nil {
			def = docDefault(f.value(defaults))
		}
		if def == "" {
			def = "none"
		}
		t.rows = append(t.rows, docRow{f.key, f.typ, def, f.doc, f.example})
	}
	return t
}

func docDefault(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []string:
		return strings.Join(v, ", ")
	case string:
		if v == "" {
			return ""
		}
		return "`" + v + "`"
	default:
		return "`" + scalarText(v) + "`"
	}
}

func referenceTables() []docTable {
	noVariables := func(string) (string, bool) { return "", false }
	p, _ := newProxy(noVariables)
	d := newDraft("")
	_, agent := newAgent("", "")
	return []docTable{
		tableOf("server", "mcpServers.a", serverFields, d),
		tableOf("auth", "mcpServers.a.auth", signInFields, &SignIn{Timeout: defaultTokenTimeout}),
		tableOf("restart", "mcpServers.a.restart", restartFields, &d.Restart),
		tableOf("limits", "mcpServers.a.limits", childLimitFields, &d.Limits),
		tableOf("elicitation", "mcpServers.a.elicitation", elicitationFields, &d.Elicitation),
		tableOf("tasks", "mcpServers.a.tasks", tasksFields, &d.Tasks),
		tableOf("tools", "mcpServers.a.tools.search", toolFields, &ToolOverride{}),
		tableOf("tool_policy", "mcpServers.a.tool_policy", policyFields, &d.ToolPolicy),
		tableOf("resource_policy", "mcpServers.a.resource_policy", resourceFields, &d.ResourcePolicy),
		tableOf("prompt_policy", "mcpServers.a.prompt_policy", promptFields, &d.PromptPolicy),
		tableOf("lazy", "mcpServers.a.lazy", lazyFields, NewLazy(LazyOn)),
		tableOf("agents", "agents.a", agentFields, agent),
		tableOf("proxy", "proxy", proxyFields, &p),
		tableOf("proxy.server", "proxy.server", infoFields, &p.Server),
		tableOf("proxy.naming", "proxy.naming", namingFields, &p.Naming),
		tableOf("proxy.profiles", "proxy.profiles.readers", profileFields, &Profile{}),
		tableOf("proxy.auth", "proxy.auth", authFields, &p.Auth),
		tableOf("proxy.auth.tokens", "proxy.auth.tokens[]", tokenFields, &Token{}),
		tableOf("proxy.limits", "proxy.limits", limitFields, &p.Limits),
		tableOf("proxy.kept_results", "proxy.kept_results", keptResultFields, &p.KeptResults),
		tableOf("proxy.sessions", "proxy.sessions", sessionFields, &p.Sessions),
		tableOf("proxy.log", "proxy.log", logFields, &p.Log),
	}
}

func (t docTable) markdown() string {
	var b strings.Builder
	b.WriteString("| key | meaning | type | default | example |\n|---|---|---|---|---|\n")
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | `%s` |\n", r.key, r.doc, r.typ, r.def, r.example)
	}
	return b.String()
}

func spellingTable() string {
	var b strings.Builder
	b.WriteString("| written | means | remark |\n|---|---|---|\n")
	for _, s := range spellings {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", s.from, s.to, s.remark)
	}
	return b.String()
}

func codeList(words []string) string { return "`" + strings.Join(words, "`, `") + "`\n" }

// blocks are the parts of the page that come from the code.
func blocks() map[string]string {
	out := map[string]string{
		"spellings": spellingTable(), "foreign": codeList(foreign), "foreign_auth": codeList(foreignAuth), "foreign_top": codeList(foreignTop),
		"files": codeList(FileNames), "roots": codeList(roots),
	}
	for _, t := range referenceTables() {
		out[t.name] = t.markdown()
	}
	return out
}

var blockMark = regexp.MustCompile(`(?s)(<!-- begin ([a-z._]+) -->\n)(.*?)(<!-- end -->\n)`)

// TestReferenceIsComplete compares the page with the tables that read the configuration. After a change of the tables
// run the test with -update.
func TestReferenceIsComplete(t *testing.T) {
	page, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	want := blocks()
	fresh := blockMark.ReplaceAllStringFunc(string(page), func(block string) string {
		m := blockMark.FindStringSubmatch(block)
		text, known := want[m[2]]
		if !known {
			t.Errorf("the page has a block %q that the code knows nothing of", m[2])
		}
		delete(want, m[2])
		return m[1] + text + m[4]
	})
	for name := range want {
		t.Errorf("the page has no block %q", name)
	}
	if fresh == string(page) {
		return
	}
	if !*update {
		t.Fatal("docs/configuration.md is not what the code says; run go test ./internal/config -update")
	}
	if err := os.WriteFile(referencePage, []byte(fresh), 0o644); err != nil {
		t.Fatal(err)
	}
}
