package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// mustParse parses a message that has to be accepted.
func mustParse(t testing.TB, raw string, side Side) *Frame {
	t.Helper()
	f, err := Parse([]byte(raw), side, Limits{})
	if err != nil {
		t.Fatalf("Parse(%s): %v", raw, err)
	}
	return f
}

// refusal parses a message that has to be refused.
func refusal(t testing.TB, raw string, side Side, lim Limits) *ParseError {
	t.Helper()
	f, err := Parse([]byte(raw), side, lim)
	var pe *ParseError
	if !errors.As(err, &pe) {
		t.Fatalf("Parse(%.200s) = %v, %v; want a ParseError", raw, f, err)
	}
	if f != nil || pe.Error() == "" || !slices.Contains(Reasons(), pe.Reason) {
		t.Errorf("Parse(%.200s): frame %v, message %q, reason %q", raw, f, pe.Error(), pe.Reason)
	}
	wantCode := CodeInvalidRequest
	if slices.Contains([]string{ReasonInvalidJSON, ReasonInvalidUTF8, ReasonTooDeep}, pe.Reason) {
		wantCode = CodeParse
	}
	if pe.Code != wantCode {
		t.Errorf("Parse(%.200s): code %d for %s, want %d", raw, pe.Code, pe.Reason, wantCode)
	}
	return pe
}

func TestFrameOfARequest(t *testing.T) {
	raw := `{"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":{"name":"echo","_meta":{"progressToken":7},"arguments":{"x":[1]}}}`
	f := mustParse(t, raw, Downstream)
	at := func(s Span) string { return string(s.Of(f.Raw)) }
	for _, c := range []struct{ what, got, want string }{
		{"raw", string(f.Raw), raw},
		{"id", at(f.ID), `"a-1"`},
		{"method", f.Method, "tools/call"},
		{"top", at(f.Top.Span), raw},
		{"params", at(f.Params), at(f.Body.Span)},
		{"name", at(f.Body.Get(f.Raw, "name")), `"echo"`},
		{"arguments", at(f.Body.Get(f.Raw, "arguments")), `{"x":[1]}`},
		{"_meta", at(f.Meta.Span), `{"progressToken":7}`},
		{"progressToken", at(f.Meta.Get(f.Raw, "progressToken")), `7`},
		{"absent", at(f.Body.Get(f.Raw, "x")), ``},
	} {
		if c.got != c.want {
			t.Errorf("%s = %s, want %s", c.what, c.got, c.want)
		}
	}
	if f.Kind != KindRequest || f.Result.Ok() || f.Error.Ok() || f.Repaired || f.Amended {
		t.Errorf("frame %+v", f)
	}
}

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		raw  string
		side Side
		kind Kind
		body string
	}{
		{`{"jsonrpc":"2.0","method":"m"}`, Downstream, KindNotification, ``},
		{`{"jsonrpc":"2.0","id":1,"method":"m"}`, Downstream, KindRequest, ``},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}`, Downstream, KindRequest, ``},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`, Downstream, KindRequest, `{}`},
		{`{"jsonrpc":"2.0","id":1,"result":{"a":1}}`, Downstream, KindResponse, `{"a":1}`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, Downstream, KindError, `{"code":1}`},
		{`{"jsonrpc":"2.0","id":1,"result":"x"}`, Upstream, KindResponse, ``},
		{`{"jsonrpc":"2.0","id":1,"result":null}`, Upstream, KindResponse, ``},
		{`{"jsonrpc":"2.0","error":"broken"}`, Upstream, KindError, ``},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":"E1"}}`, Upstream, KindError, `{"code":"E1"}`},
		{`{"jsonrpc":"2.0","id":{"a":1},"error":7}`, Upstream, KindError, ``},
		{`{"jsonrpc":"2.0","id":1.5,"error":7}`, Upstream, KindError, ``},
		{`{"jsonrpc":"2.0","method":"m","params":"text"}`, Upstream, KindNotification, ``},
		{`{"jsonrpc":"2.0","id":1,"result":{"a":1},"params":{"b":2}}`, Upstream, KindResponse, `{"a":1}`},
		{`{"jsonrpc":"2.0","id":1,"params":{"b":2},"result":7}`, Upstream, KindResponse, ``},
	} {
		f := mustParse(t, c.raw, c.side)
		if f.Kind != c.kind || string(f.Body.Of(f.Raw)) != c.body || (c.body == "") != (f.Body.Members == nil || len(f.Body.Members) == 0 && !f.Body.Ok()) {
			t.Errorf("%s: kind %d, body %s; want %d, %s", c.raw, f.Kind, f.Body.Of(f.Raw), c.kind, c.body)
		}
	}
}

