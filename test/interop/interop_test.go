package interop

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

// visitTimeout bounds all that one client does.
const visitTimeout = 2 * time.Minute

// The two revisions that stand for the two eras.
const (
	legacyRevision = "2025-11-25"
	modernRevision = "2026-07-28"
)

// visit is what every client does besides listing.
type visit struct {
	Calls    []call `json:"calls"`
	Prompt   string `json:"prompt"`
	Resource string `json:"resource"`
}

type call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// seen is what a client reports of its visit.
type seen struct {
	Protocol string            `json:"protocol"` // empty from a client that does not tell
	Tools    []string          `json:"tools"`
	Prompts  []string          `json:"prompts"`
	Texts    map[string]string `json:"texts"` // by the name of the called tool
	Prompt   string            `json:"prompt"`
	Resource string            `json:"resource"`
}

// client makes a visit at the MCP server at url.
type client func(ctx context.Context, t *testing.T, s stage, v visit) seen

// everythingTools are the tools that server-everything offers to a client with all capabilities but tasks.
var everythingTools = []string{
	"echo", "get-annotated-message", "get-env", "get-resource-links", "get-resource-reference",
	"get-structured-content", "get-sum", "get-tiny-image", "gzip-file-as-resource", "toggle-simulated-logging",
	"toggle-subscriber-updates", "trigger-long-running-operation", "get-roots-list", "trigger-elicitation-request",
	"trigger-url-elicitation", "trigger-sampling-request", "simulate-research-query",
}

func TestInterop(t *testing.T) {
	s := newStage(t)
	waitForTools(t, s, planOf("a visitor", "", nil), visit{Prompt: wanted().Prompt, Resource: wanted().Resource}, missingTools)
	clients := []struct {
		name     string
		protocol string
		visit    client
	}{
		{"go-sdk modern", modernRevision, goSDK("")},
		{"go-sdk legacy", legacyRevision, goSDK(legacyRevision)},
		{"typescript v1", legacyRevision, typescript("v1.mjs")},
		{"typescript v2 legacy", legacyRevision, typescript("v2.mjs", "legacy")},
		{"typescript v2 modern", modernRevision, typescript("v2.mjs", "auto")},
		{"inspector legacy", "", inspector("legacy")},
		{"inspector modern", "", inspector("modern")},
	}
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), visitTimeout)
			defer cancel()
			got := c.visit(ctx, t, s, wanted())
			if got.Protocol != c.protocol {
				t.Errorf("negotiated revision %q, want %q", got.Protocol, c.protocol)
			}
			checkSeen(t, s, got)
		})
	}
	t.Run("talk", func(t *testing.T) { testTalk(t, s) })
	t.Run("resume", func(t *testing.T) { testResume(t, s) })
	t.Run("own", func(t *testing.T) { testOwn(t, s) })
}

// wanted calls a tool of each server and uses a prompt and a resource of the one that has some.
func wanted() visit {
	return visit{
		Calls: []call{
			{"everything__echo", map[string]any{"message": "good day"}},
			{"everything__get-sum", map[string]any{"a": 2, "b": 40}},
			{"files__list_allowed_directories", map[string]any{}},
			{"memory__read_graph", map[string]any{}},
			{"greeter__greet", map[string]any{"name": "Ada"}},
			{"oldgreeter__greet", map[string]any{"name": "Grace"}},
		},
		Prompt:   "everything__simple-prompt",
		Resource: "demo://resource/static/document/features.md",
	}
}

func checkSeen(t *testing.T, s stage, got seen) {
	t.Helper()
	if missing := missingTools(got.Tools); len(missing) > 0 {
		t.Errorf("tools not listed: %q", missing)
	}
	if !slices.Contains(got.Prompts, wanted().Prompt) {
		t.Errorf("prompts %q are without %s", got.Prompts, wanted().Prompt)
	}
	texts := map[string]string{
		"everything__echo":                "Echo: good day",
		"everything__get-sum":             "42",
		"files__list_allowed_directories": s.files,
		"memory__read_graph":              "entities",
		"greeter__greet":                  "Hello, Ada!",
		"oldgreeter__greet":               "Hello, Grace!",
	}
	for name, want := range texts {
		if !strings.Contains(got.Texts[name], want) {
			t.Errorf("%s answered %q, want %q in it", name, got.Texts[name], want)
		}
	}
	if !strings.Contains(got.Prompt, "simple prompt") {
		t.Errorf("prompt = %q", got.Prompt)
	}
	if !strings.Contains(got.Resource, "Features") {
		t.Errorf("resource = %.80q", got.Resource)
	}
}

// missingTools gives the tools that a visitor must see and did not.
func missingTools(tools []string) []string {
	want := []string{
		"files__read_text_file", "files__list_allowed_directories", "memory__read_graph", "memory__create_entities",
		"greeter__greet", "oldgreeter__greet",
	}
	for _, name := range everythingTools {
		want = append(want, "everything__"+name)
	}
	return without(tools, want)
}

// without gives those that are wanted and not there.
func without(names, wanted []string) (missing []string) {
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			missing = append(missing, name)
		}
	}
	return missing
}
