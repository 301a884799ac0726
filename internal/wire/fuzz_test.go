package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"testing"
	"unicode/utf8"
)

var seedMessages = []string{
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1,{"y":"\ud83d\ude42"}]},"_meta":{"progressToken":7}}}`,
	`{"jsonrpc":"2.0","id":"\u0041","result":{"content":[],"isError":false}}`,
	`{"id":null,"error":"x","result":null}`, `{"jsonrpc":"2.0","method":"m","params":[1e400,-0.0,1.10,9007199254740993]}`,
	"\uFEFF\n{\"a\":\t1,\r\n\"\\u0061\":2}", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"Name":1,"ſ":2}}`, `[{}]`, `"x"`, "{\"a\":\"\xff\"}", `{"a":01}`,
}

func hasControl(b []byte) bool {
	return slices.ContainsFunc(b, func(c byte) bool { return c < ' ' })
}

func FuzzParse(f *testing.F) {
	for _, s := range seedMessages {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, side := range []Side{Downstream, Upstream} {
			frame, err := Parse(bytes.Clone(raw), side, Limits{MaxDepth: depthCeiling, MaxMembers: 1 << 20})
			plain := trim(raw)
			if side == Upstream {
				plain = bytes.ToValidUTF8(plain, []byte("\uFFFD"))
			}
			valid := utf8.Valid(plain) && json.Valid(plain)
			var pe *ParseError
			switch {
			case err == nil && !valid:
				t.Fatalf("%q is accepted but not valid", raw)
			case err == nil:
				checkFrame(t, frame, side)
			case !errors.As(err, &pe):
				t.Fatalf("error %T", err)
			case valid != (pe.Code == CodeInvalidRequest):
				t.Fatalf("%q: valid %v, but %v", raw, valid, err)
			case pe.ID != nil && (!ValidID(pe.ID) || !json.Valid(pe.ID)):
				t.Fatalf("%q: the error carries the id %q", raw, pe.ID)
			}
		}
	})
}

// checkFrame compares what was found in a message with what encoding/json reads.
func checkFrame(t *testing.T, f *Frame, side Side) {
	if hasControl(f.Raw) || !json.Valid(f.Raw) || !utf8.Valid(f.Raw) {
		t.Fatalf("the frame holds %q", f.Raw)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(f.Raw, &top); err != nil {
		t.Fatal(err)
	}
	for name, want := range top {
		if got := f.Top.Get(f.Raw, name).Of(f.Raw); !utf8.ValidString(name) || !bytes.Equal(got, want) && !bytes.Contains(f.Raw, []byte(`\u`)) {
			t.Fatalf("member %q of %q is %q, want %q", name, f.Raw, got, want)
		}
	}
	if side == Downstream && len(top) != len(f.Top.Members) {
		t.Fatalf("%d members of %q, want %d", len(f.Top.Members), f.Raw, len(top))
	}
	switch f.Kind {
	case KindRequest, KindResponse:
		if !ValidID(f.ID.Of(f.Raw)) {
			t.Fatalf("%q: id %q", f.Raw, f.ID.Of(f.Raw))
		}
	case KindNotification:
		if f.ID.Ok() {
			t.Fatalf("a notification with an id: %q", f.Raw)
		}
	case KindError:
	default:
		t.Fatalf("kind %d of %q", f.Kind, f.Raw)
	}
}

func FuzzPatch(f *testing.F) {
	for i, s := range seedMessages {
		f.Add([]byte(s), uint8(i*37), "name", `{"v":1}`)
	}
	f.Fuzz(func(t *testing.T, raw []byte, which uint8, name, value string) {
		frame, err := Parse(raw, Upstream, Limits{})
		if err != nil || !json.Valid([]byte(value)) || hasControl([]byte(value)) || !utf8.ValidString(name) || !utf8.ValidString(value) {
			return
		}
		p := NewPatch(frame.Raw)
		m := frame.Top.Members[int(which>>2)%len(frame.Top.Members)]
		inner := Object{Span: Span{}}
		if o, ok := ObjectAt(frame.Raw, m.Value); ok {
			inner = o
		}
		switch which & 3 {
		case 0:
			p.Replace(m.Value, []byte(value))
			p.Insert(&inner, name, []byte("1"))
		case 1:
			p.Insert(&frame.Top, name, []byte(value))
			p.Insert(&inner, name, []byte(value))
		case 2:
			p.Remove(&frame.Top, m.name(frame.Raw))
			p.Insert(&frame.Top, name, []byte(value))
		case 3:
			for i := range inner.Members {
				if i%2 == 0 {
					p.Remove(&inner, inner.Members[i].name(frame.Raw))
				}
			}
			p.Insert(&inner, name, []byte(value))
		}
		checkPatched(t, frame, p, m, which&3, name, value)
	})
}

func checkPatched(t *testing.T, f *Frame, p *Patch, m Member, change uint8, name, value string) {
	got := p.Append(nil)
	if p.Len() != len(got) || hasControl(got) || !json.Valid(got) {
		t.Fatalf("length %d of %d, result %q from %q", p.Len(), len(got), got, f.Raw)
	}
	top, ok := ObjectAt(got, Span{0, len(got)})
	if !ok {
		t.Fatalf("no object in %q", got)
	}
	switch change {
	case 0: // every byte outside the value is as before
		want := slices.Concat(f.Raw[:m.Value.Start], []byte(value), f.Raw[m.Value.End:])
		if !bytes.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	case 1:
		if first := top.Members[0]; first.name(got) != name || string(first.Value.Of(got)) != value {
			t.Fatalf("%q inserted into %q gives %q", name, f.Raw, got)
		}
		if !bytes.HasSuffix(got, f.Raw[m.Value.End:]) {
			t.Fatalf("the end of %q changed to %q", f.Raw, got)
		}
	case 2:
		gone := m.name(f.Raw)
		if n := len(top.Members); top.Members[0].name(got) != name || n < 1 {
			t.Fatalf("%q inserted into %q gives %q", name, f.Raw, got)
		}
		for _, left := range top.Members[1:] {
			if left.name(got) == gone {
				t.Fatalf("%q removed from %q leaves %q", gone, f.Raw, got)
			}
		}
	case 3:
		if !bytes.HasPrefix(got, f.Raw[:m.Value.Start+1]) || !bytes.HasSuffix(got, f.Raw[m.Value.End:]) {
			t.Fatalf("bytes outside %q changed: %q", m.Value.Of(f.Raw), got)
		}
	}
}

// cutReader gives out its bytes in pieces of the sizes that cuts holds.
type cutReader struct {
	data, cuts []byte
	k          int
}

func (c *cutReader) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := len(c.data)
	if len(c.cuts) > 0 {
		n = min(n, 1+int(c.cuts[c.k%len(c.cuts)])%9)
		c.k++
	}
	n = copy(p[:min(n, len(p))], c.data)
	c.data = c.data[n:]
	return n, nil
}