func TestUpstreamEnvelopeIsAmended(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{`{"id":1,"result":{"_meta":{"a":1}}}`, `{"jsonrpc":"2.0","id":1,"result":{"_meta":{"a":1}}}`},
		{` { "id":1,"result":{}}`, `{"jsonrpc":"2.0", "id":1,"result":{}}`},
		{`{"jsonrpc":"1.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{`{"jsonrpc":2.0,"id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{`{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1}}`},
		{`{"jsonrpc":"2.0","id":1,"result":null,"error":null}`, `{"jsonrpc":"2.0","id":1,"result":null}`},
		{`{"jsonrpc":"2.0","id":null,"method":"m","params":null}`, `{"jsonrpc":"2.0","method":"m"}`},
		{`{"id":1,"method":null,"params":null,"result":{},"error":null}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
	} {
		f := mustParse(t, c.raw, Upstream)
		if string(f.Raw) != c.want || !f.Amended || f.Repaired {
			t.Errorf("%s became %s (amended %v), want %s", c.raw, f.Raw, f.Amended, c.want)
		}
		if f.Top.Span != (Span{0, len(f.Raw)}) {
			t.Errorf("%s: the envelope is at %v of %d bytes", c.raw, f.Top.Span, len(f.Raw))
		}
		again := mustParse(t, c.want, Upstream)
		if again.Kind != f.Kind || again.ID != f.ID || again.Result != f.Result || again.Meta.Span != f.Meta.Span || again.Amended {
			t.Errorf("%s: read as %+v, its amended form as %+v", c.raw, f, again)
		}
	}
	f := mustParse(t, `{"jsonrpc":"2.0","id":null,"error":{"code":1}}`, Upstream)
	if f.Amended || string(f.ID.Of(f.Raw)) != "null" {
		t.Errorf("the null id of an error: %s, amended %v", f.ID.Of(f.Raw), f.Amended)
	}
}

func TestInvalidUTF8(t *testing.T) {
	raw := "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"t\":\"a\xff\xfeb\xe2\x82\"}}"
	f := mustParse(t, raw, Upstream)
	if want := "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"t\":\"a\uFFFDb\uFFFD\"}}"; string(f.Raw) != want || !f.Repaired {
		t.Errorf("repaired to %q (%v), want %q", f.Raw, f.Repaired, want)
	}
	if pe := refusal(t, raw, Downstream, Limits{}); pe.Reason != ReasonInvalidUTF8 || pe.Offset != 40 || string(pe.ID) != "4" {
		t.Errorf("downstream: %+v", pe)
	}
	for _, bad := range []string{"\xed\xa0\x80", "\xc0\xaf", "\xf4\x90\x80\x80", "\x80"} {
		if pe := refusal(t, `{"jsonrpc":"2.0","method":"m","params":{"a":"`+bad+`"}}`, Downstream, Limits{}); pe.Reason != ReasonInvalidUTF8 {
			t.Errorf("% x: %s", bad, pe.Reason)
		}
	}
}

func TestRefusedMessages(t *testing.T) {
	const head = `{"jsonrpc":"2.0","id":1,"method":"tools/call",`
	for _, c := range []struct {
		raw    string
		side   Side
		reason string
		id     string
		names  string // what the message must mention
	}{
		{``, Downstream, ReasonInvalidJSON, "", "byte 0"},
		{"\x00", Downstream, ReasonInvalidJSON, "", "byte 0"},
		{`{`, Downstream, ReasonInvalidJSON, "", "ends"},
		{`{} {}`, Downstream, ReasonInvalidJSON, "", "end of the message"},
		{head + `"params":{}} x`, Downstream, ReasonInvalidJSON, "1", "end of the message"},
		{head + `"params":{"a":01}}`, Downstream, ReasonInvalidJSON, "1", "byte"},
		{head + `"params":{"a":"` + "\n" + `"}}`, Downstream, ReasonInvalidJSON, "1", "escaped"},
		{head + `"params":{"a":1,}}`, Downstream, ReasonInvalidJSON, "1", "member name"},
		{`[]`, Downstream, ReasonNotAnObject, "", "message"},
		{`null`, Upstream, ReasonNotAnObject, "", "message"},
		{`5`, Downstream, ReasonNotAnObject, "", "message"},
		{`{}`, Downstream, ReasonMissingVersion, "", "jsonrpc"},
		{`{}`, Upstream, ReasonInvalidShape, "", "no method"},
		{`{"id":1,"method":"ping"}`, Downstream, ReasonMissingVersion, "1", "jsonrpc"},
		{`{"jsonrpc":"1.0","id":1,"method":"ping"}`, Downstream, ReasonMissingVersion, "1", "jsonrpc"},
		{`{"jsonrpc":2.0,"id":1,"method":"ping"}`, Downstream, ReasonMissingVersion, "1", "jsonrpc"},
		{`{"jsonrpc":"2.0"}`, Downstream, ReasonInvalidShape, "", "no method"},
		{`{"jsonrpc":"2.0","id":null}`, Upstream, ReasonInvalidShape, "", "no method"},
		{`{"jsonrpc":"2.0","id":1,"method":5}`, Downstream, ReasonInvalidMethod, "1", "method"},
		{`{"jsonrpc":"2.0","id":1,"method":""}`, Downstream, ReasonInvalidMethod, "1", "method"},
		{`{"jsonrpc":"2.0","id":1,"method":null}`, Downstream, ReasonInvalidMethod, "1", "method"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, Downstream, ReasonInvalidShape, "1", "params"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}`, Downstream, ReasonInvalidShape, "1", "params"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, Downstream, ReasonInvalidShape, "1", "result"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, Upstream, ReasonInvalidShape, "1", "result"},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, Downstream, ReasonInvalidShape, "1", "both"},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, Upstream, ReasonInvalidShape, "1", "both"},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`, Downstream, ReasonInvalidShape, "1", "both"},
		{`{"jsonrpc":"2.0","id":1,"result":{},"params":{}}`, Downstream, ReasonInvalidShape, "1", "params"},
		{`{"jsonrpc":"2.0","id":1,"error":"x"}`, Downstream, ReasonInvalidShape, "1", "error"},
		{`{"jsonrpc":"2.0","result":{}}`, Downstream, ReasonInvalidID, "", "id"},
		{`{"jsonrpc":"2.0","error":{}}`, Downstream, ReasonInvalidID, "", "id"},
		{`{"jsonrpc":"2.0","result":{}}`, Upstream, ReasonInvalidID, "", "id"},
		{`{"jsonrpc":"2.0","id":null,"result":{}}`, Upstream, ReasonInvalidID, "", "id"},
	} {
		pe := refusal(t, c.raw, c.side, Limits{})
		if pe.Reason != c.reason || string(pe.ID) != c.id || !strings.Contains(pe.Error(), c.names) {
			t.Errorf("%s: %s, id %s, %q; want %s, id %s, mentioning %q", c.raw, pe.Reason, pe.ID, pe, c.reason, c.id, c.names)
		}
	}
}

func TestIDsOfRequests(t *testing.T) {
	for _, id := range []string{`0`, `-1`, `1.0`, `1.000`, `9007199254740993`, `123456789012345678901234567890`, `"x"`, `""`, `"\u0041"`} {
		f := mustParse(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"m"}`, Downstream)
		if got := string(f.ID.Of(f.Raw)); got != id {
			t.Errorf("id %s is read as %s", id, got)
		}
	}
	for _, id := range []string{`1.5`, `1e3`, `1E0`, `1.0e1`, `null`, `true`, `{}`, `[]`, `0.1`} {
		for _, side := range []Side{Downstream, Upstream} {
			if id == "null" && side == Upstream {
				continue
			}
			pe := refusal(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"m"}`, side, Limits{})
			if pe.Reason != ReasonInvalidID || pe.ID != nil {
				t.Errorf("id %s: %+v", id, pe)
			}
		}
	}
}

func TestAmbiguousMembersOfClients(t *testing.T) {
	call := func(params string) string {
		return `{"jsonrpc":"2.0","params":{` + params + `},"id":1,"method":"tools/call"}`
	}
	for _, c := range []struct{ raw, reason, id, names string }{
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}`, ReasonDuplicateMember, "", `"id"`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}`, ReasonDuplicateMember, "1", `"method"`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","METHOD":"n"}`, ReasonMiscasedMember, "1", `"METHOD"`},
		{`{"jsonrpc":"2.0","id":1,"Method":"m"}`, ReasonMiscasedMember, "1", `message.method`},
		{`{"jsonrpc":"2.0","ID":1,"method":"m"}`, ReasonMiscasedMember, "", `message.id`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","PARAMS":{}}`, ReasonMiscasedMember, "1", `message.params`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{},"param\u017f":{}}`, ReasonMiscasedMember, "1", `message.params`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","paramſ":{}}`, ReasonMiscasedMember, "1", `message.params`},
		{call(`"` + strings.Repeat("x", 100) + `":1,"` + strings.Repeat("x", 100) + `":1`), ReasonDuplicateMember, "1", `\u2026`},
		{call(`"name":"a","name":"b"`), ReasonDuplicateMember, "1", `params`},
		{call(`"name":"a","n\u0061me":"b"`), ReasonDuplicateMember, "1", `params`},
		{call(`"Name":"a"`), ReasonMiscasedMember, "1", `params.name`},
		{call(`"\u004eame":"a"`), ReasonMiscasedMember, "1", `params.name`},
		{call(`"_Meta":{}`), ReasonMiscasedMember, "1", `params._meta`},
		{call(`"Arguments":{}`), ReasonMiscasedMember, "1", `params.arguments`},
		{call(`"Cursor":""`), ReasonMiscasedMember, "1", `params.cursor`},
		{call(`"Uri":""`), ReasonMiscasedMember, "1", `params.uri`},
		{call(`"RequestId":1`), ReasonMiscasedMember, "1", `params.requestId`},
		{call(`"requestid":1`), ReasonMiscasedMember, "1", `params.requestId`},
		{call(`"ProgressToken":1`), ReasonMiscasedMember, "1", `params.progressToken`},
		{call(`"tas\u212a":1`), ReasonMiscasedMember, "1", `params.task`},
		{call(`"x":1,"X":2`), ReasonDuplicateMember, "1", `"X"`},
		{call(`"é":1,"É":2`), ReasonDuplicateMember, "1", `params`},
		{call(`"k":1,"K":2`), ReasonDuplicateMember, "1", `params`},
		{call(`"s":1,"ſ":2`), ReasonDuplicateMember, "1", `params`},
		{call(`"_meta":{"progressToken":1,"progressToken":2}`), ReasonDuplicateMember, "1", `params._meta`},
		{call(`"_meta":{"progresstoken":1}`), ReasonMiscasedMember, "1", `params._meta.progressToken`},
		{call(`"_meta":{"io.modelcontextprotocol/ProtocolVersion":""}`), ReasonMiscasedMember, "1", `params._meta`},
		{call(`"_meta":{"IO.modelcontextprotocol/clientInfo":{}}`), ReasonMiscasedMember, "1", `params._meta`},
		{call(`"_meta":{},"_meta":{}`), ReasonDuplicateMember, "1", `params`},
		{`{"jsonrpc":"2.0","id":1,"result":{"ResultType":"x"}}`, ReasonMiscasedMember, "1", `result.resultType`},
		{`{"jsonrpc":"2.0","id":1,"error":{"Code":1}}`, ReasonMiscasedMember, "1", `error.code`},
	} {
		pe := refusal(t, c.raw, Downstream, Limits{})
		if pe.Reason != c.reason || string(pe.ID) != c.id || !strings.Contains(pe.Error(), c.names) {
			t.Errorf("%s: %s, id %s, %q; want %s, id %s, mentioning %s", c.raw, pe.Reason, pe.ID, pe, c.reason, c.id, c.names)
		}
	}
	for _, ok := range []string{
		call(`"arguments":{"a":1,"a":2,"A":3,"Name":"x","name":"y"}`),
		call(`"name":"a","namespace":1,"nam":2,"_meta":{"Name":"x","io.modelcontextprotocol/other":1}`),
		call(`"@":1,"` + "`" + `":2,"[":3,"{":4`), // differ in the bit that letters of two cases differ in
		call(`"n\u0061me":"b"`),
	} {
		if f := mustParse(t, ok, Downstream); string(f.Raw) != ok {
			t.Errorf("%s became %s", ok, f.Raw)
		}
	}
	f := mustParse(t, call(`"n\u0061me":"b"`), Downstream)
	if got := f.Body.Get(f.Raw, "name").Of(f.Raw); string(got) != `"b"` {
		t.Errorf("a name with an escape is read as %s", got)
	}
}

