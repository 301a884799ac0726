package cheapmcp

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, message             string
		id, method, tool, version string
		modern                    bool
	}{
		{"ping", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "1", "ping", "", "", false},
		{"id last", `{"method":"ping","id":"a"}`, `"a"`, "ping", "", "", false},
		{"id with a quote and a brace", `{"id":"a\"}","method":"ping"}`, `"a\"}"`, "ping", "", "", false},
		{"spaces", " { \"id\" :\t7 ,\r\n \"method\" : \"ping\" } ", "7", "ping", "", "", false},
		{"notification", `{"method":"notifications/initialized"}`, "", "notifications/initialized", "", "", false},
		{"call", `{"id":1,"method":"tools/call","params":{"arguments":{"name":"no"},"name":"yes"}}`, "1", "tools/call", "yes", "", false},
		{"id in params", `{"params":{"id":2},"method":"x"}`, "", "x", "", "", false},
		{"initialize", `{"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`, "1", "initialize", "", "2025-06-18", false},
		{
			"modern", `{"id":1,"method":"x","params":{"protocolVersion":"no","_meta":{"a":[{}],"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
			"1", "x", "", "2026-07-28", true,
		},
		{
			"version among the arguments", `{"id":1,"method":"x","params":{"arguments":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}}`,
			"1", "x", "", "", false,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			req, ok := parse([]byte(test.message))
			if !ok {
				t.Fatal("not read")
			}
			for _, pair := range [][2]string{
				{string(req.id), test.id},
				{string(req.method), test.method},
				{string(req.name), test.tool},
				{string(req.version), test.version},
			} {
				if pair[0] != pair[1] {
					t.Errorf("got %q, want %q", pair[0], pair[1])
				}
			}
			if req.modern != test.modern {
				t.Errorf("modern is %v", req.modern)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, message := range []string{``, `1`, `"a"`, `{"a"}`, `{"a":`, `{"a":"b`, `{"a":{`, `{1:2}`, `{"a":"\`} {
		if _, ok := parse([]byte(message)); ok {
			t.Errorf("%q was read", message)
		}
	}
}

// FuzzParse compares with encoding/json wherever that has one answer: valid
// objects without escaped or repeated names.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1,{"y":"}"}]}}}`))
	f.Add([]byte(` {"id" : "a\\\"" , "params":{"_meta":{}}} `))
	f.Add([]byte(`{"id":`))
	f.Fuzz(func(t *testing.T, message []byte) {
		req, ok := parse(message)
		var want map[string]json.RawMessage
		if bytes.ContainsAny(message, `\`) || json.Unmarshal(message, &want) != nil || want == nil {
			return
		}
		if !ok {
			t.Fatalf("%q was refused", message)
		}
		if bytes.Count(message, []byte(`"id"`)) == 1 && !bytes.Equal(req.id, want["id"]) {
			t.Errorf("id %q, want %q", req.id, want["id"])
		}
	})
}
