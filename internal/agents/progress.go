package agents

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// progressPause is the least time between two notifications of one run: what comes between them goes out together.
const progressPause = 100 * time.Millisecond

// progress tells a caller that wants it how an answer grows.
type progress struct {
	ctx   context.Context
	req   *mcp.CallToolRequest
	token any

	mu   sync.Mutex
	text strings.Builder
	n    int // parts so far
	last time.Time
}

func newProgress(ctx context.Context, req *mcp.CallToolRequest) *progress {
	return &progress{ctx: ctx, req: req, token: req.Params.GetProgressToken()}
}

// say takes a part of the answer.
func (p *progress) say(part string) {
	if p.token == nil || part == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	p.text.WriteString(part)
	if time.Since(p.last) >= progressPause {
		p.send()
	}
}

// flush sends what has not been sent yet.
func (p *progress) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text.Len() > 0 && p.ctx.Err() == nil {
		p.send()
	}
}

// send is called with p.mu held.
func (p *progress) send() {
	p.last = time.Now()
	_ = p.req.Session.NotifyProgress(p.ctx, &mcp.ProgressNotificationParams{ProgressToken: p.token, Progress: float64(p.n), Message: p.text.String()})
	p.text.Reset()
}
