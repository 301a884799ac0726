package clients

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// session plays a proxy with legacy sessions: initialize opens s1, s2 and so on; call answers the rest.
func session(call func(v *visit)) *far {
	f := &far{}
	opened := 0
	f.script = func(_ int, v *visit) {
		switch {
		case strings.Contains(v.body, `"initialize"`):
			f.mu.Lock()
			opened++
			v.w.Header().Set("Mcp-Session-Id", fmt.Sprintf("s%d", opened))
			f.mu.Unlock()
			v.json(http.StatusOK, initResult)
		case strings.Contains(v.body, "notifications/"):
			v.w.WriteHeader(http.StatusAccepted)
		case v.verb == http.MethodDelete:
			v.w.WriteHeader(http.StatusNoContent)
		default:
			call(v)
		}
	}
	return f
}

// holdGet keeps a GET stream open.
func holdGet(v *visit) {
	v.w.Header().Set("Content-Type", "text/event-stream")
	v.flush()
	<-v.gone
}

func TestBridgeLegacySession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := session(func(v *visit) {
			if v.verb == http.MethodGet {
				v.event("", `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				holdGet(v)
				return
			}
			v.event("", `{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
			v.event("", answerA)
		})
		k := dial(t, f, "secret")
		want(t, "initialize", k.say(initialize), initResult)
		want(t, "initialized", k.say(initialized), "list_changed")
		want(t, "a call", k.say(callA), `"id":"q","method":"roots/list"`, answerA)
		want(t, "an answer", k.say(`{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}`))
		k.end()
		seen := f.seen()
		verbs := ""
		for _, v := range seen {
			verbs += v.verb[:1]
		}
		if verbs != "PPGPPD" {
			t.Fatalf("the requests are %s", verbs)
		}
		wantHeader(t, "initialize", seen[0], "Mcp-Session-Id", "", "Mcp-Protocol-Version", "", "Authorization", "Bearer secret", "Content-Type", "application/json")
		for _, v := range seen[1:] {
			wantHeader(t, v.verb+" "+v.body, v, "Mcp-Session-Id", "s1", "Mcp-Protocol-Version", "2025-06-18", "Authorization", "Bearer secret", "Mcp-Method", "")
		}
		if seen[3].body != callA {
			t.Errorf("the call has become %s", seen[3].body)
		}
	})
}

func TestBridgeOpensLostSessionsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := false
		var f *far
		f = session(func(v *visit) {
			f.mu.Lock()
			gone := lost && v.header.Get("Mcp-Session-Id") == "s1"
			f.mu.Unlock()
			switch {
			case gone:
				v.json(http.StatusNotFound, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no such session"}}`)
			case v.verb == http.MethodGet:
				holdGet(v)
			default:
				v.json(http.StatusOK, strings.Replace(answerA, `"A"`, v.body[strings.Index(v.body, `"id":`)+5:strings.Index(v.body, `,"method"`)], 1))
			}
		})
		k := dial(t, f, "")
		k.say(initialize, initialized)
		f.mu.Lock()
		lost = true
		f.mu.Unlock()
		for _, id := range []string{`"A"`, "2", "3"} { // all at once
			_, _ = fmt.Fprintln(k.in, strings.Replace(callA, `"A"`, id, 1))
		}
		got := strings.Join(k.heard(), "\n")
		for _, text := range []string{`"id":"A","result"`, `"id":2,"result"`, `"id":3,"result"`, "notifications/tools/list_changed"} {
			if strings.Count(got, text) != 1 {
				t.Errorf("there is not one %s in\n%s", text, got)
			}
		}
		if strings.Contains(got, "prompts/list_changed") || strings.Contains(got, initResult) {
			t.Errorf("too much is told:\n%s", got)
		}
		k.end()
		opened, last := 0, f.seen()[len(f.seen())-1]
		for _, v := range f.seen() {
			if v.body == initialize {
				opened++
			}
		}
		if opened != 2 {
			t.Errorf("sessions were opened %d times, want twice", opened)
		}
		wantHeader(t, "the end", last, "Mcp-Session-Id", "s2")
	})
}

func TestBridgeKeepsTrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := session(func(v *visit) {
			if v.verb == http.MethodGet {
				v.w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			v.json(http.StatusOK, answerA)
		})
		f.away(true)
		k := dial(t, f, "")
		want(t, "initialize", k.say(initialize), `"id":0,"error":{"code":-32603,"message":"the proxy at `+farURL+` cannot be reached`)
		want(t, "a call", k.say(callA), `"id":"A","error":{"code":-32603`)
		want(t, "a notification", k.say(initialized))
		f.away(false)
		got := k.say(callA)
		slices.Sort(got)
		want(t, "a call when it can be reached", got, answerA, "tools/list_changed")
		f.away(true)
		want(t, "a call when it has gone", k.say(callA), `"data":{"reason":"unavailable"}`)
		k.end()
		var did []string
		for _, v := range f.seen() {
			did = append(did, v.verb+" "+v.body)
		}
		want(t, "the requests", did, "POST "+initialize, "POST "+initialized, "", "")
	})
}

func TestBridgeStandingStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gets := 0
		var f *far
		f = session(func(v *visit) {
			f.mu.Lock()
			gets++
			n := gets
			f.mu.Unlock()
			switch n {
			case 1:
				v.event("e7", `{"jsonrpc":"2.0","method":"notifications/a"}`)
			case 2:
				v.w.WriteHeader(http.StatusServiceUnavailable)
			case 3:
				v.event("e8", `{"jsonrpc":"2.0","method":"notifications/b"}`)
				holdGet(v)
			}
		})
		k := dial(t, f, "")
		k.say(initialize)
		want(t, "the first stream", k.say(initialized), "notifications/a")
		<-time.After(time.Minute)
		want(t, "the third", k.heard(), "notifications/b")
		k.end()
		seen := f.seen()
		wantHeader(t, "the first", seen[2], "Last-Event-Id", "")
		wantHeader(t, "the second", seen[3], "Last-Event-Id", "e7")
		wantHeader(t, "the third", seen[4], "Last-Event-Id", "e7", "Accept", "text/event-stream")
	})
}

