package proxy

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

const callT = `{"jsonrpc":"2.0","id":"A","method":"tools/call","params":{"name":"s__t","_meta":{"progressToken":"mine"}}}`

// script is a server whose tool runs this in a goroutine of its own and answers with what it returns; nothing for none.
func script(run func(f *wire.Frame, say func(method, params string)) string) *server {
	s := (&server{id: "s"}).tools("t")
	s.on = func(f *wire.Frame, w io.Writer) (string, bool) {
		if f.Method != "tools/call" {
			return "", false
		}
		id := string(f.ID.Of(f.Raw))
		go func() {
			member := run(f, func(method, params string) {
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","method":"%s","params":%s}`+"\n", method, strings.ReplaceAll(params, "TOKEN", id))
			})
			if member != "" {
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", id, member)
			}
		}()
		return "", true
	}
	return s
}

// Progress has the client's own token and holds the call open; without a token of the client's it goes no further.
func TestProgressResetsTheInactivityTimer(t *testing.T) {
	for _, withToken := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			st := newStage(t, Options{}, nil, script(func(_ *wire.Frame, say func(string, string)) string {
				for i := range 5 {
					pass(100 * time.Second) // under call_timeout, but over it together
					say("notifications/progress", fmt.Sprintf(`{"progressToken":TOKEN,"progress":%d}`, i))
				}
				return `"result":{}`
			}))
			defer st.stop()
			sink := &listener{}
			request := callT
			if !withToken {
				request = strings.Replace(callT, `"progressToken":"mine"`, "", 1)
			}
			began := time.Now()
			a := st.request(legacyCaller(), sink, request)
			if got := string(a.Bytes()); got != `{"jsonrpc":"2.0","id":"A","result":{}}` || time.Since(began) < 500*time.Second {
				t.Errorf("after %s: %s", time.Since(began), got)
			}
			heard := sink.heard()
			if !withToken && len(heard) > 0 || withToken && (len(heard) != 5 || heard[4] != `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":4}}`) {
				t.Errorf("the client heard %q", heard)
			}
		})
	}
}

func TestTheLimitsOfACall(t *testing.T) {
	for _, c := range []struct {
		name    string
		busy    bool // sends progress
		after   time.Duration
		outcome string
		want    string
		cause   string
	}{
		{"nothing comes", false, 2 * time.Minute, "timeout", "no answer and no progress within call_timeout", "inactivity"},
		{"progress for ever", true, 30 * time.Minute, "timeout", "no answer within max_call_time", "max_time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := make(chan struct{})
				s := script(func(_ *wire.Frame, say func(string, string)) string {
					for c.busy {
						select {
						case <-end:
							return ""
						case <-time.After(time.Minute):
							say("notifications/progress", `{"progressToken":TOKEN,"progress":1}`)
						}
					}
					return ""
				})
				st := newStage(t, Options{}, nil, s)
				defer st.stop()
				defer close(end)
				st.listed(ViewAll, Tool)
				began := time.Now()
				got := st.text(legacyCaller(), callT)
				if took := time.Since(began); took != c.after {
					t.Errorf("it took %s", took)
				}
				if !strings.Contains(got, `"message":"s::t: `+c.want) || !strings.Contains(got, `"reason":"`+c.outcome+`"`) {
					t.Errorf("the answer is %s", got)
				}
				synctest.Wait()
				if cancels := s.received("notifications/cancelled"); len(cancels) != 1 || !strings.Contains(cancels[0], c.want) {
					t.Errorf("the server is told %q", cancels)
				}
				if metricOf(t, st.reg, "mcp_proxy_cancellations_total", "upstream", "s", "cause", c.cause) != 1 ||
					metricOf(t, st.reg, "mcp_proxy_requests_total", "upstream", "s", "method", "tools/call", "outcome", c.outcome) != 1 ||
					metricOf(t, st.reg, "mcp_proxy_requests_in_flight", "upstream", "s") != 0 {
					t.Error("the metrics say something else")
				}
			})
		})
	}
}

// A client that cancels gets no answer, and the server hears of it; the connection lives on.
func TestCancelsOfAClient(t *testing.T) {
	for cause, outcome := range map[Cause]Outcome{CauseClient: Cancelled, CauseClientGone: ClientGone, CauseSessionEnd: Cancelled} {
		synctest.Test(t, func(t *testing.T) {
			s := script(func(*wire.Frame, func(string, string)) string { return "" })
			st := newStage(t, Options{}, nil, s)
			defer st.stop()
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(10*time.Second, func() { cancel(cause) })
			a := st.requestIn(ctx, cancel, legacyCaller(), nil, callT)
			if !a.Ended {
				t.Errorf("%s: the client gets %s", cause, a.Bytes())
			}
			synctest.Wait()
			if cancels := s.received("notifications/cancelled"); len(cancels) != 1 {
				t.Errorf("%s: the server is told %q", cause, cancels)
			}
			if metricOf(t, st.reg, "mcp_proxy_requests_total", "upstream", "s", "method", "tools/call", "outcome", string(outcome)) != 1 {
				t.Errorf("%s is not counted as %s", cause, outcome)
			}
			if !st.ups.Get("s").Status().Up {
				t.Error("the connection is lost")
			}
		})
	}
}

