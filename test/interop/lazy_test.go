package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/harness"
)

// manyTools is how many tools the server has that no model could take in.
const manyTools = 300

var _ = testmcp.Register("company", func([]string) *testmcp.Server {
	verbs := []string{"create", "list", "get", "update", "delete", "search", "export", "archive", "assign", "approve"}
	things := []string{"invoice", "customer", "ticket", "shipment", "contract", "budget"}
	s := &testmcp.Server{}
	for i := range manyTools {
		verb, thing := verbs[i%len(verbs)], things[i/len(verbs)%len(things)]
		name := fmt.Sprintf("%s_%s_%03d", verb, thing, i)
		definition := fmt.Sprintf(`{"name":%q,"description":"Use this to %s a %s of department %d. Returns the %s with all of its fields, or says why it could not be done.",`+
			`"inputSchema":{"type":"object","properties":{"id":{"type":"string","description":"The id of the %s, as %s_list gives it."},`+
			`"fields":{"type":"array","items":{"type":"string"},"description":"The fields that are wanted; all without."},`+
			`"limit":{"type":"integer","minimum":1,"maximum":1000,"default":50,"description":"At most so many."},`+
			`"dry_run":{"type":"boolean","default":false,"description":"Only say what would be done."}},"required":["id"],"additionalProperties":false}}`,
			name, verb, thing, i, thing, thing, thing)
		s.Tools = append(s.Tools, testmcp.Tool{Definition: definition, Handle: func(c *testmcp.Call) { c.Text(name + " of " + c.Args("id").Str()) }})
	}
	return s
})

// The views that clients see: some servers, and how much of their tools is listed.
var (
	viewServers = map[string][]string{"office": {"everything", "files", "memory", "thinking"}, "company": {"company"}, "all": {"everything", "files", "memory", "thinking", "company"}}
	viewModes   = map[string]any{"whole": false, "names": true, "search": "search_only"}
)

// newLazyStage starts the proxy with the views, before well-known servers and the one with many tools.
func newLazyStage(t *testing.T) stage {
	t.Helper()
	npm := os.Getenv("MCP_PROXY_INTEROP")
	if npm == "" {
		t.Skip("MCP_PROXY_INTEROP does not name the folder of the npm packages; make interop sets it")
	}
	work := t.TempDir()
	s := stage{npm: npm, files: filepath.Join(work, "files")}
	if err := os.Mkdir(s.files, 0o755); err != nil {
		t.Fatal(err)
	}
	npx := func(args ...string) map[string]any {
		return map[string]any{"command": "npx", "args": append([]string{"--offline", "--no", "--prefix", npm, "--"}, args...)}
	}
	memory := npx("mcp-server-memory")
	memory["env"] = map[string]string{"MEMORY_FILE_PATH": filepath.Join(work, "memory.jsonl")}
	profiles := map[string]any{
		"readers": map[string]any{"servers": []string{"files"}, "tool_policy": map[string]any{"effects": []string{"read_only"}}, "naming": map[string]any{"mode": "none"}, "instructions": "Only read."},
	}
	for group, servers := range viewServers {
		for mode, lazy := range viewModes {
			profiles[group+"-"+mode] = map[string]any{"servers": servers, "lazy": lazy}
		}
	}
	text, err := json.Marshal(map[string]any{
		"mcpServers": map[string]any{"everything": npx("mcp-server-everything"), "files": npx("mcp-server-filesystem", s.files), "memory": memory,
			"thinking": npx("mcp-server-sequential-thinking"), "company": json.RawMessage(testmcp.NewRecorder(t).Entry("company", nil))},
		"proxy": map[string]any{"state_dir": filepath.Join(work, "state"), "startup_grace": readyTimeout.String(), "profiles": profiles},
	})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(work, "mcp-proxy.json")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	binary, err := harness.BuildProxy(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	s.url = startProxy(t, binary, work, config)
	return s
}

// at is the stage as a client of a view sees it.
func (s stage) at(view string) stage {
	s.url = strings.TrimSuffix(s.url, "/mcp") + "/profiles/" + view + "/mcp"
	return s
}

func TestLazyViewsAndProfiles(t *testing.T) {
	s := newLazyStage(t)
	s.awaitList(t, "all-whole", func(list string) bool {
		return strings.Contains(list, "everything__simulate-research-query") && strings.Contains(list, "company__") && strings.Contains(list, "files__") &&
			strings.Contains(list, "memory__") && strings.Contains(list, "thinking__")
	})
	find := func(query string) call { return call{"search_tools", map[string]any{"query": query}} }
	through := call{"call_tool", map[string]any{"name": "company__get_customer_012", "arguments": map[string]any{"id": "through"}}}
	direct := call{"company__get_customer_012", map[string]any{"id": "direct"}}
	for _, c := range []struct {
		name  string
		visit client
	}{
		{"go-sdk modern", goSDK("")}, {"go-sdk legacy", goSDK(legacyRevision)},
		{"typescript v1", typescript("v1.mjs")}, {"typescript v2 legacy", typescript("v2.mjs", "legacy")}, {"typescript v2 modern", typescript("v2.mjs", "auto")},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), visitTimeout)
			defer cancel()
			visitOf := func(calls ...call) visit {
				return visit{Calls: calls, Prompt: wanted().Prompt, Resource: wanted().Resource}
			}
			whole := c.visit(ctx, t, s.at("all-whole"), visitOf(direct))
			names := c.visit(ctx, t, s.at("all-names"), visitOf(find("customer get 012"), direct))
			search := c.visit(ctx, t, s.at("all-search"), visitOf(find("customer get 012"), direct, through))
			if want := append(slices.Clone(whole.Tools), "search_tools"); !slices.Equal(names.Tools, want) {
				t.Errorf("lazily %d tools are listed and not %d", len(names.Tools), len(want))
			}
			if !slices.Equal(search.Tools, []string{"search_tools", "call_tool"}) {
				t.Errorf("with search_only %q are listed", search.Tools)
			}
			for _, got := range []seen{names, search} {
				found := testmcp.Raw(got.Texts["search_tools"])
				if found.At("tools", 0, "name").Str() != direct.Name || found.At("tools", 0, "input_schema", "required", 0).Str() != "id" {
					t.Errorf("found: %.300s", found)
				}
			}
			for _, got := range []seen{whole, names, search} {
				if got.Texts[direct.Name] != "get_customer_012 of direct" {
					t.Errorf("a direct call gives %q", got.Texts[direct.Name])
				}
			}
			if search.Texts["call_tool"] != "get_customer_012 of through" {
				t.Errorf("call_tool gives %q", search.Texts["call_tool"])
			}
		})
	}
	t.Run("readers", func(t *testing.T) { testReaders(t, s.at("readers")) })
	t.Run("tokens", func(t *testing.T) { testTokens(t, s) })
}

