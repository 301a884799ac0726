package wire

import "testing"

func TestPlainResults(t *testing.T) {
	for _, c := range []struct {
		name, result, value, text string
		failed                    bool
	}{
		{"structured content as it is", `{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":9007199254740993, "m":1.10}}`, `{"n":9007199254740993, "m":1.10}`, "", false},
		{"structured content that is no object", `{"content":[],"structuredContent":[1]}`, `[1]`, "", false},
		{"no structured content", `{"content":[{"type":"text","text":"a\nb"}],"structuredContent":null}`, `"a\nb"`, "a\nb", false},
		{"one text", `{"content":[{"type":"text","text":"\u00e4","annotations":{}}]}`, `"\u00e4"`, "ä", false},
		{"an empty text", `{"content":[{"type":"text","text":""}]}`, `""`, "", false},
		{"several blocks", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, "", false},
		{"one block that is no text", `{"content":[{"type":"image","data":"","mimeType":"image/png"}]}`, `[{"type":"image","data":"","mimeType":"image/png"}]`, "", false},
		{"no text in a text", `{"content":[{"type":"text"}]}`, `[{"type":"text"}]`, "", false},
		{"nothing", `{"content":[]}`, `[]`, "", false},
		{"no content", `{}`, `[]`, "", false},
		{"content that is none", `{"content":7}`, `[]`, "", false},
		{"a failure", `{"content":[{"type":"text","text":"no"}],"isError":true}`, `"no"`, "no", true},
	} {
		f, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":`+c.result+`}`), Upstream, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got := PlainResult(f)
		if string(got.Value) != c.value || got.Text != c.text || got.Failed != c.failed {
			t.Errorf("%s: %s %q %v", c.name, got.Value, got.Text, got.Failed)
		}
	}
}
