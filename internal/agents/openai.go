package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// openAI is an agent that is a model behind an address of chat completions or of responses, as OpenAI has them and many
// others too.
type openAI struct {
	cfg *config.Server
	web *web
}

func (o *openAI) run(ctx context.Context, input string, say func(string)) (string, error) {
	a := o.cfg.Agent
	body := map[string]any{"model": a.Model, "stream": true}
	var take taker = &chat{}
	if apiOf(o.cfg) == config.APIResponses {
		take = &responses{}
		body["input"] = input
		if a.Instructions != "" {
			body["instructions"] = a.Instructions
		}
	} else {
		body["messages"] = chatMessages(a, input)
	}
	if len(a.Request) > 0 {
		var more map[string]json.RawMessage
		if err := json.Unmarshal(a.Request, &more); err != nil {
			return "", err
		}
		for name, v := range more {
			body[name] = v
		}
	}
	resp, err := o.web.post(ctx, o.cfg.URL.Reveal(), body, nil)
	if err != nil {
		return "", err
	}
	defer resp.close()
	if !resp.stream {
		return wholeAnswer(resp, take)
	}
	return streamedAnswer(resp, take, a.MaxAnswerBytes, say)
}

// apiOf tells which of the two the address is.
func apiOf(cfg *config.Server) config.AgentAPI {
	if cfg.Agent.API != "" {
		return cfg.Agent.API
	}
	if u, err := url.Parse(cfg.URL.Reveal()); err == nil && strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/responses") {
		return config.APIResponses
	}
	return config.APIChat
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func chatMessages(a *config.Agent, input string) (out []chatMessage) {
	if a.Instructions != "" {
		out = append(out, chatMessage{"system", a.Instructions})
	}
	return append(out, chatMessage{"user", input})
}

// taker understands one of the two APIs.
type taker interface {
	// whole gives the text of an answer that came as one JSON value.
	whole(b []byte) (string, error)
	// event gives the part of the text that an event brings; done says that it was the last one.
	event(b []byte) (part string, done bool, err error)
	// end says whether the answer is whole when the stream ends after so much text.
	end(text string) error
}

func wholeAnswer(resp *response, take taker) (string, error) {
	b, err := resp.bytes()
	if err != nil {
		return "", err
	}
	if !json.Valid(b) {
		return "", fmt.Errorf("%w: %s", errNotJSON, clip(string(b), maxComplaint))
	}
	return take.whole(b)
}

// streamedAnswer reads the events until the answer is whole.
func streamedAnswer(resp *response, take taker, most int64, say func(string)) (string, error) {
	var text strings.Builder
	events := wire.NewEventReader(resp.body, int(resp.most))
	for {
		ev, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return whole(text.String(), take)
		case errors.Is(err, wire.ErrEventTooLarge):
			return "", errTooLong
		case err != nil:
			return "", plain(err)
		case !ev.HasData:
			continue
		}
		part, done, err := take.event(ev.Data)
		if err != nil {
			return "", err
		}
		if int64(text.Len()+len(part)) > most {
			return "", errTooLong
		}
		text.WriteString(part)
		say(part)
		if done {
			return whole(text.String(), take)
		}
	}
}

// whole gives the text of a stream that has ended, unless a part of it is missing.
func whole(text string, take taker) (string, error) {
	if err := take.end(text); err != nil {
		return "", err
	}
	return text, nil
}

// failure is an error that comes in the place of an answer, or of the rest of one.
type failure struct {
	Code    any    `json:"code"`
	Message string `json:"message"`
}

func (f *failure) Error() string {
	text := clip(f.Message, maxComplaint)
	if f.Code != nil {
		return fmt.Sprintf("%s (%v)", text, f.Code)
	}
	return text
}

var (
	errCut      = errors.New("the stream ended before the answer was whole")
	errFiltered = errors.New("the answer was withheld by a content filter")
	errLength   = errors.New("the model reached its limit of tokens before it had said anything")
)

// chat is the API of chat completions.
type chat struct {
	finish string
	done   bool
}

type choice struct {
	Message, Delta struct{ Content, Refusal looseText }
	FinishReason   string `json:"finish_reason"`
}

