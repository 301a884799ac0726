package proxy

import "testing"

func TestWhichAnswersOfAPersonAreTaken(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer","minimum":1},"s":{"type":"string","enum":["a","b"]}},"required":["n"]}`
	for _, c := range []struct {
		schema, result string
		want           bool
	}{
		{schema, `{"action":"accept","content":{"n":1}}`, true},
		{schema, `{"action":"accept","content":{"n":1,"s":"b","more":true}}`, true},
		{schema, `{"action":"accept","content":{"n":0}}`, false},
		{schema, `{"action":"accept","content":{"n":"1"}}`, false},
		{schema, `{"action":"accept","content":{"n":1,"s":"c"}}`, false},
		{schema, `{"action":"accept","content":{}}`, false},
		{schema, `{"action":"accept","content":null}`, false},
		{schema, `{"action":"accept","content":[1]}`, false},
		{schema, `{"action":"accept"}`, false},
		{schema, `{"action":"decline"}`, true},
		{schema, `{"action":"cancel","content":{"n":"x"}}`, true},
		{schema, `"accept"`, false},
		{schema, `null`, false},
		{"", `{"action":"accept"}`, true},                                            // a page that was visited
		{`{"type":7}`, `{"action":"accept","content":{}}`, true},                     // a schema that nobody understands
		{`{"$ref":"https://x/y"}`, `{"action":"accept","content":{}}`, true},         // one that is elsewhere
		{`{"type":"object"}`, `{"action":"accept","content":{"n":1e400}}`, false},    // no number at all
		{`{"required":["a\u0062"]}`, `{"action":"accept","content":{"ab":1}}`, true}, // escapes
	} {
		if got := acceptable([]byte(c.schema), []byte(c.result)); got != c.want {
			t.Errorf("%s for %s: %v", c.result, c.schema, got)
		}
	}
}