func TestDuplicatesOfServers(t *testing.T) {
	for _, c := range []struct {
		raw     string
		refused bool
	}{
		{`{"jsonrpc":"2.0","id":1,"id":2,"result":{}}`, true},
		{`{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`, true},
		{`{"jsonrpc":"2.0","method":"m","params":{},"params":{}}`, true},
		{`{"jsonrpc":"2.0","id":1,"result":{"resultType":"a","resultType":"b"}}`, true},
		{`{"jsonrpc":"2.0","id":1,"result":{"content":[],"content":[]}}`, true},
		{`{"jsonrpc":"2.0","id":1,"result":{"_meta":{},"_m\u0065ta":{}}}`, true},
		{`{"jsonrpc":"2.0","id":1,"result":{"nextCursor":"","nextCursor":"x"}}`, true},
		{`{"jsonrpc":"2.0","method":"m","params":{"_meta":{"progressToken":1,"progressToken":2}}}`, true},
		{`{"jsonrpc":"2.0","x":1,"x":2,"id":1,"result":{"y":1,"y":2,"Content":1,"content":[]},"ID":7}`, false},
		{`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"a","type":"b"}]}}`, false},
	} {
		f, err := Parse([]byte(c.raw), Upstream, Limits{})
		var pe *ParseError
		if refused := errors.As(err, &pe); refused != c.refused || refused && pe.Reason != ReasonDuplicateMember {
			t.Errorf("%s: %v", c.raw, err)
		} else if !refused && string(f.Raw) != c.raw {
			t.Errorf("%s became %s", c.raw, f.Raw)
		}
	}
	f := mustParse(t, `{"jsonrpc":"2.0","id":1,"result":{"y":1,"y":2}}`, Upstream)
	if got := f.Body.Get(f.Raw, "y").Of(f.Raw); string(got) != "2" {
		t.Errorf("of two members %s counts, want the last", got)
	}
}

