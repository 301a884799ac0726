package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// place is how far a stream has been read, and how long the server wants us to wait before we come back
// (2025-11-25, transports, "Resumability and Redelivery").
type place struct {
	id    string
	pause time.Duration
	been  bool // the server has served a stream
}

func (p *place) note(ev *wire.Event) {
	if ev.HasID {
		p.id = ev.ID
	}
	if ev.Retry > 0 {
		p.pause = min(ev.Retry, maxRetryPause)
	}
}

const (
	// maxRetryPause bounds what a server may ask for.
	maxRetryPause = time.Minute
	// maxResumes bounds how often one answer is fetched without any progress.
	maxResumes = 5
)

// resume goes on with a stream that broke before its answer, from the last event that had an id. It gives the error that
// broke it where that is not possible.
func (x *httpExchange) resume(ctx context.Context, broken error) error {
	p := x.c.peer.Load()
	if x.place.id == "" || p == nil || p.Era != wire.Legacy || x.resumes >= maxResumes {
		return broken
	}
	_ = x.resp.Body.Close()
	x.resumes++
	pause := x.place.pause
	if pause == 0 {
		pause = streamPause
	}
	if x.place.pause > 0 && errors.Is(broken, io.EOF) && x.out.Pauser != nil {
		x.out.Pauser.Pause(pause)
	}
	wait(ctx, pause, nil, nil)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	resp, err := x.c.get(ctx, x.place.id)
	if err != nil {
		return x.resume(ctx, broken)
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header) != "text/event-stream" {
		discard(resp)
		return broken
	}
	x.c.env.log.Debug("a broken stream is resumed", zap.String("event", x.place.id))
	x.resp, x.events = resp, wire.NewEventReader(resp.Body, x.c.env.maxFrame)
	return nil
}

// get asks for a stream: the standing one, or with an event id the one that the event belongs to.
func (c *httpConn) get(ctx context.Context, lastEvent string) (*http.Response, error) {
	req := c.request(ctx, http.MethodGet, nil, c.sessionID())
	req.Header["Accept"] = []string{"text/event-stream"}
	delete(req.Header, "Content-Type")
	if lastEvent != "" {
		req.Header["Last-Event-Id"] = []string{lastEvent}
	}
	return c.follow(req, nil)
}

// sessionText is what servers say of a session that they no longer know.
var sessionText = regexp.MustCompile(`(?i)session[^"]{0,60}(not found|unknown|invalid|expired|missing|terminated|closed|does not exist|doesn't exist|no longer|not initialized)|(no valid|invalid|unknown|missing|expired|no such|no)[^"]{0,20} session`)

// lostSession says whether an answer means that the server no longer knows our session, which proves that the request
// has not run. The specification says 404; servers say it in other ways too. body is that of the answer.
func lostSession(status int, body []byte) bool {
	if len(body) > 4<<10 {
		body = body[:4<<10]
	}
	switch status {
	case http.StatusNotFound, http.StatusGone:
		return true
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusConflict, http.StatusPreconditionFailed, http.StatusServiceUnavailable:
		return sessionText.Match(body)
	case http.StatusOK:
		return lostByError(body)
	}
	return false
}

// lostByError looks at a JSON-RPC error that comes as a success: only codes that no tool gives, and that text.
func lostByError(body []byte) bool {
	root, ok := wire.ObjectAt(body, wire.Span{End: len(body)})
	if !ok || len(body) == 4<<10 {
		return false
	}
	e, ok := wire.ObjectAt(body, root.Get(body, "error"))
	if !ok {
		return false
	}
	code, _ := strconv.Atoi(string(e.Get(body, "code").Of(body)))
	return slices.Contains([]int{wire.CodeInvalidRequest, -32001, -32000}, code) && sessionText.Match(e.Get(body, "message").Of(body))
}

// loseFor ends a connection whose session the server has lost, where such a session is not replaced; the slot makes another
// connection.
func (c *httpConn) loseFor(session string) {
	if c.sessionID() == session {
		c.cancel(atStage("run", errStayLost))
	}
}

// again replaces the lost session and sends the request once more.
func (x *httpExchange) again(ctx context.Context) error {
	if x.repeated {
		return x.fault(ReasonUnavailable, errSessionLost)
	}
	x.repeated = true
	if x.c.env.stayLost {
		x.c.loseFor(x.session)
		return x.fault(ReasonUnavailable, errStayLost)
	}
	if err := x.c.renew(ctx, x.session); err != nil {
		return x.fault(ReasonUnavailable, errors.Join(errSessionLost, err))
	}
	_ = x.resp.Body.Close()
	x.resp, x.events, x.ended = nil, nil, false
	return x.post(ctx)
}
