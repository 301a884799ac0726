package proxy

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// toolAnswer is the result of a call as a client reads it.
type toolAnswer struct {
	Content []struct {
		Type, Text, URI, MimeType string
		Size                      int
	}
	IsError           bool
	StructuredContent json.RawMessage
	ResultType        string
	Meta              map[string]json.RawMessage `json:"_meta"`
	raw               string
}

func (st *stage) callTool(c *Caller, name string) toolAnswer {
	st.t.Helper()
	a := st.request(c, nil, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"`+name+`","arguments":{}}}`)
	return st.read(a)
}

func (st *stage) read(a Answer) toolAnswer {
	st.t.Helper()
	var frame struct {
		ID     int
		Result json.RawMessage
	}
	var out toolAnswer
	if err := json.Unmarshal(a.Bytes(), &frame); err != nil || frame.ID != 7 {
		st.t.Fatalf("%s: %v", a.Bytes(), err)
	}
	if err := json.Unmarshal(frame.Result, &out); err != nil {
		st.t.Fatalf("%s: %v", a.Bytes(), err)
	}
	out.raw = string(frame.Result)
	return out
}

type keptPage struct {
	URI, MimeType string
	Text, Blob    *string
	Meta          map[string]string `json:"_meta"`
}

// page reads one page of what is kept; nothing where the answer is an error, whose text is given then.
func (st *stage) page(c *Caller, uri string) (_ []keptPage, refusal string) {
	st.t.Helper()
	raw := st.text(c, `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"`+uri+`"}}`)
	var frame struct {
		Result *struct{ Contents []keptPage }
	}
	if err := json.Unmarshal([]byte(raw), &frame); err != nil {
		st.t.Fatalf("%s: %v", raw, err)
	}
	if frame.Result == nil {
		return nil, raw
	}
	if len(raw) > resultBound+256 {
		st.t.Errorf("a page has %d bytes", len(raw))
	}
	if c.Era == wire.Modern && (!strings.Contains(raw, `"cacheScope":"private"`) || !strings.Contains(raw, `"resultType":"complete"`)) {
		st.t.Errorf("a modern page is %s", raw)
	}
	return frame.Result.Contents, ""
}

// pages reads all of what is kept.
func (st *stage) pages(c *Caller, uri string) (text, mime string, n int) {
	st.t.Helper()
	for next := uri; next != ""; n++ {
		got, refusal := st.page(c, next)
		if refusal != "" || got[0].URI != next {
			st.t.Fatalf("%s gives %v %s", next, got, refusal)
		}
		if got[0].Blob != nil {
			b, err := base64.StdEncoding.DecodeString(*got[0].Blob)
			if err != nil {
				st.t.Fatal(err)
			}
			text += string(b)
		} else {
			if !utf8.ValidString(*got[0].Text) || strings.ContainsRune(*got[0].Text, utf8.RuneError) {
				st.t.Errorf("a page cuts a character: %q", *got[0].Text)
			}
			text += *got[0].Text
		}
		mime, next = got[0].MimeType, got[0].Meta[metaNextPage]
		if len(got) != 1 != (next != "") || next != "" && (got[1].URI != next || !strings.Contains(*got[1].Text, next)) {
			st.t.Errorf("a page names the next as %v", got)
		}
	}
	return text, mime, n
}

// wantNobodyElse looks whether others hear the same of what is kept as of what never was.
func (st *stage) wantNobodyElse(c *Caller, uri string) {
	st.t.Helper()
	for what, change := range map[string]func(*Caller){
		"another principal": func(c *Caller) { c.Principal = "bob" },
		"another endpoint":  func(c *Caller) { c.View = ServerView("up") },
		"nobody":            func(c *Caller) { c.Principal = "" },
	} {
		other := *c
		change(&other)
		never := strings.Replace(uri, "result://", "result://x", 1)
		_, refusal := st.page(&other, uri)
		_, want := st.page(&other, never)
		if refusal == "" || strings.ReplaceAll(refusal, uri, "URI") != strings.ReplaceAll(want, never, "URI") {
			st.t.Errorf("%s hears %s, and of what never was %s", what, refusal, want)
		}
	}
	for _, wrong := range []string{uri + "?offset=1", uri + "?offset=-1", uri + "?offset=007", uri + "?offset=999999999", uri + "?offset=x", uri + "/more"} {
		if _, refusal := st.page(c, wrong); refusal == "" {
			st.t.Errorf("%s can be read", wrong)
		}
	}
	if got, refusal := st.page(c, uri+"/"); refusal != "" || len(got) == 0 {
		st.t.Errorf("with a slash behind it: %s", refusal)
	}
}