func TestManyMembersAreComparedToo(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"jsonrpc":"2.0","id":1,"method":"m","params":{`)
	for i := range 200 {
		fmt.Fprintf(&b, `"key%d":0,`, i)
	}
	mustParse(t, b.String()+`"last":1}}`, Downstream)
	if pe := refusal(t, b.String()+`"KEY7":1}}`, Downstream, Limits{}); pe.Reason != ReasonDuplicateMember {
		t.Errorf("duplicate among many: %v", pe)
	}
	if pe := refusal(t, b.String()+`"NAME":1}}`, Downstream, Limits{}); pe.Reason != ReasonMiscasedMember {
		t.Errorf("mis-cased among many: %v", pe)
	}
}

func TestLimits(t *testing.T) {
	nested := func(n int) string { // the message and params are two levels
		return `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":` + strings.Repeat("[", n-2) + strings.Repeat("]", n-2) + `}}`
	}
	mustParse(t, nested(DefaultMaxDepth), Downstream)
	for _, c := range []struct {
		raw string
		lim Limits
	}{
		{nested(DefaultMaxDepth + 1), Limits{}},
		{nested(5), Limits{MaxDepth: 4}},
		{strings.Replace(nested(200_000), `"id":1,`, ``, 1), Limits{MaxDepth: 1 << 40}},
		{strings.Repeat(`{"a":`, 1000), Limits{}},
	} {
		if pe := refusal(t, c.raw, Downstream, c.lim); pe.Reason != ReasonTooDeep {
			t.Errorf("%.60s: %v", c.raw, pe)
		}
	}
	members := `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"b":2,"c":3,"d":4,"e":{"1":1,"2":1,"3":1,"4":1,"5":1,"6":1}}}`
	mustParse(t, members, Downstream)
	if _, err := Parse([]byte(members), Downstream, Limits{MaxMembers: 5}); err != nil {
		t.Errorf("five members with a limit of five: %v", err)
	}
	if pe := refusal(t, members, Downstream, Limits{MaxMembers: 4}); pe.Reason != ReasonTooManyMembers || string(pe.ID) != "1" {
		t.Errorf("five members with a limit of four: %+v", pe)
	}
}