// testReaders looks at a profile with a policy and names of its own.
func testReaders(t *testing.T, s stage) {
	session, err := dialGo(t.Context(), s, legacyRevision, planOf("a visitor", "", nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closeSession(t, session)
	if got := session.InitializeResult().Instructions; !strings.HasPrefix(got, "Only read.") {
		t.Errorf("the instructions are %q", got)
	}
	reads := 0
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if tool.Annotations == nil || !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s is listed", tool.Name)
		}
		reads++
	}
	if reads < 5 {
		t.Errorf("%d tools are listed", reads)
	}
	if _, err := callGo(t.Context(), session, call{"write_file", map[string]any{"path": s.files + "/x", "content": "x"}}); err == nil || !strings.Contains(err.Error(), "unknown tool: write_file") {
		t.Errorf("a tool that writes: %v", err)
	}
	if text, err := callGo(t.Context(), session, call{"list_allowed_directories", map[string]any{}}); err != nil || !strings.Contains(text, s.files) {
		t.Errorf("a tool that reads: %q, %v", text, err)
	}
}

// awaitList waits until a list is as it should be.
func (s stage) awaitList(t *testing.T, view string, good func(list string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		list := s.rawTools(ctx, t, view)
		if good(string(list)) {
			tick.Stop()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the list stays %.2000s", list)
		}
	}
}

// rawTools gives the tools of a list as they came.
func (s stage) rawTools(ctx context.Context, t *testing.T, view string) testmcp.Raw {
	t.Helper()
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modernRevision + `","io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.at(view).url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": modernRevision, "Mcp-Method": "tools/list"} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return testmcp.Raw(b).At("result", "tools")
}

// testTokens counts what the lists cost a model.
func testTokens(t *testing.T, s stage) {
	texts := map[string]string{}
	tools := map[string]int{}
	for group := range viewServers {
		for mode := range viewModes {
			list := s.rawTools(t.Context(), t, group+"-"+mode)
			texts[group+"-"+mode] = string(list)
			if mode == "whole" {
				tools[group] = len(list.Items())
			}
		}
	}
	counts := countTokens(t, s, texts)
	t.Logf("tokens of the lists (o200k_base):")
	for _, group := range slices.Sorted(maps.Keys(viewServers)) {
		whole, names, search := counts[group+"-whole"], counts[group+"-names"], counts[group+"-search"]
		t.Logf("%s, %d tools: whole %d, true %d, search_only %d", group, tools[group], whole, names, search)
		if names >= whole || search > 300 {
			t.Errorf("the lists of %s are not smaller", group)
		}
	}
}

func countTokens(t *testing.T, s stage, texts map[string]string) map[string]int {
	t.Helper()
	dir := t.TempDir()
	layScripts(t, s, dir)
	node, err := harness.Node(s.npm)
	if err != nil {
		t.Fatal(err)
	}
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(dir, "tokens.mjs"))
	cmd.Stdin = strings.NewReader(string(in))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("counting: %v", err)
	}
	var counts map[string]int
	if err := json.Unmarshal(out, &counts); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return counts
}
