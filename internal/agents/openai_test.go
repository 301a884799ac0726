package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func modelAt(d *double, path, more string) string {
	return fmt.Sprintf(`{"kind": "openai", "url": %q, "model": "small", "auth_token": "sesame-sesame"%s}`, d.URL+path, more)
}

func TestChatIsAskedAndAnswersInPieces(t *testing.T) {
	d := newDouble(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ map[string]any) {
		events(w, `{"choices":[{"delta":{"role":"assistant","content":null}}]}`, `{"choices":[{"delta":{"content":"Hel"}}]}`,
			`{"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}`, `{"choices":[],"usage":{"total_tokens":3}}`, `[DONE]`)
	})
	cfg := entry(t, modelAt(d, "/v1/chat/completions", `, "instructions": "Be kind.", "headers": {"X-Team": "blue"}, "request": {"temperature": 0.5, "max_tokens": 90071992547409931}`))
	text, said, err := ask(t.Context(), t, cfg, "hi")
	if err != nil || text != "Hello" || said != "Hello" {
		t.Fatalf("%q, said %q, %v", text, said, err)
	}
	r := d.last()
	body, _ := json.Marshal(r.Body)
	for _, part := range []string{`"messages":[{"content":"Be kind.","role":"system"},{"content":"hi","role":"user"}]`, `"model":"small"`, `"stream":true`, `"temperature":0.5`} {
		if !strings.Contains(string(body), part) {
			t.Errorf("the request %s has no %s", body, part)
		}
	}
	if r.Header.Get("Authorization") != "Bearer sesame-sesame" || r.Header.Get("X-Team") != "blue" {
		t.Errorf("the headers are %v", r.Header)
	}
}

