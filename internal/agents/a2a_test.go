package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func plannerAt(d *double, path, more string) string {
	return fmt.Sprintf(`{"kind": "a2a", "url": %q%s}`, d.URL+path, more)
}

// rpc plays an agent over JSON-RPC: answers by method, each the result or the events of it.
func rpc(answers map[string][]string) play {
	return func(w http.ResponseWriter, _ *http.Request, _ int, body map[string]any) {
		method, _ := body["method"].(string)
		id, _ := json.Marshal(body["id"])
		all, known := answers[method]
		if !known {
			answerJSON(w, `{"jsonrpc":"2.0","id":`+string(id)+`,"error":{"code":-32601,"message":"no such method"}}`)
			return
		}
		all = slices.Clone(all)
		for i, a := range all {
			if !strings.HasPrefix(a, `"error"`) {
				a = `"result":` + a
			}
			all[i] = `{"jsonrpc":"2.0","id":` + string(id) + `,` + a + `}`
		}
		if strings.Contains(strings.ToLower(method), "stream") && !strings.Contains(all[0], `,"error":`) {
			events(w, all...)
			return
		}
		answerJSON(w, all[0])
	}
}

func methods(d *double) (out []string) {
	for _, r := range d.requests() {
		m, _ := r.Body["method"].(string)
		out = append(out, m)
	}
	return out
}

const (
	streamed03 = `{"kind":"task","id":"t1","contextId":"c","status":{"state":"submitted"}}`
	done03     = `{"kind":"status-update","taskId":"t1","status":{"state":"completed"},"final":true}`
)

func TestA2AStreams(t *testing.T) {
	for version, tc := range map[string]map[string][]string{
		"0.3": {"message/stream": {
			streamed03,
			`{"kind":"status-update","taskId":"t1","status":{"state":"working","message":{"role":"agent","parts":[{"kind":"text","text":"thinking"}]}}}`,
			`{"kind":"artifact-update","taskId":"t1","artifact":{"artifactId":"a","parts":[{"kind":"text","text":"Hel"}]}}`,
			`{"kind":"artifact-update","taskId":"t1","append":true,"lastChunk":true,"artifact":{"artifactId":"a","parts":[{"kind":"text","text":"lo"}]}}`,
			done03,
		}},
		"1.0": {"SendStreamingMessage": {
			`{"task":{"id":"t1","contextId":"c","status":{"state":"TASK_STATE_SUBMITTED"}}}`,
			`{"statusUpdate":{"taskId":"t1","status":{"state":"TASK_STATE_WORKING","message":{"role":"ROLE_AGENT","parts":[{"text":"thinking"}]}}}}`,
			`{"artifactUpdate":{"taskId":"t1","artifact":{"artifactId":"a","parts":[{"text":"Hel"}]}}}`,
			`{"artifactUpdate":{"taskId":"t1","append":true,"artifact":{"artifactId":"a","parts":[{"text":"lo"}]}}}`,
			`{"statusUpdate":{"taskId":"t1","status":{"state":"TASK_STATE_COMPLETED"}}}`,
		}},
	} {
		t.Run(version, func(t *testing.T) {
			d := newDouble(t, rpc(tc))
			text, said, err := ask(t.Context(), t, entry(t, plannerAt(d, "/a2a", `, "instructions": "Be kind.", "auth_token": "sesame-sesame"`)), "hi")
			if err != nil || text != "Hello" || said != "thinkingHello" {
				t.Fatalf("%q, said %q, %v", text, said, err)
			}
			r := d.last()
			if r.Header.Get("A2A-Version") != version || r.Header.Get("Authorization") != "Bearer sesame-sesame" {
				t.Errorf("the headers are %v", r.Header)
			}
			sent, _ := json.Marshal(r.Body["params"])
			if !strings.Contains(string(sent), `"text":"Be kind.\n\nhi"`) || !strings.Contains(string(sent), `"messageId":"`) {
				t.Errorf("it sends %s", sent)
			}
		})
	}
}

