package wire

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestFrameReuse(t *testing.T) {
	var f Frame
	big := `{"jsonrpc":"2.0","id":"x","method":"m","params":{` + strings.Repeat(`"k":1,`, 30) + `"_meta":{"a":1}}}`
	small := `{"jsonrpc":"2.0","id":1,"result":{}}`
	if err := ParseInto(&f, []byte(big), Upstream, Limits{}); err != nil || len(f.Body.Members) != 31 || len(f.Meta.Members) != 1 {
		t.Fatalf("%v, %d members", err, len(f.Body.Members))
	}
	if err := ParseInto(&f, []byte(`{"id":`), Upstream, Limits{}); err == nil {
		t.Fatal("half a message was accepted")
	}
	if err := ParseInto(&f, []byte(small), Upstream, Limits{}); err != nil {
		t.Fatal(err)
	}
	fresh := mustParse(t, small, Upstream)
	if f.Kind != fresh.Kind || f.ID != fresh.ID || f.Method != "" || f.Params.Ok() || f.Result != fresh.Result ||
		len(f.Body.Members) != 0 || f.Meta.Ok() || len(f.Meta.Members) != 0 || !bytes.Equal(f.Raw, fresh.Raw) {
		t.Errorf("a reused frame holds %+v", &f)
	}
	raw := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"x":"y"},"_meta":{"progressToken":7}}}`)
	for _, side := range []Side{Downstream, Upstream} {
		if n := testing.AllocsPerRun(100, func() { _ = ParseInto(&f, raw, side, Limits{}) }); n > 0 {
			t.Errorf("side %d: parsing into a used frame allocates %v times", side, n)
		}
	}
}

func TestNavigation(t *testing.T) {
	raw := []byte(` { "a" : [ 1 , "x]" , {"b":[2]} , [] ] , "c" : [] , "d\u0065" : {"x":1} } `)
	o, ok := ObjectAt(raw, Span{1, len(raw) - 1})
	if !ok || len(o.Members) != 3 {
		t.Fatalf("ObjectAt: %v %+v", ok, o)
	}
	var got []string
	for _, s := range Elements(raw, o.Get(raw, "a")) {
		got = append(got, string(s.Of(raw)))
	}
	if want := []string{`1`, `"x]"`, `{"b":[2]}`, `[]`}; !slices.Equal(got, want) {
		t.Errorf("elements %q, want %q", got, want)
	}
	if s := Elements(raw, o.Get(raw, "c")); s != nil {
		t.Errorf("an empty array has elements %v", s)
	}
	if s := Elements(raw, o.Get(raw, "de")); s != nil {
		t.Errorf("an object has elements %v", s)
	}
	if !o.Has(raw, "de") || o.Has(raw, "d") || o.Has(raw, `d\u0065`) {
		t.Error("Has does not go by the decoded name")
	}
	in, ok := ObjectAt(raw, o.Get(raw, "de"))
	if v := in.Get(raw, "x").Of(raw); !ok || string(v) != "1" {
		t.Errorf("inner object: %v, x = %s", ok, v)
	}
	for _, broken := range []string{`[`, `[1`, `[1 2]`, `[1,]`, `[tru]`, `[[]`} {
		if s := Elements([]byte(broken), Span{0, len(broken)}); s != nil {
			t.Errorf("%s has elements %v", broken, s)
		}
	}
	for _, s := range []Span{{}, {0, 4}, {5, 500}, {-3, 2}, o.Get(raw, "a")} {
		if _, ok := ObjectAt(raw, s); ok {
			t.Errorf("there is an object at %v", s)
		}
	}
}