func TestResponsesAreAskedAndAnswerInPieces(t *testing.T) {
	d := newDouble(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ map[string]any) {
		events(w, `{"type":"response.created","response":{"status":"in_progress"}}`, `{"type":"response.reasoning_summary_text.delta","delta":"hmm"}`,
			`{"type":"response.output_text.delta","delta":"Hel"}`, `{"type":"response.output_text.delta","delta":"lo"}`,
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}]}}`)
	})
	text, said, err := ask(t.Context(), t, entry(t, modelAt(d, "/v1/responses", `, "instructions": "Be kind."`)), "hi")
	if err != nil || text != "Hello" || said != "Hello" {
		t.Fatalf("%q, said %q, %v", text, said, err)
	}
	if b := d.last().Body; b["input"] != "hi" || b["instructions"] != "Be kind." || b["messages"] != nil {
		t.Errorf("asked with %v", b)
	}
}

func TestModelsThatDoNotStream(t *testing.T) {
	for name, tc := range map[string]struct{ path, answer, want string }{
		"chat":        {"/chat/completions", `{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}`, "Hello"},
		"parts":       {"/chat/completions", `{"choices":[{"message":{"content":[{"type":"text","text":"Hel"},{"type":"text","text":"lo"}]}}]}`, "Hello"},
		"refusal":     {"/chat/completions", `{"choices":[{"message":{"content":null,"refusal":"No."}}]}`, "No."},
		"responses":   {"/responses/", `{"status":"completed","output":[{"type":"reasoning","content":[{"text":"hmm"}]},{"type":"message","content":[{"type":"output_text","text":"Hello"}]}]}`, "Hello"},
		"cut by size": {"/responses", `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","content":[{"text":"Hel"}]}]}`, "Hel"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDouble(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ map[string]any) { answerJSON(w, tc.answer) })
			text, _, err := ask(t.Context(), t, entry(t, modelAt(d, tc.path, "")), "hi")
			if err != nil || text != tc.want {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

func TestFaultsOfModels(t *testing.T) {
	status := func(code int, text string) play {
		return func(w http.ResponseWriter, _ *http.Request, _ int, _ map[string]any) {
			w.Header().Set("Retry-After", "7")
			http.Error(w, text, code)
		}
	}
	stream := func(datas ...string) play {
		return func(w http.ResponseWriter, _ *http.Request, _ int, _ map[string]any) { events(w, datas...) }
	}
	whole := func(text string) play {
		return func(w http.ResponseWriter, _ *http.Request, _ int, _ map[string]any) { answerJSON(w, text) }
	}
	const chatPath, responsesPath = "/chat/completions", "/responses"
	for name, tc := range map[string]struct {
		path string
		play play
		want []string
	}{
		"refused":             {chatPath, status(429, `{"error":{"message":"too many","code":"rate"}}`), []string{"HTTP 429", "too many", "7 s"}},
		"refused in text":     {chatPath, status(500, "out of\norder"), []string{"HTTP 500", "out of order"}},
		"a redirect":          {chatPath, status(307, ""), []string{"HTTP 307"}},
		"error in a stream":   {chatPath, stream(`{"choices":[{"delta":{"content":"Hel"}}]}`, `{"error":{"message":"overloaded","code":529}}`), []string{"overloaded", "529"}},
		"a stream that ends":  {chatPath, stream(`{"choices":[{"delta":{"content":"Hel"}}]}`), []string{"before the answer was whole"}},
		"an empty stream":     {chatPath, stream(), []string{"before the answer was whole"}},
		"not JSON in events":  {chatPath, stream(`<html>`), []string{"not the JSON", "<html>"}},
		"not JSON":            {chatPath, whole(`<html>`), []string{"not the JSON"}},
		"another shape":       {chatPath, whole(`{"choices":[{"message":7}]}`), []string{"not the JSON"}},
		"filtered":            {chatPath, stream(`{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`, `[DONE]`), []string{"content filter"}},
		"all thought":         {chatPath, whole(`{"choices":[{"message":{"content":""},"finish_reason":"length"}]}`), []string{"limit of tokens"}},
		"too long":            {chatPath, stream(`{"choices":[{"delta":{"content":"` + strings.Repeat("x", 2000) + `"}}]}`), []string{"max_answer_bytes"}},
		"failed response":     {responsesPath, stream(`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"broken"}}}`), []string{"broken", "server_error"}},
		"error event":         {responsesPath, stream(`{"type":"error","code":"rate_limit","message":"slow down"}`), []string{"slow down", "rate_limit"}},
		"incomplete response": {responsesPath, stream(`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`), []string{"incomplete", "content_filter"}},
		"a response that ends": {responsesPath, stream(`{"type":"response.output_text.delta","delta":"Hel"}`, `[DONE]`),
			[]string{"before the answer was whole"}},
		"failed as a whole": {responsesPath, whole(`{"status":"failed","error":{"code":"x","message":"broken"}}`), []string{"broken"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDouble(t, tc.play)
			text, _, err := ask(t.Context(), t, entry(t, modelAt(d, tc.path, `, "max_answer_bytes": 1024`)), "hi")
			if text != "" {
				t.Errorf("it answers %q", text)
			}
			wantError(t, err, tc.want...)
		})
	}
}

func TestTheAddressOfAnAgentIsNotInItsErrors(t *testing.T) {
	cfg := entry(t, `{"kind": "openai", "url": "http://127.0.0.1:1/v1?key=open-sesame", "model": "m"}`)
	_, _, err := ask(t.Context(), t, cfg, "hi")
	if err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("the error is %v", err)
	}
}

func TestARequestIsClosedWithItsCall(t *testing.T) {
	for name, first := range map[string]bool{"before the answer": false, "in the middle of it": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			d := newDouble(t, func(w http.ResponseWriter, r *http.Request, _ int, _ map[string]any) {
				if first {
					events(w, `{"choices":[{"delta":{"content":"Hel"}}]}`)
				}
				cancel()
				<-r.Context().Done()
			})
			if _, _, err := ask(ctx, t, entry(t, modelAt(d, "/", "")), "hi"); !errors.Is(err, context.Canceled) {
				t.Errorf("it ends with %v", err)
			}
			d.wantClosed(t)
		})
	}
}

func FuzzModelEvents(f *testing.F) {
	for _, s := range []string{`[DONE]`, `{"choices":[{"delta":{"content":"a"}}]}`, `{"type":"response.output_text.delta","delta":"a"}`, `{"type":"error","error":{"message":"x"}}`, `{"error":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, take := range []taker{&chat{}, &responses{}} {
			part, done, err := take.event(b)
			if err != nil && (part != "" || done) {
				t.Errorf("%T gives %q and an error for %q", take, part, b)
			}
			_, _ = take.whole(b)
		}
	})
}
