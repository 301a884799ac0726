package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/httpd"
)

// mount makes the handler for a server of somebody else.
func (a *App) mount(opts httpd.Options) error {
	opts.Mounted = true
	if err := a.hang(opts); err != nil {
		return err
	}
	a.guests = &guests{next: &a.main, over: a.baseCtx, end: a.endBase}
	return nil
}

// Handler is what an App serves that was made to be mounted. It may be used before Start and after Stop, when it answers
// that it is away.
func (a *App) Handler() http.Handler { return a.guests }

// guests counts the requests that come through the servers of others, so that their end can be waited for.
type guests struct {
	next http.Handler
	over context.Context // ends what is still open at the end
	end  context.CancelFunc

	mu     sync.Mutex
	closed bool
	count  int
	none   chan struct{} // closed when the last one has left; nil where nobody waits
}

// ServeHTTP implements http.Handler.
func (g *guests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.enter() {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the proxy has ended", http.StatusServiceUnavailable)
		return
	}
	defer g.exit()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(g.over, cancel)()
	g.next.ServeHTTP(w, r.WithContext(ctx))
}

func (g *guests) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.count++
	}
	return !g.closed
}

func (g *guests) exit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count--; g.count == 0 && g.none != nil {
		close(g.none)
		g.none = nil
	}
}

var errGuests = errors.New("requests are still open: their clients neither send nor read")

// leave lets nobody in any more and waits for those who are in, who have been drained.
func (g *guests) leave(context.Context) error {
	g.mu.Lock()
	g.closed = true
	none := make(chan struct{})
	if g.count == 0 {
		close(none)
	} else {
		g.none = none
	}
	g.mu.Unlock()
	for _, last := range []bool{false, true} {
		t := time.NewTimer(closeGrace)
		select {
		case <-none:
			t.Stop()
			return nil
		case <-t.C:
		}
		if !last {
			g.end()
		}
	}
	return errGuests
}

// Check waits until what the configuration calls an error at the start can be told, and tells it: servers that cannot be
// reached where the start is strict, and names that are taken twice where they must not be.
func (a *App) Check(ctx context.Context) error {
	if err := a.strictly(ctx); err != nil {
		return err
	}
	return a.unambiguous(ctx)
}

// WaitReady waits until every server has been listed or has failed, for startup_grace at most.
func (a *App) WaitReady(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, a.config().Proxy.StartupGrace)
	defer cancel()
	a.WaitListed(limited)
	return ctx.Err()
}

// Strict says whether any mistake prevents the start.
func (a *App) Strict() bool { return a.config().Proxy.Startup == config.StartupStrict }

// HasPart says whether there is such a part.
func (a *App) HasPart(p Part) error {
	if !a.proxy.HasView(p.view()) {
		return fmt.Errorf("there is no %s in the configuration", p.view())
	}
	return nil
}
