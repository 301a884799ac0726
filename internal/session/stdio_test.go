package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/lines"
)

// talk is one conversation over pipes.
type talk struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *io.PipeReader
	stop context.CancelFunc
	done chan error

	mu    sync.Mutex
	lines []string
}

func bodyLimit(o *Options) { o.Limits.MaxBodyBytes = 1000 }

// talk begins a conversation. Unless it is mute, what comes is read at once.
func (st *stage) talk(mute bool) *talk {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	k := &talk{t: st.t, in: inW, out: outR, stop: cancel, done: make(chan error, 1)}
	go func() {
		k.done <- st.m.ServeStdio(ctx, inR, outW, "")
		_ = outW.Close()
	}()
	if !mute {
		go k.read()
	}
	return k
}

func (k *talk) read() {
	in := bufio.NewScanner(k.out)
	for in.Scan() {
		k.mu.Lock()
		k.lines = append(k.lines, in.Text())
		k.mu.Unlock()
	}
}

// say sends lines and gives what has come when everybody is waiting again.
func (k *talk) say(text ...string) []string {
	k.t.Helper()
	for _, line := range text {
		if _, err := io.WriteString(k.in, line+"\n"); err != nil {
			k.t.Errorf("writing %.60q: %v", line, err)
		}
	}
	return k.heard()
}

// heard gives what has come since it was last asked.
func (k *talk) heard() []string {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.lines
	k.lines = nil
	return out
}

// ends waits for the end and gives the error.
func (k *talk) ends() error {
	err := <-k.done
	k.stop()
	_ = k.out.Close()
	_ = k.in.Close()
	return err
}

// wantLines fails the test unless there is one line with each of these texts, in this order.
func wantLines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := range min(len(got), len(want)) {
		ok = ok && strings.Contains(got[i], want[i])
	}
	if !ok {
		t.Errorf("%s: %d lines\n%s\nwant\n%s", what, len(got), strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func initLine(version string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
}

const (
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	cancelA     = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"A"}}`
	listenL     = `{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + modernMeta + `}}`
)

func TestStdioMessages(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []string
		want []string // the last line is answered with these
	}{
		{"ping first", []string{ping}, []string{`"id":1,"result":{}`}},
		{"initialize", []string{initLine("2025-06-18")}, []string{`"id":0,"result":{"protocolVersion":"2025-06-18"`}},
		{"an unknown revision", []string{initLine("2020-01-01")}, []string{`"protocolVersion":"2025-11-25"`}},
		{"initialize without a revision", []string{`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`}, []string{`-32602`}},
		{"initialize again", []string{initLine("2025-06-18"), initLine("2025-03-26")}, []string{`"protocolVersion":"2025-03-26"`}},
		{"initialized is not answered", []string{initLine("2025-11-25"), initialized}, nil},
		{"a legacy call", []string{initLine("2025-11-25"), callT}, []string{`{"jsonrpc":"2.0","id":"A","result":{"content":[]}}`}},
		{"a call before initialize", []string{callT}, []string{`"id":"A","error":{"code":-32602,"message":"params._meta lacks io.modelcontextprotocol/protocolVersion`}},
		{"a modern call", []string{callModern}, []string{`"resultType":"complete"`}},
		{"a modern call among legacy ones", []string{initLine("2025-11-25"), callModern}, []string{`"resultType":"complete"`}},
		{"a modern revision that nobody speaks", []string{strings.Replace(callModern, "2026-07-28", "2099-01-01", 1)}, []string{`"code":-32022`}},
		{"modern without capabilities", []string{strings.Replace(callModern, "/clientCapabilities", "/other", 1)}, []string{`-32602`}},
		{"discover", []string{`{"jsonrpc":"2.0","id":5,"method":"server/discover","params":{` + modernMeta + `}}`}, []string{`"supportedVersions"`}},
		{"initialize is not modern", []string{`{"jsonrpc":"2.0","id":5,"method":"initialize","params":{` + modernMeta + `}}`}, []string{`-32601`}},
		{"an unknown notification", []string{`{"jsonrpc":"2.0","method":"notifications/nothing"}`}, nil},
		{"an answer to nothing", []string{`{"jsonrpc":"2.0","id":"ask-1","result":{}}`}, nil},
		{"a cancel of nothing", []string{cancelA}, nil},
		{"blank", []string{"", " \t", "\ufeff"}, nil},
		{"no JSON", []string{"no JSON"}, []string{`"id":null,"error":{"code":-32700`}},
		{"no message", []string{`{"jsonrpc":"2.0","id":7}`}, []string{`"id":7,"error":{"code":-32600`}},
		{"too long", []string{`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"` + strings.Repeat("x", 1000) + `"}}`}, []string{"limits.max_body_bytes"}},
		{"a batch of another revision", []string{initLine("2025-06-18"), "[" + ping + "]"}, []string{"only in the revision 2025-03-26"}},
		{"a batch before initialize", []string{"[" + ping + "]"}, []string{"only in the revision 2025-03-26"}},
		{"an empty batch", []string{initLine("2025-03-26"), "[]"}, []string{`-32600`}},
		{"a batch of notifications", []string{initLine("2025-03-26"), "[" + initialized + "]"}, nil},
		{"a batch of one", []string{initLine("2025-03-26"), "[" + callT + "," + initialized + "]"}, []string{`[{"jsonrpc":"2.0","id":"A","result":{"content":[]}}]`}},
		{"a batch that cancels its own", []string{initLine("2025-03-26"), "[" + callT + "," + cancelA + "]"}, nil},
		{"initialize in a batch", []string{initLine("2025-03-26"), "[" + initLine("2025-03-26") + "]"}, []string{`[{"jsonrpc":"2.0","id":0,"error":{"code":-32600`}},
		{"a listen without a filter", []string{`{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{` + modernMeta + `}}`}, []string{`"id":"L","error":{"code":-32602`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, &backend{}, bodyLimit)
				defer st.stop()
				k := st.talk(false)
				last := len(tt.in) - 1
				k.say(tt.in[:last]...)
				wantLines(t, tt.in[last], k.say(tt.in[last]), tt.want...)
				_ = k.in.Close()
				if err := k.ends(); err != nil {
					t.Errorf("after the end of input: %v", err)
				}
			})
		})
	}
}