func TestA2AAnswers(t *testing.T) {
	unsupported := []string{`"error":{"code":-32004,"message":"no streaming"}`}
	for name, tc := range map[string]struct {
		answers map[string][]string
		want    string
		methods []string
	}{
		"a message": {map[string][]string{"message/stream": {`{"kind":"message","role":"agent","parts":[{"kind":"text","text":"Hello"}]}`}}, "Hello", []string{"message/stream"}},
		"a message of 1.0": {map[string][]string{"SendStreamingMessage": {`{"message":{"role":"ROLE_AGENT","parts":[{"text":"Hel"},{"text":"lo"}]}}`}}, "Hello",
			[]string{"message/stream", "message/send", "SendStreamingMessage"}},
		"data": {map[string][]string{"message/stream": {`{"kind":"message","role":"agent","parts":[{"kind":"data","data":{"n":90071992547409931}}]}`}}, `{"n":90071992547409931}`, nil},
		"no stream": {map[string][]string{"message/stream": unsupported, "message/send": {`{"kind":"task","id":"t1","status":{"state":"completed"},"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"Hello"}]},{"artifactId":"b","parts":[{"kind":"text","text":"there"}]}]}`}},
			"Hello\nthere", []string{"message/stream", "message/send"}},
		"a task that is asked for": {map[string][]string{
			"message/stream": unsupported, "message/send": {streamed03},
			"tasks/get": {`{"kind":"task","id":"t1","status":{"state":"completed","message":{"role":"agent","parts":[{"kind":"text","text":"Hello"}]}}}`},
		}, "Hello", []string{"message/stream", "message/send", "tasks/get"}},
		"a task of 1.0 that is asked for": {map[string][]string{
			"SendStreamingMessage": unsupported, "SendMessage": {`{"task":{"id":"t1","status":{"state":"TASK_STATE_WORKING"}}}`},
			"GetTask": {`{"id":"t1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"Hello"}]}]}`},
		}, "Hello", []string{"message/stream", "message/send", "SendStreamingMessage", "SendMessage", "GetTask"}},
		"a stream that ends before the task": {map[string][]string{
			"message/stream": {streamed03},
			"tasks/get":      {`{"kind":"task","id":"t1","status":{"state":"completed"},"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"Hello"}]}]}`},
		}, "Hello", []string{"message/stream", "tasks/get"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDouble(t, rpc(tc.answers))
			text, _, err := ask(t.Context(), t, entry(t, plannerAt(d, "/", "")), "hi")
			if err != nil || text != tc.want {
				t.Errorf("%q, %v", text, err)
			}
			if got := methods(d); tc.methods != nil && !slices.Equal(got, tc.methods) {
				t.Errorf("it asks %q", got)
			}
		})
	}
}

func TestFaultsOfA2AAgents(t *testing.T) {
	one := func(result string) play { return rpc(map[string][]string{"message/stream": {result}}) }
	for name, tc := range map[string]struct {
		play play
		want []string
	}{
		"failed":    {one(`{"kind":"task","id":"t1","status":{"state":"failed","message":{"parts":[{"kind":"text","text":"out of paper"}]}}}`), []string{"failed", "out of paper"}},
		"rejected":  {one(`{"kind":"task","id":"t1","status":{"state":"rejected"}}`), []string{"rejected"}},
		"asks back": {one(`{"kind":"task","id":"t1","status":{"state":"input-required","message":{"parts":[{"kind":"text","text":"which one?"}]}}}`), []string{"wants to be told more", "which one?"}},
		"an error":  {one(`"error":{"code":-32603,"message":"broken"}`), []string{"broken", "-32603"}},
		"neither":   {one(`{"kind":"task"}`), []string{"before the answer was whole"}},
		"not JSON":  {func(w http.ResponseWriter, _ *http.Request, _ int, _ map[string]any) { events(w, "<html>") }, []string{"not the JSON"}},
		"HTTP": {func(w http.ResponseWriter, _ *http.Request, _ int, _ map[string]any) {
			http.Error(w, "who are you?", http.StatusUnauthorized)
		}, []string{"HTTP 401", "who are you?"}},
		"many artifacts": {rpc(map[string][]string{"message/stream": {streamed03,
			`{"kind":"artifact-update","taskId":"t1","artifact":{"artifactId":"a` + strings.Repeat("x", 600) + `"}}`,
			`{"kind":"artifact-update","taskId":"t1","artifact":{"artifactId":"b` + strings.Repeat("x", 600) + `"}}`,
			done03,
		}}), []string{"max_answer_bytes"}},
		"too long":      {one(`{"kind":"message","parts":[{"kind":"text","text":"` + strings.Repeat("x", 2000) + `"}]}`), []string{"max_answer_bytes"}},
		"no method":     {rpc(nil), []string{"no such method"}},
		"an odd result": {one(`7`), []string{"not the JSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDouble(t, tc.play)
			_, _, err := ask(t.Context(), t, entry(t, plannerAt(d, "/", `, "max_answer_bytes": 1024`)), "hi")
			wantError(t, err, tc.want...)
		})
	}
}