func TestBridgeBrokenStreams(t *testing.T) {
	for _, tt := range []struct {
		name  string
		first func(v *visit)
		again func(v *visit)
		want  []string
	}{
		{"with ids", func(v *visit) { v.event("e1", `{"jsonrpc":"2.0","method":"notifications/progress"}`) }, func(v *visit) { v.event("e2", answerA) },
			[]string{"notifications/progress", answerA}},
		{"twice", func(v *visit) { v.event("e1", "") }, func(v *visit) {
			if v.header.Get("Last-Event-Id") == "e1" {
				v.event("e2", "")
				return
			}
			v.event("e3", answerA)
		}, []string{answerA}},
		{"without ids", func(v *visit) { v.event("", `{"jsonrpc":"2.0","method":"notifications/progress"}`) }, nil,
			[]string{"notifications/progress", `"data":{"reason":"uncertain"}`}},
		{"and not taken up", func(v *visit) { v.event("e1", "") }, func(v *visit) { v.w.WriteHeader(http.StatusNotFound) },
			[]string{`"data":{"reason":"uncertain"}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := session(func(v *visit) {
					switch {
					case v.verb == http.MethodPost:
						tt.first(v)
					case v.header.Get("Last-Event-Id") == "":
						v.w.WriteHeader(http.StatusMethodNotAllowed)
					default:
						tt.again(v)
					}
				})
				k := dial(t, f, "")
				k.say(initialize, initialized)
				_, _ = fmt.Fprintln(k.in, callA)
				<-time.After(5 * time.Minute)
				want(t, "the call", k.heard(), tt.want...)
				k.end()
			})
		})
	}
}

func TestBridgeLegacyCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := session(func(v *visit) {
			if v.verb == http.MethodGet {
				v.w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			v.event("", `{"jsonrpc":"2.0","method":"notifications/one"}`)
			<-time.After(3 * time.Second)
			v.event("", `{"jsonrpc":"2.0","method":"notifications/two"}`)
			v.event("", answerA)
		})
		k := dial(t, f, "")
		k.say(initialize, initialized)
		want(t, "the call", k.say(callA), "notifications/one")
		k.say(cancelA)
		<-time.After(time.Minute)
		want(t, "after the cancel", k.heard())
		want(t, "a cancel of what is over", k.say(cancelA))
		k.end()
		cancels := 0
		for _, v := range f.seen() {
			if v.body == cancelA {
				cancels++
				wantHeader(t, "a cancel", v, "Mcp-Session-Id", "s1")
			}
		}
		if cancels != 2 { // nothing had ended a second after the first
			t.Errorf("%d cancels were sent, want two", cancels)
		}
	})
}

func TestBridgeOddAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(v *visit)
		want   string
	}{
		{"an error without an id", func(v *visit) {
			v.json(http.StatusRequestEntityTooLarge, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"too large","data":{"n":1}}}`)
		}, `{"jsonrpc":"2.0","id":"A","error":{"code":-32600,"message":"too large","data":{"n":1}}}`},
		{"a page", func(v *visit) {
			v.w.WriteHeader(http.StatusBadGateway)
			_, _ = v.w.Write([]byte("<html>"))
		}, `"reason":"transport_error"`},
		{"nothing", func(v *visit) { v.w.WriteHeader(http.StatusAccepted) }, `"reason":"transport_error"`},
		{"a redirect", func(v *visit) {
			v.w.Header().Set("Location", "/elsewhere")
			v.w.WriteHeader(http.StatusTemporaryRedirect)
		}, "redirects are not followed"},
		{"no token", func(v *visit) {
			v.json(http.StatusUnauthorized, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}`)
		}, "THE_TOKEN"},
		{"the wrong place", func(v *visit) { v.w.WriteHeader(http.StatusMethodNotAllowed) }, "is this the URL of an MCP endpoint?"},
		{"line breaks", func(v *visit) { v.json(http.StatusOK, "{\"jsonrpc\":\"2.0\",\r\n\"id\":\"A\",\n\"result\":{}}\n") }, `{"jsonrpc":"2.0",  "id":"A", "result":{}}`},
		{"another's answer on the stream", func(v *visit) {
			v.event("", "no message")
			v.event("", answerA)
		}, answerA},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &far{script: func(_ int, v *visit) { tt.answer(v) }}
				k := dial(t, f, "")
				want(t, "legacy", k.say(callA), tt.want)
				modern := strings.Replace(callA, `"arguments"`, modernMeta+`,"arguments"`, 1)
				want(t, "modern", k.say(modern), tt.want)
				k.end()
			})
		})
	}
}

func TestBridgeWhatIsNoMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{script: func(_ int, v *visit) { v.json(http.StatusOK, answerA) }}
		k := dial(t, f, "")
		want(t, "no JSON", k.say("no JSON"), `"id":null,"error":{"code":-32700`)
		want(t, "no method", k.say(`{"jsonrpc":"2.0","id":5,"method":1}`), `"id":5,"error":{"code":-32600`)
		want(t, "blank lines", k.say("", "\ufeff"))
		if n := len(f.seen()); n != 0 {
			t.Errorf("%d requests were made for it", n)
		}
		want(t, "a call after it", k.say(callA), answerA)
		k.end()
	})
}

func TestBridgeBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := session(func(v *visit) { v.json(http.StatusOK, "["+answerA+"]") })
		k := dial(t, f, "")
		k.say(initialize)
		want(t, "a batch", k.say("["+callA+"]"), "["+answerA+"]")
		k.end()
	})
}

func TestBridgeRefusesWhatIsNoURL(t *testing.T) {
	for _, u := range []string{"", "127.0.0.1:8080", "ftp://far.test/", "http:///mcp", "http://a b/"} {
		b := &Bridge{URL: u}
		if err := b.Run(t.Context(), strings.NewReader(""), nil); !errors.Is(err, ErrBridgeURL) {
			t.Errorf("%q: %v", u, err)
		}
	}
}

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