// What comes with a call besides its answer.
func TestNotificationsOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script(func(f *wire.Frame, say func(string, string)) string {
			say("notifications/progress", `{"progressToken":TOKEN,"progress":1,"x":1.10}`)
			say("notifications/progress", `{"progressToken":99999,"progress":1}`)
			return `"result":{"isError":true}`
		})
		st := newStage(t, Options{}, nil, s)
		defer st.stop()
		sink := &listener{}
		st.request(legacyCaller(), sink, callT)
		if got := strings.Join(sink.heard(), ""); got != `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":1,"x":1.10}}` {
			t.Errorf("the client heard %s", got)
		}
		if metricOf(t, st.reg, "mcp_proxy_dropped_total", "what", count.DropProgress) != 1 {
			t.Error("progress for nobody is not counted")
		}
		if metricOf(t, st.reg, "mcp_proxy_requests_total", "upstream", "s", "method", "tools/call", "outcome", "tool_error") != 1 {
			t.Error("an error of the tool is not counted as one")
		}
	})
}

// A call whose connection dies after it was sent may have run: it is not repeated. What only reads may be, once.
func TestACallWhoseConnectionDies(t *testing.T) {
	for request, c := range map[string]struct {
		method, outcome string
		most            int
	}{
		callT: {"tools/call", "uncertain", 1},
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b"}}`: {"resources/read", "transport_error", 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := (&server{id: "s"}).tools("t").set(Resource, `{"uri":"a:b","name":"r"}`)
			s.on = func(f *wire.Frame, w io.Writer) (string, bool) {
				if f.Method != c.method {
					return "", false
				}
				_ = w.(io.Closer).Close()
				return "", true
			}
			st := newStage(t, Options{}, nil, s)
			defer st.stop()
			got := st.text(legacyCaller(), request)
			if !strings.Contains(got, `"reason":"`+c.outcome+`"`) {
				t.Errorf("%s: %s", c.method, got)
			}
			pass(time.Minute)
			if n := len(s.received(c.method)); n < 1 || n > c.most {
				t.Errorf("%s reached the server %d times", c.method, n)
			}
		})
	}
}

func TestWhatTheProxyAnswersItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, Options{Shape: Shape{Server: config.ServerInfo{Name: "p", Version: "2", Title: "P", Instructions: "read this"}}}, nil, (&server{id: "s"}).tools("t"))
		defer st.stop()
		for _, c := range []struct {
			caller  *Caller
			request string
			want    string
		}{
			{legacyCaller(), `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
			{modernCaller(), `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `"code":-32601`},
			{legacyCaller(), `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, `"code":-32601`},
			{modernCaller(), `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, `"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`},
			{modernCaller(), `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, `"io.modelcontextprotocol/serverInfo":{"name":"p","version":"2","title":"P"`},
			{modernCaller(), `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, `read this`},
			{legacyCaller(), `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, `"code":-32601,"message":"method not found: no/such"`},
			{legacyCaller(), `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`, `"code":-32602`},
			{modernCaller(), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `"resultType":"complete"`},
			{legacyCaller(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, `tools/call: params.name must be a string`},
			{legacyCaller(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`, `tools/call: params.name must be a string`},
			{legacyCaller(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__t","arguments":[]}}`, `params.arguments must be an object`},
			{legacyCaller(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none"}}`, `"code":-32602,"message":"unknown tool: none"`},
			{legacyCaller(), `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"none"}}`, `"code":-32602,"message":"unknown prompt: none"`},
			{legacyCaller(), `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"no:ne"}}`, `"code":-32002,"message":"unknown resource: no:ne"`},
			{modernCaller(), `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"no:ne"}}`, `"code":-32602,"message":"unknown resource: no:ne"`},
		} {
			if got := st.text(c.caller, c.request); !strings.Contains(got, c.want) {
				t.Errorf("%s: %s, want %s", c.request, got, c.want)
			}
		}
		if n := metricOf(t, st.reg, "mcp_proxy_requests_total", "upstream", ourselves, "method", "other", "outcome", "invalid"); n != 1 {
			t.Errorf("%v requests of unknown methods are counted", n)
		}
	})
}

func TestSeriesArePresentFromTheFirstScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, Options{}, nil, &server{id: "s"})
		defer st.stop()
		want := []string{`mcp_proxy_requests_in_flight{upstream="s"}`}
		for _, o := range outcomes {
			for _, series := range []string{`upstream="s",method="tools/call"`, `upstream="s",method="prompts/get"`, `upstream="s",method="resources/read"`, `upstream="_proxy",method="tools/list"`} {
				want = append(want, fmt.Sprintf(`mcp_proxy_requests_total{%s,outcome="%s"}`, series, o))
			}
		}
		for _, c := range causes {
			want = append(want, fmt.Sprintf(`mcp_proxy_cancellations_total{upstream="s",cause="%s"}`, string(c)))
		}
		for k := range kinds {
			want = append(want, fmt.Sprintf(`mcp_proxy_catalog_items{upstream="s",kind="%s"}`, k))
		}
		have := seriesOf(t, st.reg)
		for _, series := range want {
			if !have[canonicalSeries(series)] {
				t.Errorf("there is no series %s", series)
			}
		}
		if problems, err := testutil.GatherAndLint(st.reg); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	})
}

// seriesOf gives all series of a registry, with their labels in order.
func seriesOf(t *testing.T, reg prometheus.Gatherer) map[string]bool {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf(`%s="%s"`, l.GetName(), l.GetValue()))
			}
			out[canonicalSeries(f.GetName()+"{"+strings.Join(labels, ",")+"}")] = true
		}
	}
	return out
}

func canonicalSeries(s string) string {
	name, labels, _ := strings.Cut(strings.TrimSuffix(s, "}"), "{")
	list := strings.Split(labels, ",")
	slices.Sort(list)
	return name + "{" + strings.Join(list, ",") + "}"
}
