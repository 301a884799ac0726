package agents

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// a2a is an agent that speaks the Agent2Agent protocol over its JSON-RPC binding, in version 0.3 or 1.0.
type a2a struct {
	cfg *config.Server
	web *web
	// place is where the agent was found; nil before the first run.
	place atomic.Pointer[a2aPlace]
}

// a2aPlace is the address of an agent, and what is known of it.
type a2aPlace struct {
	url     string
	dialect *dialect // nil where it is to be found out
	// streams is false where the agent says that it does not.
	streams bool
}

// dialect is what differs between the versions of the protocol.
type dialect struct {
	version                   string // in the header A2A-Version
	send, stream, get, cancel string
	role                      string
	atOnce                    string // the member that says whether to wait for the end of a task
	part                      func(text string) map[string]any
}

var (
	a2a03 = &dialect{version: "0.3", send: "message/send", stream: "message/stream", get: "tasks/get", cancel: "tasks/cancel", role: "user", atOnce: "blocking",
		part: func(text string) map[string]any { return map[string]any{"kind": "text", "text": text} }}
	a2a10 = &dialect{version: "1.0", send: "SendMessage", stream: "SendStreamingMessage", get: "GetTask", cancel: "CancelTask", role: "ROLE_USER", atOnce: "returnImmediately",
		part: func(text string) map[string]any { return map[string]any{"text": text} }}
)

const (
	a2aPoll     = 250 * time.Millisecond // before the first look at a task, doubled with each
	a2aPollMost = 4 * time.Second
	a2aGoodbye  = 5 * time.Second // that telling an agent of a cancel may take
	codeNoTask  = -32001
	codeNotHere = -32004 // the operation is not supported, such as streaming
	codeVersion = -32009 // the version is not supported
	codeMethod  = -32601
)

// run sends the input as one message of a new conversation, and follows the task that the agent may make of it.
func (a *a2a) run(ctx context.Context, input string, say func(string)) (string, error) {
	place, err := a.find(ctx)
	if err != nil {
		return "", err
	}
	dialects := []*dialect{a2a03, a2a10}
	if place.dialect != nil {
		dialects = []*dialect{place.dialect}
	}
	for i, d := range dialects {
		r := &a2aRun{a: a, url: place.url, d: d, say: say, parts: map[string]string{}}
		text, err := r.talk(ctx, told(a.cfg.Agent, input), place.streams)
		if i+1 < len(dialects) && otherVersion(err) && r.task == "" {
			continue
		}
		if err == nil && place.dialect == nil {
			a.place.Store(&a2aPlace{url: place.url, dialect: d, streams: place.streams})
		}
		return text, err
	}
	return "", errNoText
}

// otherVersion says whether an agent that speaks the other version would refuse so.
func otherVersion(err error) bool {
	var re *rpcError
	return errors.As(err, &re) && (re.Code == codeMethod || re.Code == codeVersion)
}

// find tells where the agent is: at the address itself, or where its card says. Cards are read once.
func (a *a2a) find(ctx context.Context) (*a2aPlace, error) {
	if p := a.place.Load(); p != nil {
		return p, nil
	}
	address := a.cfg.URL.Reveal()
	u, err := url.Parse(address)
	if err != nil || !strings.HasSuffix(u.Path, ".json") {
		return &a2aPlace{url: address, streams: true}, nil
	}
	resp, err := a.web.get(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("reading the agent card: %w", err)
	}
	defer resp.close()
	var c card
	if err := resp.decode(&c); err != nil {
		return nil, fmt.Errorf("reading the agent card: %w", err)
	}
	p, err := c.place(u, a.cfg.AuthToken != "" || len(a.cfg.Headers) > 0)
	if err == nil {
		a.place.Store(p)
	}
	return p, err
}

// card is what is read of an agent card, of either version.
type card struct {
	URL                string
	ProtocolVersion    string
	PreferredTransport string
	Capabilities       struct{ Streaming bool }
	// AdditionalInterfaces are those of version 0.3, SupportedInterfaces those of 1.0.
	AdditionalInterfaces, SupportedInterfaces []struct{ URL, Transport, ProtocolBinding, ProtocolVersion string }
}

var (
	errNoBinding = errors.New("the agent card names no address of the JSON-RPC binding")
	errElsewhere = errors.New("the agent card names an address at another host; write that address as url, if the credentials may go there")
)

// place finds the address. Credentials go to the host that the configuration names, and to no other.
func (c *card) place(at *url.URL, credentials bool) (*a2aPlace, error) {
	address, version := "", ""
	for _, i := range c.SupportedInterfaces {
		if strings.EqualFold(i.ProtocolBinding, "JSONRPC") && address == "" {
			address, version = i.URL, i.ProtocolVersion
		}
	}
	if address == "" && (c.PreferredTransport == "" || strings.EqualFold(c.PreferredTransport, "JSONRPC")) {
		address, version = c.URL, c.ProtocolVersion
	}
	for _, i := range c.AdditionalInterfaces {
		if strings.EqualFold(i.Transport, "JSONRPC") && address == "" {
			address, version = i.URL, c.ProtocolVersion
		}
	}
	if address == "" {
		return nil, errNoBinding
	}
	u, err := at.Parse(address)
	if err != nil {
		return nil, errNoBinding
	}
	if credentials && (u.Scheme != at.Scheme || u.Host != at.Host) {
		return nil, errElsewhere
	}
	p := &a2aPlace{url: u.String(), streams: c.Capabilities.Streaming, dialect: a2a03}
	if strings.HasPrefix(version, "1") {
		p.dialect = a2a10
	}
	return p, nil
}

