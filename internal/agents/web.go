package agents

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

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// web sends the requests of an agent that is reached over HTTP.
type web struct {
	client *http.Client
	cfg    *config.Server
	most   int64 // bytes of one response
}

// overhead is how much more than its answer a response may have: JSON, and what streams repeat.
const overhead = 4

func newWeb(cfg *config.Server, o Options) *web {
	return &web{client: o.Client, cfg: cfg, most: cfg.Agent.MaxAnswerBytes*overhead + 1<<20}
}

// NewClient makes a client for agents. It follows no redirects: they would carry credentials to another place.
func NewClient() *http.Client {
	// Not the default one: a program that embeds us may have put anything in its place.
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConns: 100, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// response is one that has been accepted. It must be closed.
type response struct {
	body   io.ReadCloser
	most   int64
	stream bool // of events
}

// post sends JSON. A status other than 200 is an error with what the server says about it.
func (w *web) post(ctx context.Context, address string, body any, header map[string]string) (*response, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(b))
	if err != nil {
		return nil, plain(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	return w.do(req, header)
}

func (w *web) get(ctx context.Context, address string) (*response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, plain(err)
	}
	req.Header.Set("Accept", "application/json")
	return w.do(req, nil)
}

func (w *web) do(req *http.Request, header map[string]string) (*response, error) {
	for name, v := range header {
		req.Header.Set(name, v)
	}
	if w.cfg.AuthToken != "" {
		req.Header.Set("Authorization", "Bearer "+w.cfg.AuthToken.Reveal())
	}
	for name, v := range w.cfg.Headers {
		req.Header.Set(name, v.Reveal())
	}
	resp, err := w.client.Do(req) //nolint:bodyclose // by who gets the response
	if err != nil {
		return nil, plain(err)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	r := &response{body: resp.Body, most: w.most, stream: kind == "text/event-stream"}
	if resp.StatusCode == http.StatusOK {
		return r, nil
	}
	defer r.close()
	return nil, &statusError{code: resp.StatusCode, text: complaint(resp.Body), retryAfter: resp.Header.Get("Retry-After")}
}

func (r *response) close() { _ = r.body.Close() }

// bytes reads a response as a whole.
func (r *response) bytes() ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r.body, r.most+1))
	if err != nil {
		return nil, plain(err)
	}
	if int64(len(b)) > r.most {
		return nil, errTooLong
	}
	return b, nil
}

// decode reads a response as a JSON value.
func (r *response) decode(v any) error {
	b, err := r.bytes()
	if err != nil {
		return err
	}
	if json.Unmarshal(b, v) != nil {
		return fmt.Errorf("%w: %s", errNotJSON, clip(string(b), maxComplaint))
	}
	return nil
}

var errNotJSON = errors.New("the answer is not the JSON that was expected")

// statusError is an HTTP answer other than 200.
type statusError struct {
	code             int
	text, retryAfter string
}

func (e *statusError) Error() string {
	s := fmt.Sprintf("HTTP %d %s", e.code, http.StatusText(e.code))
	if e.text != "" {
		s += ": " + e.text
	}
	if e.retryAfter != "" {
		s += " (try again after " + clip(e.retryAfter, 40) + " s)"
	}
	return s
}

const maxComplaint = 500 // bytes of what a server says that are shown

// complaint is what a server says about an error: the message in its JSON, or the beginning of its text.
func complaint(body io.Reader) string {
	b, _ := io.ReadAll(io.LimitReader(body, 64<<10))
	return complaintIn(b)
}

func complaintIn(b []byte) string {
	var e struct {
		Error   json.RawMessage
		Message string
		Detail  string
	}
	if json.Unmarshal(b, &e) == nil {
		var in struct{ Message string }
		if json.Unmarshal(e.Error, &in) == nil && in.Message != "" {
			return clip(in.Message, maxComplaint)
		}
		var text string
		if json.Unmarshal(e.Error, &text) == nil && text != "" {
			return clip(text, maxComplaint)
		}
		for _, s := range []string{e.Message, e.Detail} {
			if s != "" {
				return clip(s, maxComplaint)
			}
		}
	}
	return clip(strings.TrimSpace(string(b)), maxComplaint)
}

// clip cuts a text, and makes it one line.
func clip(s string, most int) string {
	s = strings.Join(strings.Fields(s[:min(len(s), 4*most)]), " ")
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

// plain leaves out of an error of net/http what it says about the address, which may hold a secret.
func plain(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

func plainError(err error) string { return plain(err).Error() }