func TestAgentCardsTellWhereTheAgentIs(t *testing.T) {
	const message = `{"kind":"message","parts":[{"kind":"text","text":"Hello"}]}`
	for name, tc := range map[string]struct {
		card string // with %s for the address of the agent
		want string // the method of its first request, or the error
	}{
		"0.3":                {`{"protocolVersion":"0.3.0","url":"%s/rpc","capabilities":{"streaming":true}}`, "message/stream"},
		"0.3 without stream": {`{"protocolVersion":"0.3.0","url":"%s/rpc","preferredTransport":"JSONRPC"}`, "message/send"},
		"0.3 beside gRPC":    {`{"url":"%[1]s/grpc","preferredTransport":"GRPC","additionalInterfaces":[{"url":"%[1]s/rpc","transport":"JSONRPC"}]}`, "message/send"},
		"1.0":                {`{"supportedInterfaces":[{"url":"%[1]s/rest","protocolBinding":"HTTP+JSON"},{"url":"%[1]s/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, "SendMessage"},
		"gRPC alone":         {`{"url":"%s/grpc","preferredTransport":"GRPC"}`, "no address of the JSON-RPC binding"},
		"elsewhere":          {`{"url":"http://elsewhere.invalid/rpc%.0s"}`, "another host"},
		"not JSON":           {`<html>%s`, "not the JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			var d *double
			d = newDouble(t, func(w http.ResponseWriter, r *http.Request, n int, body map[string]any) {
				if r.Method == http.MethodGet {
					answerJSON(w, fmt.Sprintf(tc.card, d.URL))
					return
				}
				rpc(map[string][]string{"message/stream": {message}, "message/send": {message}, "SendMessage": {`{"message":{"parts":[{"text":"Hello"}]}}`}})(w, r, n, body)
			})
			cfg := entry(t, plannerAt(d, "/.well-known/agent-card.json", `, "auth_token": "sesame-sesame"`))
			client := NewClient()
			defer client.CloseIdleConnections()
			a := newRunner(cfg, Options{Client: client})
			for range 2 {
				text, err := a.run(t.Context(), "hi", func(string) {})
				if err != nil {
					wantError(t, err, tc.want)
					return
				}
				if r := d.last(); text != "Hello" || r.Path != "/rpc" || r.Body["method"] != tc.want {
					t.Errorf("%q from %s at %s", text, r.Body["method"], r.Path)
				}
			}
			if got := len(d.requests()); got != 3 {
				t.Errorf("%d requests for two runs: the card is read once", got)
			}
		})
	}
}

func TestATaskIsCancelledWithItsCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d := newDouble(t, func(w http.ResponseWriter, r *http.Request, n int, body map[string]any) {
		if body["method"] != "message/stream" {
			rpc(map[string][]string{"tasks/cancel": {`{"kind":"task","id":"t1","status":{"state":"canceled"}}`}})(w, r, n, body)
			return
		}
		events(w, `{"jsonrpc":"2.0","id":1,"result":`+strings.Replace(streamed03, `"submitted"`, `"working","message":{"parts":[{"kind":"text","text":"thinking"}]}`, 1)+`}`)
		<-r.Context().Done()
	})
	client := NewClient()
	defer client.CloseIdleConnections()
	_, err := newRunner(entry(t, plannerAt(d, "/", "")), Options{Client: client}).run(ctx, "hi", func(string) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	d.wantClosed(t)
	if got := methods(d); !slices.Equal(got, []string{"message/stream", "tasks/cancel"}) {
		t.Errorf("the agent is asked %q", got)
	}
	if params, _ := d.last().Body["params"].(map[string]any); params["id"] != "t1" {
		t.Errorf("%v is cancelled", params)
	}
}

// TestA2APatience shows that an agent that is asked again and again is asked less and less often.
func TestA2APatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			w := &recorded{header: http.Header{}}
			if asked++; asked == 1 {
				answerJSON(w, `{"jsonrpc":"2.0","id":1,"result":`+streamed03+`}`)
			} else {
				answerJSON(w, `{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"t1","status":{"state":"working"}}}`)
			}
			return &http.Response{StatusCode: 200, Header: w.header, Body: w, Request: r}, nil
		})}
		cfg := &config.Server{URL: "http://agent.invalid/", Agent: &config.Agent{Kind: config.AgentA2A, MaxAnswerBytes: 1024}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := newRunner(cfg, Options{Client: client}).run(ctx, "hi", func(string) {})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ends with %v", err)
		}
		if asked < 10 || asked > 30 {
			t.Errorf("%d requests in a minute", asked)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// recorded is a response in memory.
type recorded struct {
	strings.Reader
	header http.Header
}

func (r *recorded) Header() http.Header         { return r.header }
func (r *recorded) WriteHeader(int)             {}
func (r *recorded) Write(b []byte) (int, error) { r.Reset(string(b)); return len(b), nil }
func (r *recorded) Close() error                { return nil }

func FuzzA2A(f *testing.F) {
	for _, s := range []string{
		`{"result":` + streamed03 + `}`, `{"result":` + done03 + `}`, `{"result":{"message":{"parts":[{"text":"a"}]}}}`, `{"error":{"code":1,"message":"m"}}`,
		`{"result":{"artifactUpdate":{"taskId":"t","append":true,"artifact":{"artifactId":"a","parts":[{"data":1}]}}}}`, `{"result":{"kind":"task","status":7}}`,
	} {
		f.Add([]byte(s))
	}
	cfg := &config.Server{Agent: &config.Agent{MaxAnswerBytes: 64}}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &a2aRun{a: &a2a{cfg: cfg}, d: a2a03, say: func(string) {}, parts: map[string]string{}}
		if r.take(b) == nil {
			_ = r.take(b)
		}
		if len(r.order) != len(r.parts) {
			t.Errorf("%q: %d artifacts in order, %d known", b, len(r.order), len(r.parts))
		}
		_, _ = r.answer()
	})
}

func TestAnArtifactThatBeginsWithoutText(t *testing.T) {
	const empty = `{"kind":"artifact-update","taskId":"t1","artifact":{"artifactId":"a"}}`
	d := newDouble(t, rpc(map[string][]string{"message/stream": {streamed03, empty, empty,
		`{"kind":"artifact-update","taskId":"t1","append":true,"artifact":{"artifactId":"a","parts":[{"kind":"text","text":"hello"}]}}`,
		done03}}))
	if text, _, err := ask(t.Context(), t, entry(t, plannerAt(d, "/", "")), "hi"); err != nil || text != "hello" {
		t.Errorf("the answer is %q, %v", text, err)
	}
}

func TestATaskThatAsksIsNotLeftWaiting(t *testing.T) {
	d := newDouble(t, rpc(map[string][]string{
		"message/stream": {streamed03, `{"kind":"status-update","taskId":"t1","status":{"state":"input-required","message":{"role":"agent","parts":[{"kind":"text","text":"which one?"}]}}}`},
		"tasks/cancel":   {`{"kind":"task","id":"t1","status":{"state":"canceled"}}`},
	}))
	_, _, err := ask(t.Context(), t, entry(t, plannerAt(d, "/", "")), "hi")
	wantError(t, err, "input-required", "which one?")
	if got := methods(d); !slices.Equal(got, []string{"message/stream", "tasks/cancel"}) {
		t.Errorf("the agent was asked for %q", got)
	}
}