// looseText is a text, or a list of parts of one.
type looseText string

// UnmarshalJSON implements json.Unmarshaler.
func (t *looseText) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*t = looseText(text)
		return nil
	}
	var parts []struct{ Text string }
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		*t += looseText(p.Text)
	}
	return nil
}

func (c *chat) read(b []byte) (*choice, error) {
	var v struct {
		Choices []choice
		Error   *failure
	}
	if json.Unmarshal(b, &v) != nil {
		return nil, fmt.Errorf("%w: %s", errNotJSON, clip(string(b), maxComplaint))
	}
	if v.Error != nil {
		return nil, v.Error
	}
	if len(v.Choices) == 0 {
		return &choice{}, nil // it tells what was used
	}
	if f := v.Choices[0].FinishReason; f != "" {
		c.finish = f
	}
	return &v.Choices[0], nil
}

func (c *chat) whole(b []byte) (string, error) {
	v, err := c.read(b)
	if err != nil {
		return "", err
	}
	text := string(v.Message.Content + v.Message.Refusal)
	return text, c.reason(text)
}

func (c *chat) event(b []byte) (string, bool, error) {
	if strings.TrimSpace(string(b)) == "[DONE]" {
		c.done = true
		return "", true, nil
	}
	v, err := c.read(b)
	if err != nil {
		return "", false, err
	}
	return string(v.Delta.Content + v.Delta.Refusal), false, nil
}

// end says whether the answer is whole. Some servers leave out the word that it is the end, others the reason.
func (c *chat) end(text string) error {
	if c.finish == "" && !c.done {
		return errCut
	}
	return c.reason(text)
}

func (c *chat) reason(text string) error {
	switch {
	case text != "":
		return nil
	case c.finish == "content_filter":
		return errFiltered
	case c.finish == "length":
		return errLength
	}
	return nil
}

// responses is the API of responses.
type responses struct{ completed bool }

type responseObject struct {
	Status string
	Error  *failure
	Output []struct {
		Type    string
		Content []struct{ Type, Text, Refusal string }
	}
	IncompleteDetails *struct{ Reason string } `json:"incomplete_details"`
}

// text is what the model says at last; its reasoning and the tools that it used are left out.
func (r *responseObject) text() string {
	var b strings.Builder
	for _, out := range r.Output {
		if out.Type != "message" {
			continue
		}
		for _, c := range out.Content {
			b.WriteString(c.Text + c.Refusal)
		}
	}
	return b.String()
}

func (r *responseObject) fault(text string) error {
	switch {
	case r.Error != nil:
		return r.Error
	case r.Status == "failed", r.Status == "cancelled":
		return fmt.Errorf("the response has %s", strings.Replace(r.Status, "cancelled", "been cancelled", 1))
	case r.IncompleteDetails != nil && text == "":
		return fmt.Errorf("the response is incomplete: %s", clip(r.IncompleteDetails.Reason, maxComplaint))
	}
	return nil
}

func (r *responses) whole(b []byte) (string, error) {
	var v responseObject
	if json.Unmarshal(b, &v) != nil {
		return "", fmt.Errorf("%w: %s", errNotJSON, clip(string(b), maxComplaint))
	}
	text := v.text()
	return text, v.fault(text)
}

func (r *responses) event(b []byte) (string, bool, error) {
	var v struct {
		Type     string
		Delta    json.RawMessage
		Response responseObject
		failure
		Error *failure
	}
	if strings.TrimSpace(string(b)) == "[DONE]" {
		return "", true, nil
	}
	if json.Unmarshal(b, &v) != nil {
		return "", false, fmt.Errorf("%w: %s", errNotJSON, clip(string(b), maxComplaint))
	}
	switch v.Type {
	case "response.output_text.delta", "response.refusal.delta":
		var part string
		_ = json.Unmarshal(v.Delta, &part)
		return part, false, nil
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		r.completed = true
		return "", true, v.Response.fault(v.Response.text())
	case "error":
		if v.Error != nil {
			return "", false, v.Error
		}
		return "", false, &v.failure
	}
	return "", false, nil
}

func (r *responses) end(string) error {
	if !r.completed {
		return errCut
	}
	return nil
}
