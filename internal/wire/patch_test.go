package wire

import (
	"bytes"
	"encoding/json"
	"testing"
)

// patched applies change to a server's message and checks what holds for every result.
func patched(t *testing.T, raw string, change func(p *Patch, f *Frame)) string {
	t.Helper()
	f := mustParse(t, raw, Upstream)
	p := NewPatch(f.Raw)
	change(p, f)
	got := p.Append([]byte("before"))
	if !bytes.HasPrefix(got, []byte("before")) {
		t.Fatalf("Append lost what was there: %s", got)
	}
	got = got[len("before"):]
	if p.Len() != len(got) {
		t.Errorf("Len is %d, the result %s has %d bytes", p.Len(), got, len(got))
	}
	if !json.Valid(got) {
		t.Errorf("the result is not valid JSON: %s", got)
	}
	return string(got)
}

func TestPatch(t *testing.T) {
	const raw = `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1, "b" : 2,"_meta":{"t":7},"c":3}}`
	const front, back = `{"jsonrpc":"2.0","id":1,"method":"m","params":`, `}`
	one := []byte("1")
	for _, c := range []struct {
		what, raw string
		change    func(p *Patch, f *Frame)
		want      string
	}{
		{"nothing", raw, func(*Patch, *Frame) {}, raw},
		{"replace id", raw, func(p *Patch, f *Frame) { p.Replace(f.ID, []byte(`"u-17"`)) },
			`{"jsonrpc":"2.0","id":"u-17","method":"m","params":{"a":1, "b" : 2,"_meta":{"t":7},"c":3}}`},
		{"replace twice, the later holds", raw, func(p *Patch, f *Frame) {
			p.Replace(f.Params, []byte(`[]`))
			p.Replace(f.Params, []byte(`{}`))
		}, front + `{}` + back},
		{"replace what is absent", raw, func(p *Patch, f *Frame) { p.Replace(f.Result, one) }, raw},
		{"insert", raw, func(p *Patch, f *Frame) { p.Insert(&f.Body, "x\n", one) },
			front + `{"x\n":1,"a":1, "b" : 2,"_meta":{"t":7},"c":3}` + back},
		{"insert two", raw, func(p *Patch, f *Frame) { p.Insert(&f.Body, "x", one); p.Insert(&f.Body, "y", one) },
			front + `{"x":1,"y":1,"a":1, "b" : 2,"_meta":{"t":7},"c":3}` + back},
		{"insert into an absent object", raw, func(p *Patch, f *Frame) { p.Insert(&Object{}, "x", one) }, raw},
		{"insert into an empty object", front + `{ }` + back, func(p *Patch, f *Frame) { p.Insert(&f.Body, "x", one); p.Insert(&f.Body, "y", one) },
			front + `{"x":1,"y":1 }` + back},
		{"set", raw, func(p *Patch, f *Frame) { p.Set(&f.Body, "b", one); p.Set(&f.Body, "d", one) },
			front + `{"d":1,"a":1, "b" : 1,"_meta":{"t":7},"c":3}` + back},
		{"insert into two nested objects", raw, func(p *Patch, f *Frame) {
			p.Insert(&f.Meta, "s", one)
			p.Insert(&f.Body, "x", one)
			p.Replace(f.Meta.Get(f.Raw, "t"), []byte(`"tok"`))
			p.Replace(f.ID, []byte(`22`))
		}, `{"jsonrpc":"2.0","id":22,"method":"m","params":{"x":1,"a":1, "b" : 2,"_meta":{"s":1,"t":"tok"},"c":3}}`},
		{"remove the first", raw, func(p *Patch, f *Frame) { p.Remove(&f.Body, "a") },
			front + `{"b" : 2,"_meta":{"t":7},"c":3}` + back},
		{"remove in the middle", raw, func(p *Patch, f *Frame) { p.Remove(&f.Body, "b") },
			front + `{"a":1,"_meta":{"t":7},"c":3}` + back},
		{"remove the last", raw, func(p *Patch, f *Frame) { p.Remove(&f.Body, "c") },
			front + `{"a":1, "b" : 2,"_meta":{"t":7}}` + back},
		{"remove what is absent", raw, func(p *Patch, f *Frame) { p.Remove(&f.Body, "x"); p.Remove(&Object{}, "x") }, raw},
		{"remove first and last", raw, func(p *Patch, f *Frame) { p.Remove(&f.Body, "c"); p.Remove(&f.Body, "a") },
			front + `{"b" : 2,"_meta":{"t":7}}` + back},
		{"remove a run at the front", raw, func(p *Patch, f *Frame) { p.Remove(&f.Body, "b"); p.Remove(&f.Body, "a") },
			front + `{"_meta":{"t":7},"c":3}` + back},
		{"remove a run at the end", raw, func(p *Patch, f *Frame) { p.Remove(&f.Body, "c"); p.Remove(&f.Body, "_meta") },
			front + `{"a":1, "b" : 2}` + back},
		{"remove twice", raw, func(p *Patch, f *Frame) { p.Remove(&f.Body, "b"); p.Remove(&f.Body, "b") },
			front + `{"a":1,"_meta":{"t":7},"c":3}` + back},
		{"remove the only one", raw, func(p *Patch, f *Frame) { p.Remove(&f.Meta, "t") },
			front + `{"a":1, "b" : 2,"_meta":{},"c":3}` + back},
		{"remove the only one and insert", raw, func(p *Patch, f *Frame) { p.Remove(&f.Meta, "t"); p.Insert(&f.Meta, "s", one) },
			front + `{"a":1, "b" : 2,"_meta":{"s":1},"c":3}` + back},
		{"remove all and insert two", front + `{ "a":1 , "b":2 }` + back, func(p *Patch, f *Frame) {
			p.Insert(&f.Body, "x", one)
			p.Remove(&f.Body, "a")
			p.Insert(&f.Body, "y", one)
			p.Remove(&f.Body, "b")
		}, front + `{"x":1,"y":1  }` + back},
		{"remove equal names, however written", front + `{"a":1,"x":2,"\u0061":3,"a":4}` + back, func(p *Patch, f *Frame) { p.Remove(&f.Body, "a") },
			front + `{"x":2}` + back},
		{"changes inside what is removed", raw, func(p *Patch, f *Frame) {
			p.Replace(f.Meta.Get(f.Raw, "t"), one)
			p.Insert(&f.Meta, "s", one)
			p.Remove(&f.Meta, "t")
			p.Remove(&f.Body, "_meta")
		}, front + `{"a":1, "b" : 2,"c":3}` + back},
		{"changes inside what is replaced", raw, func(p *Patch, f *Frame) {
			p.Insert(&f.Body, "s", one)
			p.Replace(f.Params, []byte(`{}`))
			p.Remove(&f.Meta, "t")
		}, front + `{}` + back},
		{"an object known twice", raw, func(p *Patch, f *Frame) {
			again, _ := ObjectAt(f.Raw, f.Meta.Span)
			p.Remove(&again, "t")
			p.Insert(&f.Meta, "s", one)
		}, front + `{"a":1, "b" : 2,"_meta":{"s":1},"c":3}` + back},
	} {
		if got := patched(t, c.raw, c.change); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.what, got, c.want)
		}
	}
}

