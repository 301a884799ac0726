package pins

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// recordFormat is the format of what is kept; what has another is not read.
const recordFormat = 1

// maxKeptText bounds the text that is kept of one definition; of a longer one only the hash is.
const maxKeptText = 256 << 10

// record is what is kept of one server.
type record struct {
	Format int    `json:"format"`
	Server string `json:"server"` // for people who look into the file
	// Known says that a whole list has been seen: from then on nothing is trusted on first use.
	Known bool            `json:"known"`
	Tools map[string]tool `json:"tools"`
}

// tool is what is kept of one tool.
type tool struct {
	Approved *version `json:"approved,omitempty"`
	// Waiting is what the server was last heard to offer in its place; nil where that is what is approved.
	Waiting *version `json:"waiting,omitempty"`
}

// version is one definition of a tool.
type version struct {
	Hash       string          `json:"hash"`
	Definition json.RawMessage `json:"definition,omitempty"` // absent where it is too long
	At         time.Time       `json:"at"`                   // when it was approved, or was first seen
}

func newVersion(d Definition, now time.Time) *version {
	v := &version{Hash: d.Hash, At: now.UTC().Truncate(time.Second)}
	if len(d.Text) <= maxKeptText {
		v.Definition = d.Text
	}
	return v
}

func (v *version) text() []byte {
	if v == nil {
		return nil
	}
	return v.Definition
}

var errFormat = errors.New("it has another format")

// decode reads what is kept; without anything it is a server that nothing is known of.
func decode(b []byte) (*record, error) {
	if len(b) == 0 {
		return &record{Format: recordFormat, Tools: map[string]tool{}}, nil
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, err
	}
	if r.Format != recordFormat {
		return nil, errFormat
	}
	if r.Tools == nil {
		r.Tools = map[string]tool{}
	}
	return &r, nil
}

func (r *record) encode(server string) ([]byte, error) {
	r.Server = server
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return nil, fmt.Errorf("writing approvals: %w", err)
	}
	return append(b, '\n'), nil
}

func (r *record) clone() *record {
	c := *r
	c.Tools = maps.Clone(r.Tools)
	return &c
}

// waiting lists what is not approved, by name.
func (r *record) waiting() []Waiting {
	var out []Waiting
	for _, name := range slices.Sorted(maps.Keys(r.Tools)) {
		if t := r.Tools[name]; t.Waiting != nil {
			out = append(out, t.describe(name))
		}
	}
	return out
}

func (t tool) describe(name string) Waiting {
	w := Waiting{Tool: name, New: t.Approved == nil, Hash: t.Waiting.Hash, Since: t.Waiting.At, old: t.Approved.text(), text: t.Waiting.text()}
	if !w.New {
		w.Members = []string{"a definition that is too long to be compared"}
		if len(w.old) > 0 && len(w.text) > 0 {
			w.Members = Members(w.Diff())
		}
	}
	return w
}

// Waiting is a tool that is not offered until somebody approves it.
type Waiting struct {
	Tool string
	// New says that no definition of it has ever been approved; otherwise it has changed.
	New     bool
	Hash    string   // of what the server offers now
	Members []string // that have changed
	Since   time.Time

	old, text []byte
}

// Diff tells what is different from what is approved.
func (w *Waiting) Diff() []Difference { return Diff(w.old, w.text) }

// Whole says whether the definitions are known, and not only their hashes.
func (w *Waiting) Whole() bool { return len(w.text) > 0 && (w.New || len(w.old) > 0) }

// Mark is enough of the hash to name it.
func (w *Waiting) Mark() string { return w.Hash[:min(len(w.Hash), markLength)] }

const markLength = 12