func TestBytesGoThrough(t *testing.T) {
	for _, v := range []string{
		`9007199254740993`, `1.10`, `1e400`, `-0`, `-0.0e-0`, `"\u00e9\/\ud83d\ude42"`, `{"z":1,"a":2,"M":3}`, `{"a":1,"a":2}`,
		"\"\u2028\u2029\u0085\u007f\"", `"\ud800"`, `"\udc00\ud800x"`, `"\u0000"`, `[ 1 , { } , [ ] ]`, `"😀é"`, `true`, `null`,
	} {
		raw := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"v":` + v + `}}}`
		if f := mustParse(t, raw, Downstream); string(f.Raw) != raw {
			t.Errorf("%s became %s", raw, f.Raw)
		}
		raw = `{"jsonrpc":"2.0","id":1,"result":{"structuredContent":` + v + `}}`
		if f := mustParse(t, raw, Upstream); string(f.Raw) != raw {
			t.Errorf("%s became %s", raw, f.Raw)
		}
	}
}

func TestLineBreaksBetweenTokens(t *testing.T) {
	raw := "\uFEFF \r\n{\"jsonrpc\":\"2.0\",\"id\":1,\n\"method\":\"tools/call\",\"params\":{\"arguments\":{\"a\":\r\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call"}` + "\n,\t\"b\":1}}}\n \t"
	want := `{"jsonrpc":"2.0","id":1, "method":"tools/call","params":{"arguments":{"a":  {"jsonrpc":"2.0","id":2,"method":"tools/call"} ,` + "\t" + `"b":1}}}`
	for _, side := range []Side{Downstream, Upstream} {
		if f := mustParse(t, raw, side); string(f.Raw) != want {
			t.Errorf("%q became %q, want %q", raw, f.Raw, want)
		}
	}
}
