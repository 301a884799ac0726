package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Header names.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	headerLastID  = "Last-Event-Id"
)

var errStreamEnded = errors.New("the stream ended")

const eventStream = "text/event-stream"

// failure makes an error answer. reason is the outcome word, where the fault is on the way.
func failure(id []byte, code int, reason, text string) []byte {
	if len(id) == 0 {
		id = []byte("null")
	}
	b := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), `,"error":{"code":`...)
	b = wire.AppendString(append(strconv.AppendInt(b, int64(code), 10), `,"message":`...), text)
	if reason != "" {
		b = append(wire.AppendString(append(b, `,"data":{"reason":`...), reason), '}')
	}
	return append(b, "}}"...)
}

// request makes a request with what all have in common.
func (b *bridge) request(ctx context.Context, verb string, body []byte) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, verb, b.URL, r)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json, "+eventStream)
	if b.Token != "" {
		req.Header.Set("Authorization", "Bearer "+b.Token)
	}
	return req, nil
}

// post sends a message of the client.
func (b *bridge) post(c *crossing, set func(http.Header)) (*http.Response, error) {
	trace := &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) {
		if i.Err == nil {
			c.sent.Do(func() { close(c.written) })
		}
	}}
	req, err := b.request(httptrace.WithClientTrace(c.ctx, trace), http.MethodPost, c.raw)
	if err != nil {
		return nil, err
	}
	set(req.Header)
	return b.http.Do(req)
}

// closeBody ends a response. What is left of it is read first where that cannot take long, so that the connection may
// serve again.
func closeBody(resp *http.Response) {
	if !isStream(resp) {
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	}
	_ = resp.Body.Close()
}

// closeStream is closeBody for a stream that has brought its answer and so is about to end.
func (c *crossing) closeStream(resp *http.Response) {
	timer := time.AfterFunc(partGrace, c.cancel)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
}

func isStream(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return resp.StatusCode == http.StatusOK && kind == eventStream
}

// unreachable answers a request that could not be brought to the proxy, or whose answer could not be fetched.
func (b *bridge) unreachable(c *crossing, err error) {
	if c.ctx.Err() != nil {
		return
	}
	err = withoutCredentials(err)
	select {
	case <-c.written:
		b.Log.Warn("the connection with the proxy was lost", zap.String("url", b.URL), zap.Error(err))
		b.answer(c, failure(c.id, wire.CodeInternal, "uncertain",
			fmt.Sprintf("the connection with the proxy at %s was lost before the answer; the request may or may not have been carried out: %v", b.URL, err)))
	default:
		b.unavailable(c, err)
	}
}

// unavailable answers a request that certainly has not been carried out.
func (b *bridge) unavailable(c *crossing, err error) {
	err = withoutCredentials(err)
	b.Log.Warn("the proxy cannot be reached", zap.String("url", b.URL), zap.Error(err))
	b.answer(c, failure(c.id, wire.CodeInternal, "unavailable", fmt.Sprintf("the proxy at %s cannot be reached: %v", b.URL, err)))
}

// relay brings a response that is no stream to the client.
func (b *bridge) relay(c *crossing, resp *http.Response) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if c.id == nil {
		if resp.StatusCode >= http.StatusBadRequest {
			b.Log.Warn("a message that is no request was refused", zap.Int("status", resp.StatusCode))
		}
		return
	}
	if err != nil {
		b.unreachable(c, err)
		return
	}
	if c.frame == nil && wire.IsBatch(body) {
		b.answer(c, body)
		return
	}
	f, err := wire.Parse(body, wire.Upstream, wire.Limits{})
	if err != nil || f.Kind != wire.KindResponse && f.Kind != wire.KindError {
		b.answer(c, failure(c.id, wire.CodeInternal, "transport_error", b.strange(resp)))
		return
	}
	b.deliver(c, f, resp)
}