func TestPatchWithManyChanges(t *testing.T) {
	raw := []byte(`["` + string(bytes.Repeat([]byte(`a","`), 99)) + `a"]`)
	items := Elements(raw, Span{0, len(raw)})
	if len(items) != 100 {
		t.Fatalf("%d elements", len(items))
	}
	p := NewPatch(raw)
	for i := range items { // from the last to the first
		p.Replace(items[len(items)-1-i], []byte(`12`))
	}
	want := `[` + string(bytes.Repeat([]byte(`12,`), 99)) + `12]`
	if got := string(p.Append(nil)); got != want || p.Len() != len(want) {
		t.Errorf("got %s, length %d", got, p.Len())
	}
	p.Reset([]byte(`{}`))
	if got := string(p.Append(nil)); got != `{}` || !p.Empty() {
		t.Errorf("after Reset: %s", got)
	}
}

func TestPatchAllocatesNothing(t *testing.T) {
	f := mustParse(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gh__a","_meta":{"progressToken":1}}}`, Downstream)
	room := make([]byte, 0, 1024)
	id, name, one := []byte("17"), []byte(`"a"`), []byte("1")
	var p Patch
	if n := testing.AllocsPerRun(100, func() {
		p.Reset(f.Raw)
		p.Replace(f.ID, id)
		p.Replace(f.Body.Get(f.Raw, "name"), name)
		p.Insert(&f.Meta, "x", one)
		p.Remove(&f.Meta, "progressToken")
		room = p.Append(room[:0])
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if want := `{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"a","_meta":{"x":1}}}`; string(room) != want {
		t.Errorf("got %s", room)
	}
}