func FuzzEventReader(f *testing.F) {
	f.Add([]byte("\uFEFFid: 1\r\ndata: a\r\rdata\n\n: c\nretry: 5\nevent: x\ndata:b\r\n\r\n"), []byte{0, 3}, "name", "id")
	f.Add([]byte("data: 0123456789012345678901234567890\ndata\n\ndata: x\n\n"), []byte{1}, "", "")
	f.Fuzz(func(t *testing.T, in, cuts []byte, name, id string) {
		whole, err := readAll(bytes.NewReader(in), 32)
		pieces, err2 := readAll(&cutReader{data: in, cuts: cuts}, 32)
		if !slices.Equal(whole, pieces) || err != io.EOF || err2 != io.EOF {
			t.Fatalf("%q: at once %q %v, in pieces %q %v", in, whole, err, pieces, err2)
		}
		out := AppendEvent(AppendComment(nil, name), name, id, in)
		ev, err := NewEventReader(&cutReader{data: out, cuts: cuts}, len(out)).Next()
		if err != nil || !ev.HasData || !bytes.Equal(ev.Data, oneLine(in)) || ev.Name != string(oneLine([]byte(name))) {
			t.Fatalf("%q came back as %s, %v", out, show(ev), err)
		}
		if keeps := id != "" && bytes.IndexByte([]byte(id), 0) < 0; ev.HasID != keeps || keeps && ev.ID != string(oneLine([]byte(id))) {
			t.Fatalf("id %q came back as %q", id, ev.ID)
		}
	})
}

func oneLine(b []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" "))
}

func FuzzSplitValues(f *testing.F) {
	for _, s := range seedMessages {
		f.Add([]byte("\x1b[32mINFO\x1b[0m "+s+s+"\r"), uint8(3))
	}
	f.Fuzz(func(t *testing.T, line []byte, most uint8) {
		before := bytes.Clone(line)
		values, rest := SplitValues(line, int(most))
		if len(values) > int(most) || !bytes.Equal(line, before) {
			t.Fatalf("%d values of at most %d, line %q", len(values), most, line)
		}
		at := 0
		for _, v := range values {
			next := bytes.Index(line[at:], v)
			if next < 0 || !json.Valid(v) || v[0] != '{' && v[0] != '[' {
				t.Fatalf("%q: value %q", line, v)
			}
			at += next + len(v)
		}
		if len(rest)+len(bytes.Join(values, nil)) > len(line) {
			t.Fatalf("%q: %q and rest %q are more than there was", line, values, rest)
		}
		if one := trim(line); most > 0 && len(one) > 0 && (one[0] == '{' || one[0] == '[') && json.Valid(one) {
			if len(values) != 1 || !bytes.Equal(values[0], one) || len(rest) > 0 {
				t.Fatalf("%q is split into %q and rest %q", line, values, rest)
			}
		}
	})
}
