package pins

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func define(t *testing.T, text string) Definition {
	t.Helper()
	d, err := Define([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWhatCountsAsTheSameDefinition(t *testing.T) {
	const base = `{"name":"a","description":"é <b>","inputSchema":{"type":"object","required":["x","y"],"properties":{"x":{"default":1.0}}}}`
	for _, tt := range []struct {
		what, text string
		same       bool
	}{
		{"white space, order and spelling", ` { "inputSchema" : {"properties":{"x":{"default":1.0}},"required":["y","x"],"type":"object"},
			"description":"\u00e9 \u003cb>","name":"a"}`, true},
		{"members that nothing depends on", `{"_meta":{"at":1},"icons":[],"execution":{},"name":"a","description":"é <b>","inputSchema":{"type":"object","required":["x","y"],"properties":{"x":{"default":1.0}}}}`, true},
		{"another description", strings.Replace(base, "é", "e", 1), false},
		{"a title", strings.Replace(base, `"name"`, `"title":"A","name"`, 1), false},
		{"annotations", strings.Replace(base, `"name"`, `"annotations":{"readOnlyHint":true},"name"`, 1), false},
		{"an output schema", strings.Replace(base, `"name"`, `"outputSchema":{"type":"object"},"name"`, 1), false},
		{"a number of another spelling", strings.Replace(base, "1.0", "1", 1), false},
		{"a required argument", strings.Replace(base, `["x","y"]`, `["x"]`, 1), false},
		{"a second description", strings.Replace(base, `"inputSchema"`, `"description":"evil","inputSchema"`, 1), false},
		{"a second description before the first", strings.Replace(base, `"description"`, `"description":"evil","description"`, 1), false},
		{"an invisible character", strings.Replace(base, "é", "é\\u200b", 1), false},
	} {
		if same := define(t, base).Hash == define(t, tt.text).Hash; same != tt.same {
			t.Errorf("%s: same is %v", tt.what, same)
		}
	}
}

func TestWhatIsNoToolIsRefused(t *testing.T) {
	for _, text := range []string{``, `[]`, `"x"`, `{`, `{"name":`, `{"name":[}`, strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1)} {
		if d, err := Define([]byte(text)); err == nil {
			t.Errorf("%.20q is defined as %s", text, d.Text)
		}
	}
}

func FuzzDefine(f *testing.F) {
	f.Add([]byte(`{"name":"a","description":"\ud800","inputSchema":{"required":["b","a"],"required":[1]}}`), []byte(`{"name":"a"}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		d, err := Define(a)
		if err != nil {
			return
		}
		again, err := Define(d.Text)
		if err != nil || again.Hash != d.Hash || !json.Valid(d.Text) {
			t.Fatalf("%s is defined again as %s (%v)", d.Text, again.Text, err)
		}
		other, err := Define(b)
		if err == nil && (other.Hash == d.Hash) != (len(Diff(d.Text, other.Text)) == 0) {
			t.Fatalf("%s and %s: the difference is %v", d.Text, other.Text, Diff(d.Text, other.Text))
		}
	})
}

func TestDiffNamesMembers(t *testing.T) {
	old := define(t, `{"name":"a","description":"x","inputSchema":{"properties":{"p":{"description":"1","type":"string"},"q":{}}}}`)
	now := define(t, `{"name":"a","description":"y","inputSchema":{"properties":{"p":{"description":"2","type":"string"},"r":{}}},"annotations":{"readOnlyHint":true}}`)
	want := []string{"description", "annotations", "inputSchema.properties.p.description", "inputSchema.properties.q", "inputSchema.properties.r"}
	if got := Members(Diff(old.Text, now.Text)); !slices.Equal(got, want) {
		t.Errorf("%q differ, not %q", got, want)
	}
	var many []Difference
	for i := range 13 {
		many = append(many, Difference{Path: fmt.Sprint(i)})
	}
	if got := Members(many); len(got) != 11 || got[10] != "3 more" {
		t.Errorf("many are named as %q", got)
	}
}

// memory is where records are kept in tests.
type memory struct {
	files map[string][]byte
	fails error
}

func (m *memory) ReadApprovals(server string) ([]byte, error) { return m.files[server], nil }

func (m *memory) UpdateApprovals(server string, change func([]byte) ([]byte, error)) error {
	if m.fails != nil {
		return m.fails
	}
	b, err := change(m.files[server])
	if err == nil {
		m.files[server] = b
	}
	return err
}

func newStore(m *memory) *Store {
	s := New(m, false)
	s.now = func() time.Time { return time.Unix(1_800_000_000, 0) }
	return s
}

func tools(texts ...string) (out []Tool) {
	for _, text := range texts {
		var named struct{ Name string }
		_ = json.Unmarshal([]byte(text), &named)
		out = append(out, Tool{named.Name, []byte(text)})
	}
	return out
}

const (
	aTool   = `{"name":"a","description":"one"}`
	aTurned = `{"name":"a","description":"two"}`
	bTool   = `{"name":"b"}`
	cTool   = `{"name":"c"}`
)

func TestJudging(t *testing.T) {
	type step struct {
		what   string
		look   Look
		hidden []string
		events []Kind
	}
	whole := func(texts ...string) Look { return Look{Server: "s", Tools: tools(texts...), Whole: true} }
	part := func(texts ...string) Look { return Look{Server: "s", Tools: tools(texts...)} }
	strict := func(l Look) Look { l.Strict = true; return l }
	for name, steps := range map[string][]step{
		"trust": {
			{"first use", whole(aTool, bTool), nil, []Kind{Trusted, Trusted}},
			{"again", whole(aTool, bTool), nil, nil},
			{"a change", whole(aTurned, bTool), []string{"a"}, []Kind{Changed}},
			{"no more change", whole(aTurned, bTool), []string{"a"}, nil},
			{"back", whole(aTool, bTool), nil, []Kind{Restored}},
			{"a new one", whole(aTool, bTool, cTool), []string{"c"}, []Kind{Added}},
			{"gone", whole(bTool), nil, nil},
			{"and here again", whole(aTool, bTool), nil, nil},
		},
		"no trust in parts": {
			{"a part", part(aTool), []string{"a"}, []Kind{Added}},
			{"another", part(aTool, bTool), []string{"a", "b"}, []Kind{Added}},
			{"all", whole(aTool, bTool), nil, []Kind{Trusted, Trusted}},
			{"which turns in a part", part(aTurned), []string{"a"}, []Kind{Changed}},
			{"and is back", part(aTool), nil, []Kind{Restored}},
			{"too late", whole(aTool, bTool, cTool), []string{"c"}, []Kind{Added}},
			{"a part without it", part(aTool), nil, nil},
			{"still waiting", whole(aTool, bTool, cTool), []string{"c"}, nil},
		},
		"strict": {
			{"first use", strict(whole(aTool, bTool)), []string{"a", "b"}, []Kind{Added, Added}},
			{"trusted later is not first use", whole(aTool, bTool), []string{"a", "b"}, nil},
		},
		"no JSON": {
			{"garbage", Look{Server: "s", Tools: []Tool{{"x", []byte("{")}, {"a", []byte(aTool)}}, Whole: true}, []string{"x"}, []Kind{Trusted}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &memory{files: map[string][]byte{}}
			for _, s := range steps {
				// Each step in a process of its own: nothing depends on what is in memory.
				v := newStore(m).Judge(s.look)
				if v.Failed != nil {
					t.Fatalf("%s: %v", s.what, v.Failed)
				}
				if got := slices.Sorted(maps.Keys(v.Waiting)); !slices.Equal(got, s.hidden) {
					t.Errorf("%s: %q are hidden, not %q", s.what, got, s.hidden)
				}
				var kinds []Kind
				for _, e := range v.Events {
					kinds = append(kinds, e.Kind)
				}
				if !slices.Equal(kinds, s.events) {
					t.Errorf("%s: the events are %q, not %q", s.what, kinds, s.events)
				}
			}
		})
	}
}

func TestApprovalsOfOthersAreTakenOver(t *testing.T) {
	m := &memory{files: map[string][]byte{}}
	proxy, person := newStore(m), newStore(m)
	proxy.Judge(Look{Server: "s", Tools: tools(aTool), Whole: true})
	look := Look{Server: "s", Tools: tools(aTurned, bTool), Whole: true}
	proxy.Judge(look)
	waiting, err := person.Waiting("s")
	if err != nil || len(waiting) != 2 || waiting[0].New || !waiting[1].New {
		t.Fatalf("%v, %v", waiting, err)
	}
	if changed := proxy.Reload(); len(changed) != 0 {
		t.Errorf("what one has written oneself is a change: %v", changed)
	}
	gen := proxy.Generation()
	if err := person.Approve("s", waiting[:1]); err != nil {
		t.Fatal(err)
	}
	changed := proxy.Reload()
	if e := changed["s"]; len(e) != 1 || e[0].Kind != Approved || e[0].Tool != "a" || proxy.Generation() == gen {
		t.Errorf("the changes are %v", changed)
	}
	if v := proxy.Judge(look); len(v.Waiting) != 1 || len(v.Events) != 0 {
		t.Errorf("after the approval the verdict is %v", v)
	}
	var gone *ChangedError
	if err := person.Approve("s", waiting); !errors.As(err, &gone) || !slices.Equal(gone.Tools, []string{"a"}) {
		t.Errorf("approving twice gives %v", err)
	}
	if person.Approved("s") != 1 {
		t.Errorf("%d are approved", person.Approved("s"))
	}
}

func TestWhatCannotBeReadApprovesNothing(t *testing.T) {
	for _, text := range []string{"{", `{"format":2}`, `[]`} {
		m := &memory{files: map[string][]byte{"s": []byte(text)}}
		s := newStore(m)
		v := s.Judge(Look{Server: "s", Tools: tools(aTool), Whole: true})
		if len(v.Waiting) != 1 || !errors.Is(v.Failed, ErrUnreadable) {
			t.Errorf("%q gives the verdict %v", text, v)
		}
		if string(m.files["s"]) != text {
			t.Errorf("%q is replaced by %s", text, m.files["s"])
		}
		delete(m.files, "s")
		s.Reload()
		if v := s.Judge(Look{Server: "s", Tools: tools(aTool), Whole: true}); len(v.Waiting) != 0 || v.Failed != nil {
			t.Errorf("once the file is removed the verdict is %v", v)
		}
	}
}

func TestWhatCannotBeWrittenStillHides(t *testing.T) {
	m := &memory{files: map[string][]byte{}}
	s := newStore(m)
	s.Judge(Look{Server: "s", Tools: tools(aTool), Whole: true})
	m.fails = errors.New("the disk is full")
	for range 2 {
		if v := s.Judge(Look{Server: "s", Tools: tools(aTurned), Whole: true}); len(v.Waiting) != 1 {
			t.Errorf("the verdict is %v", v)
		}
	}
}

func TestAReadOnlyStoreJudgesAndKeepsNothing(t *testing.T) {
	m := &memory{files: map[string][]byte{}, fails: errors.New("written")}
	s := New(m, true)
	for _, tt := range []struct {
		text   string
		hidden int
	}{{aTool, 0}, {aTurned, 1}} {
		if v := s.Judge(Look{Server: "s", Tools: tools(tt.text), Whole: true}); v.Failed != nil || len(v.Waiting) != tt.hidden {
			t.Errorf("%s: the verdict is %v", tt.text, v)
		}
	}
}

func TestLongDefinitionsAreKnownByTheirHash(t *testing.T) {
	m := &memory{files: map[string][]byte{}}
	long := `{"name":"a","description":"` + strings.Repeat("x", maxKeptText) + `"}`
	newStore(m).Judge(Look{Server: "s", Tools: tools(long), Whole: true})
	if v := newStore(m).Judge(Look{Server: "s", Tools: tools(long), Whole: true}); len(v.Waiting) != 0 || len(m.files["s"]) > 1000 {
		t.Errorf("the verdict is %v, and %d bytes are kept", v, len(m.files["s"]))
	}
	v := newStore(m).Judge(Look{Server: "s", Tools: tools(long[:len(long)-2] + `y"}`), Whole: true})
	w := v.Waiting["a"]
	var b bytes.Buffer
	if err := w.Print(&b); err != nil || len(v.Waiting) != 1 || !strings.Contains(b.String(), "too long to be shown") {
		t.Errorf("the verdict is %v and shown as %s", v, b.String())
	}
}

func TestWhatIsShownCannotDeceive(t *testing.T) {
	old, now := define(t, `{"name":"a","description":"one\ntwo\nthree"}`), define(t, `{"name":"a","description":"one\n2\u001b[2J\u202e\u200b\udb40\udc41\nthree","title":"T"}`)
	w := Waiting{Tool: "a\x1b[1m", Hash: now.Hash, old: old.Text, text: now.Text}
	var b bytes.Buffer
	if err := w.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`a\u{1b}[1m@`, "    title\n      + T\n", "      - two\n", `      + 2\u{1b}[2J\u{202e}\u{200b}\u{e0041}` + "\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "three") || strings.ContainsRune(b.String(), '\x1b') {
		t.Errorf("shown is\n%s", b.String())
	}
}

// BenchmarkJudge compares 1,000 tools of about 1 KiB with what is approved.
func BenchmarkJudge(b *testing.B) {
	var all []Tool
	for i := range 1000 {
		name := fmt.Sprintf("tool%d", i)
		all = append(all, Tool{name, []byte(`{"name":"` + name + `","description":"` + strings.Repeat("Does something. ", 20) +
			`","inputSchema":{"type":"object","properties":{` + strings.Repeat(`"p":{"type":"string","description":"Some parameter."},`, 12) + `"q":{"type":"integer"}},"required":["q"]}}`)})
	}
	s := newStore(&memory{files: map[string][]byte{}})
	look := Look{Server: "s", Tools: all, Whole: true}
	s.Judge(look)
	for b.Loop() {
		if v := s.Judge(look); len(v.Waiting) > 0 {
			b.Fatal(v)
		}
	}
}
