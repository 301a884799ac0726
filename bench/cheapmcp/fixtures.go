package cheapmcp

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Protocol revisions and names of the two eras.
const (
	LegacyVersion = "2025-11-25"
	ModernVersion = "2026-07-28"

	metaProtocolVersion = "io.modelcontextprotocol/protocolVersion"
)

// TextTool is the name of the tool that answers with a text of size bytes.
func TextTool(size int) string { return fmt.Sprintf("text_%d", size) }

// TextSizes are the sizes, in bytes, of the texts on offer.
func TextSizes() []int { return []int{100, 64 << 10} }

// rendered is one result in the form of each era.
type rendered struct{ legacy, modern []byte }

func (r rendered) of(modern bool) []byte {
	if modern {
		return r.modern
	}
	return r.legacy
}

// render writes result for legacy clients and, with modernExtra added, for
// modern ones.
func render(result, modernExtra map[string]any) rendered {
	legacy := mustMarshal(result)
	all := map[string]any{
		"resultType": "complete",
		"_meta":      map[string]any{"io.modelcontextprotocol/serverInfo": serverInfo()},
	}
	for _, part := range []map[string]any{result, modernExtra} {
		for name, value := range part {
			all[name] = value
		}
	}
	return rendered{legacy: legacy, modern: mustMarshal(all)}
}

func mustMarshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // the values are fixed in this file
	}
	return text
}

func serverInfo() map[string]any {
	return map[string]any{"name": "cheap", "version": "1"}
}

func cacheable() map[string]any {
	return map[string]any{"ttlMs": 3_600_000, "cacheScope": "public"}
}

// textOf is size bytes of plain lines, so that the JSON form holds escapes
// like real tool output does.
func textOf(size int) string {
	const line = "2026-01-02 03:04:05 worker \"seven\" finished its piece of the work in 12.5 ms\n"
	return strings.Repeat(line, size/len(line)+1)[:size]
}

func textResult(size int) rendered {
	return render(map[string]any{
		"content": []any{map[string]any{"type": "text", "text": textOf(size)}},
	}, nil)
}

// textTools are the listed forms of the text tools.
func textTools() []any {
	var tools []any
	for _, size := range TextSizes() {
		tools = append(tools, tool(TextTool(size), fmt.Sprintf("Answers with %d bytes of text.", size)))
	}
	return tools
}

// fillerTools are n more tools of ordinary size, to make a list long.
func fillerTools(n int) []any {
	tools := make([]any, n)
	for i := range tools {
		tools[i] = tool(fmt.Sprintf("tool_%04d", i),
			"Looks up records in the store and gives back those that match. Use it when the person names a record or asks for a list of them.")
	}
	return tools
}

func tool(name, description string) map[string]any {
	return map[string]any{
		"name":        name,
		"title":       strings.ReplaceAll(name, "_", " "),
		"description": description,
		"inputSchema": map[string]any{
			"type": "object",
			"properties": map[string]any{
				"query": map[string]any{"type": "string", "description": "What to look for."},
				"limit": map[string]any{"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
			},
			"required": []any{"query"},
		},
		"annotations": map[string]any{"readOnlyHint": true, "openWorldHint": false},
	}
}
