// Package clients is the other side: what uses a proxy, a call from the command line among it. It knows nothing of the
// serving side.
package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Caller calls tools of a running proxy. It keeps every byte of arguments and results, which a typed client would not.
type Caller struct {
	URL     string
	Token   string
	Version string
}

// maxAnswer bounds what one call may bring.
const maxAnswer = 256 << 20

// Call calls a tool and gives its result as a person wants to see it: structured content as it is, one text as that
// text, several blocks as an array. A tool's own error is an error.
func (c *Caller) Call(ctx context.Context, name string, args []byte) ([]byte, error) {
	if !json.Valid(args) || !bytes.HasPrefix(bytes.TrimSpace(args), []byte("{")) {
		return nil, errors.New("the arguments must be a JSON object")
	}
	params := wire.AppendString([]byte(`{"name":`), name)
	params = append(append(params, `,"arguments":`...), args...)
	params = append(params, `,"_meta":{"`+wire.MetaProtocolVersion+`":"`+wire.LatestModern+`","`+wire.MetaClientCapabilities+`":{},"`+
		wire.MetaClientInfo+`":{"name":"mcp-proxy call","version":`...)
	params = append(wire.AppendString(params, c.Version), "}}}"...)
	f, err := c.request(ctx, "tools/call", name, params)
	if err != nil {
		return nil, err
	}
	if f.Kind == wire.KindError {
		obj, _ := wire.ObjectAt(f.Raw, f.Error)
		text, ok := wire.DecodeString(obj.Get(f.Raw, "message").Of(f.Raw))
		if !ok {
			text = string(f.Error.Of(f.Raw))
		}
		return nil, errors.New(text)
	}
	out := wire.PlainResult(f)
	if out.IsText {
		out.Value = []byte(out.Text) // a person reads it
	}
	if out.Failed {
		return nil, fmt.Errorf("the tool failed: %s", out.Value)
	}
	return out.Value, nil
}

// request sends one modern request and waits for its answer.
func (c *Caller) request(ctx context.Context, method, name string, params []byte) (*wire.Frame, error) {
	body := append([]byte(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`), params...)
	address, t := locate(c.URL)
	defer t.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(append(body, '}')))
	if err != nil {
		return nil, err
	}
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	h.Set("MCP-Protocol-Version", wire.LatestModern)
	h.Set("Mcp-Method", method)
	h.Set("Mcp-Name", wire.EncodeHeader(name))
	if c.Token != "" {
		h.Set("Authorization", "Bearer "+c.Token)
	}
	resp, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return nil, withoutCredentials(err)
	}
	defer resp.Body.Close()
	return readAnswer(resp)
}

// readAnswer reads the answer that a response brings, at once or as a stream.
func readAnswer(resp *http.Response) (*wire.Frame, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		return fromEvents(resp.Body)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	f, err := wire.Parse(b, wire.Upstream, wire.Limits{})
	if err != nil {
		return nil, fmt.Errorf("HTTP %d, and no JSON-RPC answer: %w", resp.StatusCode, err)
	}
	return f, nil
}

// fromEvents reads a stream to the answer.
func fromEvents(r io.Reader) (*wire.Frame, error) {
	events := wire.NewEventReader(r, maxAnswer)
	for {
		ev, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("the stream ended without an answer: %w", err)
		}
		if len(ev.Data) == 0 {
			continue
		}
		f, err := wire.Parse(bytes.Clone(ev.Data), wire.Upstream, wire.Limits{})
		if err != nil {
			return nil, err
		}
		if f.Kind == wire.KindResponse || f.Kind == wire.KindError {
			return f, nil
		}
	}
}

func withoutCredentials(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

// healthTimeout is how long a health check waits.
const healthTimeout = 5 * time.Second

// Health asks a proxy whether it is alive.
func Health(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	base, t := locate(base)
	defer t.CloseIdleConnections()
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/mcp")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/healthz", nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return withoutCredentials(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("/healthz answers HTTP %d", resp.StatusCode)
	}
	return nil
}
