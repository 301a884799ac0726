package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// Imported is a configuration made of what other clients have.
type Imported struct {
	Text  []byte   // with one object, mcpServers; each entry as the client has it
	Notes []string // what was left out or renamed, and where things came from
}

// Import gathers the servers that the files of these clients name. Where two have the same name, the second gets the
// client's name behind it, or is left out if it is the same server. An entry that leads to a proxy, as connect writes it,
// is left out.
func Import(names []string, h Home) (*Imported, error) {
	out := &Imported{}
	servers := map[string]json.RawMessage{}
	for _, client := range names {
		t, err := targetOf(client)
		if err != nil {
			return nil, err
		}
		file := t.file(h)
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.title, err)
		}
		found, err := config.ServersIn(text, t.object, t.toml)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", t.title, file, err)
		}
		out.note("%s: %d servers in %s", t.title, len(found), file)
		for _, id := range slices.Sorted(maps.Keys(found)) {
			out.add(servers, client, id, found[id])
		}
	}
	b, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, b, "", "  "); err != nil {
		return nil, err
	}
	out.Text = append(text.Bytes(), '\n')
	return out, nil
}

func (i *Imported) note(format string, args ...any) {
	i.Notes = append(i.Notes, fmt.Sprintf(format, args...))
}

func (i *Imported) add(servers map[string]json.RawMessage, client, id string, entry json.RawMessage) {
	if id == DefaultName || leadsToProxy(entry) {
		i.note("%s of %s leads to an mcp-proxy and is left out", id, client)
		return
	}
	name := id
	if old, ok := servers[id]; ok {
		if bytes.Equal(compact(old), compact(entry)) {
			i.note("%s of %s is there already", id, client)
			return
		}
		for name = id + "-" + client; servers[name] != nil; name += "-2" {
		}
		i.note("%s of %s is another server of that name and becomes %s", id, client, name)
	}
	servers[name] = entry
}

// leadsToProxy says whether an entry is one that connect writes.
func leadsToProxy(entry json.RawMessage) bool {
	var e struct {
		Command string
		Args    []string
	}
	if json.Unmarshal(entry, &e) != nil || e.Command == "" {
		return false
	}
	base := e.Command[strings.LastIndexAny(e.Command, `/\`)+1:]
	return strings.TrimSuffix(base, ".exe") == "mcp-proxy" && slices.Contains(e.Args, "stdio")
}

func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // it was parsed
	return b.Bytes()
}