// deliver gives the client an answer. An error that could not be given the id of its request is given it here.
func (b *bridge) deliver(c *crossing, f *wire.Frame, resp *http.Response) {
	switch {
	case f.Kind == wire.KindError && resp.StatusCode == http.StatusUnauthorized:
		b.answer(c, failure(c.id, wire.CodeInternal, "denied", b.strange(resp)))
	case f.Kind == wire.KindError && (!f.ID.Ok() || string(f.ID.Of(f.Raw)) == "null"):
		out := append(append([]byte(`{"jsonrpc":"2.0","id":`), c.id...), `,"error":`...)
		b.answer(c, append(append(out, f.Error.Of(f.Raw)...), '}'))
	default:
		b.learn(c, f)
		b.answer(c, f.Raw)
	}
}

// strange tells of a response that is no answer.
func (b *bridge) strange(resp *http.Response) string {
	text := fmt.Sprintf("the proxy at %s answers HTTP %s", b.URL, resp.Status)
	switch {
	case resp.StatusCode == http.StatusUnauthorized && b.Token == "":
		return text + "; it wants a token: put it into the environment variable " + b.TokenVariable
	case resp.StatusCode == http.StatusUnauthorized:
		return text + "; it does not accept the token in the environment variable " + b.TokenVariable
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusMethodNotAllowed:
		return text + "; is this the URL of an MCP endpoint?"
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return text + "; redirects are not followed, give the final URL"
	}
	return text + ", and no JSON-RPC message"
}

// mark is how far a stream has been read.
type mark struct {
	id    string        // of the last event that had one
	retry time.Duration // what the server wants us to wait before we come again; zero for nothing said
}

// events relays the messages of a stream. It is true once the answer to c has come; with c nil it reads to the end. The
// filter may replace a message, or drop it by giving nil.
func (b *bridge) events(c *crossing, r io.Reader, m *mark, filter func(*wire.Frame) []byte) (answered bool) {
	in := wire.NewEventReader(r, maxAnswer)
	for {
		ev, err := in.Next()
		if errors.Is(err, wire.ErrEventTooLarge) {
			b.Log.Warn("an event is larger than can be relayed")
			continue
		}
		if err != nil {
			return false
		}
		if ev.HasID {
			m.id = ev.ID
		}
		if ev.Retry > 0 {
			m.retry = ev.Retry
		}
		if len(ev.Data) > 0 && b.event(c, bytes.Clone(ev.Data), filter) {
			return true
		}
	}
}

// event relays one message of a stream; true where it is the answer to c.
func (b *bridge) event(c *crossing, data []byte, filter func(*wire.Frame) []byte) bool {
	if wire.IsBatch(data) {
		if c == nil || c.frame != nil {
			b.send(data)
			return false
		}
		b.answer(c, data)
		return true
	}
	f, err := wire.Parse(data, wire.Upstream, wire.Limits{})
	if err != nil {
		b.Log.Warn("an event is no message", zap.Error(err))
		return false
	}
	if c != nil && (f.Kind == wire.KindResponse || f.Kind == wire.KindError) && wire.IDKey(f.ID.Of(f.Raw)) == c.key {
		b.learn(c, f)
		b.answer(c, f.Raw)
		return true
	}
	out := f.Raw
	if filter != nil {
		out = filter(f)
	}
	// Nothing follows for a request that the client has cancelled.
	if out != nil && (c == nil || c.isDue()) {
		b.send(out)
	}
	return false
}

// pause waits; false where ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// backoff is the wait between attempts: a second at first, doubled with each failure.
type backoff struct{ next time.Duration }

const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// wait waits before the next attempt, for as long as the server has asked for where it has.
func (r *backoff) wait(ctx context.Context, asked time.Duration) bool {
	r.next = min(max(r.next, firstPause), longestPause)
	d := r.next
	if asked > 0 {
		d = max(d, min(asked, longestPause))
	}
	r.next *= 2
	return pause(ctx, d)
}

func (r *backoff) reset() { r.next = 0 }
