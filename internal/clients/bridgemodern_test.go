package clients

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func TestBridgeModernHeaders(t *testing.T) {
	for _, tt := range []struct{ method, member, name, header string }{
		{"tools/call", "name", "plain", "plain"},
		{"tools/call", "name", "größe", wire.EncodeHeader("größe")},
		{"prompts/get", "name", " p", wire.EncodeHeader(" p")},
		{"resources/read", "uri", "file:///x", "file:///x"},
		{"tasks/get", "taskId", "t1", "t1"},
		{"tools/list", "name", "ignored", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &far{script: func(_ int, v *visit) { v.json(http.StatusOK, answerA) }}
			k := dial(t, f, "")
			line := `{"jsonrpc":"2.0","id":"A","method":"` + tt.method + `","params":{"` + tt.member + `":` + string(wire.AppendString(nil, tt.name)) + `,` + modernMeta + `}}`
			want(t, tt.method, k.say(line), answerA)
			wantHeader(t, tt.method, f.seen()[0], "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", tt.method, "Mcp-Name", tt.header, "Mcp-Session-Id", "")
			if f.seen()[0].body != line {
				t.Errorf("sent is %s", f.seen()[0].body)
			}
			k.end()
			if n := len(f.seen()); n != 1 {
				t.Errorf("%d requests, want one", n)
			}
		})
	}
}

func TestBridgeModernParams(t *testing.T) {
	const list = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object","properties":{` +
		`"region":{"type":"string","x-mcp-header":"Region"},"in":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"bad":{"type":"string","x-mcp-header":"a b"}}}}]}}`
	const call = `{"jsonrpc":"2.0","id":"A","method":"tools/call","params":{"name":"t","arguments":{"region":"Süd","in":{"n":7},"bad":"x"},` + modernMeta + `}}`
	const mismatch = `{"jsonrpc":"2.0","id":"A","error":{"code":-32020,"message":"the header Mcp-Param-Region is missing"}}`
	script := func(_ int, v *visit) {
		switch {
		case strings.Contains(v.body, "tools/list"):
			v.json(http.StatusOK, list)
		case v.header.Get("Mcp-Param-Region") == "":
			v.json(http.StatusBadRequest, mismatch)
		default:
			v.json(http.StatusOK, answerA)
		}
	}
	for name, lines := range map[string][]string{
		"listed":     {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`, call},
		"not listed": {call},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &far{script: script}
				k := dial(t, f, "")
				got := k.say(lines...)
				want(t, "the call", got[len(got)-1:], answerA)
				k.end()
				last := f.seen()[len(f.seen())-1]
				wantHeader(t, "the call", last, "Mcp-Param-Region", wire.EncodeHeader("Süd"), "Mcp-Param-N", "7", "Mcp-Param-A b", "")
			})
		})
	}
	t.Run("still refused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &far{script: func(_ int, v *visit) {
				if strings.Contains(v.body, "tools/list") {
					v.json(http.StatusOK, list)
					return
				}
				v.json(http.StatusBadRequest, mismatch)
			}}
			k := dial(t, f, "")
			want(t, "the call", k.say(call), mismatch)
			k.end()
			if n := len(f.seen()); n != 3 {
				t.Errorf("%d requests, want three", n)
			}
		})
	})
}

func TestBridgeModernCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{script: func(_ int, v *visit) { <-v.gone }}
		k := dial(t, f, "")
		k.say(strings.Replace(callA, `"arguments"`, modernMeta+`,"arguments"`, 1))
		want(t, "the cancel", k.say(cancelA))
		seen := f.seen()
		select {
		case <-seen[0].gone:
		default:
			t.Error("the response is still open")
		}
		if len(seen) != 1 {
			t.Errorf("%d requests were made, want one: the cancel is no request", len(seen))
		}
		k.end()
	})
}

func TestBridgeListen(t *testing.T) {
	const ack = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"},` +
		`"notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///x"]}}}`
	const line = `{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{},` + modernMeta + `}}`
	synctest.Test(t, func(t *testing.T) {
		f := &far{script: func(n int, v *visit) {
			if n == 1 {
				v.w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			v.event("", ack)
			if n == 2 {
				holdGet(v)
			}
		}}
		k := dial(t, f, "")
		want(t, "listen", k.say(line), ack)
		<-time.After(time.Minute)
		want(t, "after the gap", k.heard(), `notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}`,
			`notifications/resources/updated","params":{"uri":"file:///x","_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}`)
		want(t, "cancel", k.say(strings.Replace(cancelA, `"A"`, `"L"`, 1)))
		select {
		case <-f.seen()[2].gone:
		default:
			t.Error("the stream is still open")
		}
		f.away(true)
		want(t, "listen without a proxy", k.say(line), `"id":"L","error"`)
		k.end()
	})
}

func TestBridgeTheEndClosesWhatIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deleted := make(chan struct{})
		f := session(func(v *visit) {
			if v.verb == http.MethodGet {
				holdGet(v)
				return
			}
			v.event("", `{"jsonrpc":"2.0","method":"notifications/begun"}`)
			select {
			case <-v.gone:
			case <-deleted: // the proxy ends what runs in the session
			}
		})
		script := f.script
		f.script = func(n int, v *visit) {
			script(n, v)
			if v.verb == http.MethodDelete {
				close(deleted)
				synctest.Wait()
			}
		}
		k := dial(t, f, "")
		k.say(initialize, initialized, callA, strings.Replace(strings.Replace(callA, `"A"`, "5", 1), `"arguments"`, modernMeta+`,"arguments"`, 1))
		began := time.Now()
		k.end()
		if took := time.Since(began); took > partGrace {
			t.Errorf("the end took %v", took)
		}
		want(t, "nothing is said any more", k.heard())
		for _, v := range f.seen() {
			select {
			case <-v.gone:
			default:
				t.Errorf("%s %s is still open", v.verb, v.body)
			}
		}
	})
}