func TestStdioCancel(t *testing.T) {
	for name, call := range map[string]string{"old": callT, "new": callModern} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &backend{tool: never}
				st := newStage(t, b, bodyLimit)
				defer st.stop()
				k := st.talk(false)
				k.say(initLine("2025-11-25"), initialized)
				wantLines(t, "while it runs and when it is cancelled", k.say(call, cancelA))
				if n := b.received("notifications/cancelled"); n != 1 {
					t.Errorf("the upstream has got %d cancels, want one", n)
				}
				wantLines(t, "afterwards", k.say(ping), `"id":1,"result":{}`)
				_ = k.in.Close()
				_ = k.ends()
			})
		})
	}
}

func TestStdioCancelsNobodyOfTwoWithOneID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{tool: after(time.Minute)}, bodyLimit)
		defer st.stop()
		k := st.talk(false)
		k.say(initLine("2025-11-25"), callT, callT, cancelA)
		<-time.After(2 * time.Minute)
		wantLines(t, "both are answered", k.heard(), `"id":"A","result"`, `"id":"A","result"`)
		_ = k.in.Close()
		_ = k.ends()
	})
}

func TestStdioAnnouncements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const changed = `notifications/tools/list_changed`
		b := &backend{}
		st := newStage(t, b, bodyLimit)
		defer st.stop()
		k := st.talk(false)
		change := func() []string {
			b.change()
			<-time.After(time.Minute)
			return k.heard()
		}
		wantLines(t, "before anything", change())
		k.say(initLine("2025-11-25"))
		wantLines(t, "before initialized", change())
		wantLines(t, "what has changed meanwhile", k.say(initialized), changed)
		wantLines(t, "the next change", change(), changed)
		wantLines(t, "a subscription", k.say(listenL), `subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"},"notifications":{"toolsListChanged":true}}`)
		both := strings.Join(change(), "\n")
		if strings.Count(both, changed) != 2 || strings.Count(both, `subscriptionId":"L"`) != 1 {
			t.Errorf("a change is announced with\n%s", both)
		}
		wantLines(t, "the cancel of a subscription", k.say(strings.Replace(cancelA, `"A"`, `"L"`, 1)))
		wantLines(t, "a change after it", change(), changed)
		if n := st.metric("mcp_proxy_streams", "kind", "listen"); n != 0 {
			t.Errorf("%v subscriptions are counted, want none", n)
		}
		_ = k.in.Close()
		_ = k.ends()
	})
}

func TestStdioEndOfInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{tool: never}
		st := newStage(t, b, bodyLimit)
		defer st.stop()
		k := st.talk(false)
		k.say(initLine("2025-11-25"), initialized, listenL, callT, strings.Replace(callModern, `"A"`, `"B"`, 1))
		_ = k.in.Close()
		if err := k.ends(); err != nil {
			t.Errorf("the end of input is an error: %v", err)
		}
		wantLines(t, "after the end", k.heard())
		if n := b.received("notifications/cancelled"); n != 2 {
			t.Errorf("the upstream has got %d cancels, want two", n)
		}
		if n := st.endedUnits(); n != 1 {
			t.Errorf("upstreams were told of the end of %d units, want one", n)
		}
	})
}

func TestStdioShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{tool: never}, bodyLimit)
		defer st.stop()
		k := st.talk(false)
		k.say(initLine("2025-11-25"), initialized, callT, listenL)
		k.stop()
		if err := k.ends(); err != nil {
			t.Errorf("the end of the context is an error: %v", err)
		}
		got := strings.Join(k.heard(), "\n")
		for _, want := range []string{`"reason":"uncertain"`, `{"jsonrpc":"2.0","id":"L","result":{"resultType":"complete"`} {
			if !strings.Contains(got, want) {
				t.Errorf("there is no %s in\n%s", want, got)
			}
		}
	})
}

func TestStdioDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{tool: after(10 * time.Second)}, bodyLimit)
		defer st.stop()
		k := st.talk(false)
		k.say(initLine("2025-11-25"), initialized, callT, listenL)
		drained := make(chan struct{})
		go func() {
			st.m.Drain(t.Context())
			close(drained)
		}()
		wantLines(t, "subscriptions", k.heard(), `{"jsonrpc":"2.0","id":"L","result":{"resultType":"complete"`)
		wantLines(t, "a new call", k.say(strings.Replace(callT, `"A"`, `"B"`, 1)), `"id":"B","error":{"code":-32603,"message":"the proxy is stopping"`)
		<-drained
		if err := k.ends(); err != nil {
			t.Errorf("a drain is an error: %v", err)
		}
		wantLines(t, "what ran is answered", k.heard(), `"id":"A","result"`)
	})
}

func TestStdioBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{tool: never}, func(o *Options) {
			bodyLimit(o)
			o.Limits.MaxInFlight = 2
		})
		defer st.stop()
		k := st.talk(false)
		call := func(id string) string { return strings.Replace(callT, `"A"`, id, 1) }
		k.say(initLine("2025-11-25"), initialized)
		wantLines(t, "the third", k.say(callT, call("2"), call("3")), `"id":3,"error":{"code":-32603,"message":"too many requests are under way`)
		k.say(cancelA)
		wantLines(t, "one in place of the cancelled one", k.say(call("4")))
		wantLines(t, "the next", k.say(call("5")), `"id":5,"error"`)
		if n := st.metric("mcp_proxy_limit_exceeded_total", "limit", "in_flight"); n != 2 {
			t.Errorf("%v refusals are counted, want two", n)
		}
		_ = k.in.Close()
		_ = k.ends()
	})
}

func TestStdioClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := `"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 600_000) + `"}]}`
		b := &backend{tool: func(func(string, string)) string { return large }}
		st := newStage(t, b, bodyLimit)
		defer st.stop()
		k := st.talk(true)
		for _, line := range []string{initLine("2025-11-25"), callT, callT, callT} {
			_, _ = io.WriteString(k.in, line+"\n")
		}
		began := time.Now()
		if err := <-k.done; !errors.Is(err, lines.ErrNotRead) {
			t.Errorf("the conversation ended with %v", err)
		}
		if took := time.Since(began); took > writeTimeout+3*endGrace {
			t.Errorf("it took %v", took)
		}
		_ = k.in.Close()
		_ = k.out.Close()
		synctest.Wait()
	})
}

// FuzzStdio looks whether anything that a client may write makes more come back than lines of JSON.
func FuzzStdio(f *testing.F) {
	for _, seed := range []string{initLine("2025-03-26") + "\n[" + ping + "," + callT + "]\n", callModern + "\n" + cancelA, listenL, "\ufeff{\n", `[{}]`, "[" + ping + "\n"} {
		f.Add([]byte(seed))
	}
	var once sync.Once
	var st *stage
	f.Cleanup(func() {
		if st != nil {
			st.stop()
		}
	})
	f.Fuzz(func(t *testing.T, in []byte) {
		once.Do(func() { st = newStage(t, &backend{}, bodyLimit) })
		r, w := io.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- st.m.ServeStdio(t.Context(), strings.NewReader(string(in)), w, "")
			_ = w.Close()
		}()
		out := bufio.NewScanner(r)
		out.Buffer(nil, 1<<20)
		for out.Scan() {
			if !json.Valid(out.Bytes()) {
				t.Errorf("%q brings %q", in, out.Text())
			}
		}
		if err := errors.Join(out.Err(), <-done); err != nil {
			t.Errorf("%q: %v", in, err)
		}
	})
}
