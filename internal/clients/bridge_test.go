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