// a2aRun is one run.
type a2aRun struct {
	a   *a2a
	url string
	d   *dialect
	say func(string)

	task, state string
	parts       map[string]string // of artifacts, by their ids
	order       []string
	message     string // the last that the agent has said beside them
	settled     bool   // the answer is a message, or the task has ended
}

func (r *a2aRun) talk(ctx context.Context, input string, streams bool) (string, error) {
	params := map[string]any{"message": map[string]any{"role": r.d.role, "messageId": newID(), "parts": []any{r.d.part(input)}}}
	if r.d == a2a03 {
		params["message"].(map[string]any)["kind"] = "message"
	}
	configuration := map[string]any{"acceptedOutputModes": []string{"text/plain", "application/json"}}
	params["configuration"] = configuration
	var err error
	if streams {
		if err = r.exchange(ctx, r.d.stream, params); r.refusesStreams(err) {
			streams = false
		}
	}
	if !streams {
		// A task that is known can be cancelled, so the agent is not to wait for its end.
		configuration[r.d.atOnce] = r.d == a2a10
		err = r.exchange(ctx, r.d.send, params)
	}
	// The stream has ended before the task, or there was none.
	for wait := a2aPoll; err == nil && !r.settled; wait = min(2*wait, a2aPollMost) {
		if err = pause(ctx, wait); err == nil {
			err = r.exchange(ctx, r.d.get, map[string]any{"id": r.task})
		}
	}
	var text string
	if err == nil {
		text, err = r.answer()
	}
	if r.task != "" && (!r.settled || asks(r.state)) {
		r.cancel()
	}
	return text, err
}

// refusesStreams says whether the agent wants to be asked without a stream.
func (r *a2aRun) refusesStreams(err error) bool {
	var re *rpcError
	return errors.As(err, &re) && r.task == "" && (re.Code == codeNotHere || re.Code == codeMethod)
}

// cancel tells the agent that nobody waits for the task any more, or will ever tell it what it asks for.
func (r *a2aRun) cancel() {
	ctx, cancel := context.WithTimeout(context.Background(), a2aGoodbye)
	defer cancel()
	_ = r.exchange(ctx, r.d.cancel, map[string]any{"id": r.task})
}

var errNoTask = errors.New("the agent answered neither with a message nor with a task")

// exchange makes one request and takes everything that comes for it.
func (r *a2aRun) exchange(ctx context.Context, method string, params any) error {
	body := map[string]any{"jsonrpc": "2.0", "id": newID(), "method": method, "params": params}
	resp, err := r.a.web.post(ctx, r.url, body, map[string]string{"A2A-Version": r.d.version})
	if err != nil {
		return err
	}
	defer resp.close()
	if !resp.stream {
		b, err := resp.bytes()
		if err != nil {
			return err
		}
		if err = r.take(b); err == nil && r.task == "" && !r.settled {
			err = errNoTask
		}
		return err
	}
	events := wire.NewEventReader(resp.body, int(resp.most))
	for !r.settled {
		ev, err := events.Next()
		switch {
		case errors.Is(err, io.EOF) && r.task != "":
			return nil // it can be asked for
		case errors.Is(err, io.EOF):
			return errCut
		case errors.Is(err, wire.ErrEventTooLarge):
			return errTooLong
		case err != nil:
			return plain(err)
		}
		if ev.HasData {
			if err := r.take(ev.Data); err != nil {
				return err
			}
		}
	}
	return nil
}

// rpcError is an error that the agent answers with.
type rpcError struct {
	Code    int
	Message string
}

func (e *rpcError) Error() string {
	return fmt.Sprintf("%s (%d)", clip(e.Message, maxComplaint), e.Code)
}

// answer makes the final text: the artifacts, or what the agent has said where there are none.
func (r *a2aRun) answer() (string, error) {
	var texts []string
	for _, id := range r.order {
		texts = append(texts, r.parts[id])
	}
	text := strings.Join(texts, "\n")
	if text == "" {
		text = r.message
	}
	switch r.state {
	case "", "completed":
		return text, nil
	case "input-required", "auth-required":
		return "", fmt.Errorf("the agent wants to be told more (%s): %s", r.state, clip(r.message, maxComplaint))
	}
	if r.message == "" {
		return "", fmt.Errorf("the task is %s", r.state)
	}
	return "", fmt.Errorf("the task is %s: %s", r.state, clip(r.message, maxComplaint))
}

func newID() string { return rand.Text() }

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// stateOf gives the state of a task in the words of version 0.3.
func stateOf(s string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(s, "TASK_STATE_")), "_", "-")
}

func ended(state string) bool {
	switch state {
	case "completed", "failed", "canceled", "cancelled", "rejected":
		return true
	}
	return asks(state)
}

// asks says whether a task has stopped until somebody tells it more.
func asks(state string) bool { return state == "input-required" || state == "auth-required" }

// a2aPart is one part of a message or an artifact.
type a2aPart struct {
	Text *string
	Data json.RawMessage
}

func textOf(parts []a2aPart) string {
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p.Text != nil:
			b.WriteString(*p.Text)
		case len(p.Data) > 0:
			b.Write(p.Data)
		}
	}
	return b.String()
}
