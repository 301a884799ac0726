package proxy

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

const subscribing = `{"resources":{"subscribe":true},"tools":{},"logging":{}}`

// watchingClient is a legacy client with subscriptions.
type watchingClient struct {
	st     *stage
	caller *Caller
	subs   *Subscriptions

	mu   sync.Mutex
	told []string
}

func newWatchingClient(st *stage) *watchingClient {
	w := &watchingClient{st: st, caller: legacyCaller()}
	w.subs = st.p.NewSubscriptions(func(uri string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told = append(w.told, uri)
	})
	return w
}

func (w *watchingClient) ask(method, uri string) string {
	w.st.t.Helper()
	f, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":"W","method":"`+method+`","params":{"uri":`+uri+`}}`), wire.Downstream, wire.Limits{})
	if err != nil {
		w.st.t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(w.st.t.Context())
	defer cancel(nil)
	a := w.st.p.Handle(ctx, cancel, &Request{Caller: w.caller, Frame: f, Sink: &listener{}, Subscriptions: w.subs})
	return string(a.Bytes())
}

func (w *watchingClient) heard() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	out := strings.Join(w.told, " ")
	w.told = nil
	return out
}

func subscribable(id string) *server {
	s := (&server{id: id, caps: subscribing}).set(Resource, `{"uri":"file:///x","name":"x"}`, `{"uri":"file:///dir","name":"d"}`)
	s.on = func(f *wire.Frame, _ io.Writer) (string, bool) {
		return `"result":{}`, strings.HasPrefix(f.Method, "resources/sub") || strings.HasPrefix(f.Method, "resources/unsub")
	}
	return s
}

// However many clients watch a resource, its server is asked once, and told when the last one has gone.
func TestSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := subscribable("s")
		st := newStage(t, Options{}, nil, s)
		defer st.stop()
		one, two := newWatchingClient(st), newWatchingClient(st)
		for _, w := range []*watchingClient{one, two, one} {
			if got := w.ask("resources/subscribe", `"file:///x"`); got != `{"jsonrpc":"2.0","id":"W","result":{}}` {
				t.Errorf("subscribing gives %s", got)
			}
		}
		if n := len(s.received("resources/subscribe")); n != 1 {
			t.Errorf("the server was asked %d times", n)
		}
		s.notify("notifications/resources/updated", `{"uri":"file:///x"}`)
		s.notify("notifications/resources/updated", `{"uri":"file:///y"}`)
		s.notify("notifications/resources/updated", `{}`)
		if a, b := one.heard(), two.heard(); a != "file:///x" || b != "file:///x" {
			t.Errorf("told: %q and %q", a, b)
		}
		one.ask("resources/unsubscribe", `"file:///x"`)
		one.ask("resources/unsubscribe", `"file:///never"`)
		s.notify("notifications/resources/updated", `{"uri":"file:///x"}`)
		if a, b := one.heard(), two.heard(); a != "" || b != "file:///x" {
			t.Errorf("after one has gone: %q and %q", a, b)
		}
		if n := len(s.received("resources/unsubscribe")); n != 0 {
			t.Errorf("the server was told %d times while somebody watches", n)
		}
		two.subs.Close()
		synctest.Wait()
		if n := len(s.received("resources/unsubscribe")); n != 1 {
			t.Errorf("the server was told %d times after the last one had gone", n)
		}
		if got := two.ask("resources/subscribe", `"file:///x"`); !strings.Contains(got, `"code":-32002`) {
			t.Errorf("after its end a client subscribes: %s", got)
		}
	})
}

func TestUpdatesOfPartsAndOfQualifiedResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := subscribable("a"), subscribable("b")
		st := newStage(t, Options{}, nil, a, b)
		defer st.stop()
		w := newWatchingClient(st)
		w.ask("resources/subscribe", `"b+file:///dir"`)
		if raw := strings.Join(b.received("resources/subscribe"), ""); !strings.Contains(raw, `"uri":"file:///dir"`) || len(a.received("resources/subscribe")) != 0 {
			t.Errorf("the server was asked %s", raw)
		}
		a.notify("notifications/resources/updated", `{"uri":"file:///dir"}`)
		b.notify("notifications/resources/updated", `{"uri":"file:///directory"}`)
		b.notify("notifications/resources/updated", `{"uri":"file:///dir"}`)
		b.notify("notifications/resources/updated", `{"uri":"file:///dir/file"}`)
		if got := w.heard(); got != "b+file:///dir b+file:///dir/file" {
			t.Errorf("told %q", got)
		}
	})
}

func TestSubscriptionsThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusing := subscribable("r")
		refusing.on = func(f *wire.Frame, _ io.Writer) (string, bool) {
			return `"error":{"code":-32001,"message":"not this one"}`, f.Method == "resources/subscribe"
		}
		plain := (&server{id: "p", caps: `{"resources":{}}`}).set(Resource, `{"uri":"file:///plain","name":"p"}`)
		st := newStage(t, Options{}, nil, refusing, plain)
		defer st.stop()
		w := newWatchingClient(st)
		for uri, want := range map[string]string{
			`"file:///x"`:     `{"jsonrpc":"2.0","id":"W","error":{"code":-32001,"message":"not this one"}}`,
			`"file:///plain"`: `"code":-32002`,
			`"file:///none"`:  `"code":-32002`,
			`7`:               `"code":-32602`,
		} {
			if got := w.ask("resources/subscribe", uri); !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", uri, got, want)
			}
		}
		synctest.Wait()
		if len(st.p.watching.of) != 0 {
			t.Errorf("%d servers are remembered", len(st.p.watching.of))
		}
	})
}

// What a server knew of its clients is told to its next connection.
func TestSubscriptionsOutliveAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := subscribable("s")
		st := newStage(t, Options{}, nil, s)
		defer st.stop()
		w := newWatchingClient(st)
		w.ask("resources/subscribe", `"file:///x"`)
		s.mu.Lock()
		_ = s.w.(io.Closer).Close()
		s.mu.Unlock()
		pass(5 * time.Second)
		synctest.Wait()
		if n := len(s.received("resources/subscribe")); n != 2 {
			t.Errorf("the server was asked %d times", n)
		}
		s.notify("notifications/resources/updated", `{"uri":"file:///x"}`)
		if got := w.heard(); got != "file:///x" {
			t.Errorf("told %q", got)
		}
	})
}

// A shared server has one level, the most verbose that anybody wants; each client gets what it asked for.
func TestLogLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script(func(_ *wire.Frame, say func(string, string)) string {
			for _, level := range []string{"debug", "info", "error", "nonsense"} {
				say("notifications/message", `{"level":"`+level+`","data":1,"_meta":{"progressToken":TOKEN}}`)
			}
			return `"result":{}`
		})
		s.caps = `{"tools":{},"logging":{}}`
		st := newStage(t, Options{}, nil, s)
		defer st.stop()
		set := func(level string) string {
			return st.text(legacyCaller(), `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":`+level+`}}`)
		}
		for level, want := range map[string]string{`"loud"`: "-32602", `7`: "-32602", `"Info"`: "-32602"} {
			if got := set(level); !strings.Contains(got, want) {
				t.Errorf("%s: %s", level, got)
			}
		}
		st.listed(ViewAll, Tool)
		for _, level := range []string{`"warning"`, `"error"`, `"info"`, `"warning"`} {
			if got := set(level); !strings.HasSuffix(got, `"result":{}}`) {
				t.Errorf("%s: %s", level, got)
			}
			synctest.Wait()
		}
		var levels []string
		for _, raw := range s.received("logging/setLevel") {
			_, level, _ := strings.Cut(raw, `"level":"`)
			level, _, _ = strings.Cut(level, `"`)
			levels = append(levels, level)
		}
		if !slices.Equal(levels, []string{"warning", "info"}) {
			t.Errorf("the server was told %q", levels)
		}
		if got := st.text(modernCaller(), `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`); !strings.Contains(got, "-32601") {
			t.Errorf("a modern client: %s", got)
		}
		// A message that belongs to no call goes to no client.
		before := metricOf(t, st.reg, "mcp_proxy_dropped_total", "what", count.DropLog)
		s.notify("notifications/message", `{"level":"error","data":"stray"}`)
		synctest.Wait()
		if got := metricOf(t, st.reg, "mcp_proxy_dropped_total", "what", count.DropLog) - before; got != 1 {
			t.Errorf("%v stray messages are dropped", got)
		}
	})
}

func TestWhichLogMessagesPass(t *testing.T) {
	for _, c := range []struct {
		level, wanted string
		want          bool
	}{
		{"info", "", false}, {"info", "info", true}, {"debug", "info", false}, {"emergency", "info", true},
		{"error", "emergency", false}, {"debug", "debug", true}, {"nonsense", "info", false},
	} {
		f, err := wire.Parse([]byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"`+c.level+`"}}`), wire.Upstream, wire.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := passesLevel(f, c.wanted); got != c.want {
			t.Errorf("%s for who wants %q: %v", c.level, c.wanted, got)
		}
	}
}
