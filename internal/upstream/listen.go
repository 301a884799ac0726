package upstream

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// listenKinds are the changes of lists that a modern server may announce, with the capability that says so.
var listenKinds = []struct{ capability, filter string }{
	{"tools", "toolsListChanged"}, {"prompts", "promptsListChanged"}, {"resources", "resourcesListChanged"},
}

// subscription is one subscriptions/listen under way.
type subscription struct {
	cancel context.CancelFunc
	acked  chan struct{} // closed with the first frame that comes for it
	done   chan struct{} // closed at its end
	refuse bool          // the server refuses it; set before done is closed
}

// ackTimeout is how long the old subscription is kept when the new one is not acknowledged.
const ackTimeout = 5 * time.Second

// listen keeps a subscription to a modern server's news. What is wanted cannot be changed in one that runs: the new one
// is there before the old one ends. After each renewal the lists are looked at again, since nobody tells what was missed
// (2026-07-28, basic/patterns/subscriptions).
func (s *slot) listen(ctx context.Context, c conn, peer *Peer) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(doneContext(c), cancel)
	defer stop()
	var current *subscription
	defer func() { current.end() }()
	pause := streamPause
	for ctx.Err() == nil {
		filter, changed := s.wanted(peer)
		var done <-chan struct{}
		began := time.Now()
		if filter != "" {
			next := s.subscribe(ctx, c, peer, filter)
			wait(ctx, ackTimeout, next.acked, next.done)
			current.end()
			current, done = next, next.done
		} else {
			current.end()
			current = nil
		}
		s.set(func() { s.wishes().listening = changed })
		select {
		case <-changed:
			continue
		case <-ctx.Done():
			return
		case <-done:
		}
		if current.refuse {
			s.refusedToTell()
			wait(ctx, 0, changed, nil)
			continue
		}
		if time.Since(began) > streamMaxPause {
			pause = streamPause
		}
		wait(ctx, pause, changed, nil)
		pause = min(2*pause, streamMaxPause)
		s.tell()
	}
}

// refusedToTell notes that the server announces nothing on this connection; the lists are looked at now and then instead,
// for the first time now.
func (s *slot) refusedToTell() {
	known := false
	s.set(func() { known, s.deaf = s.deaf, true })
	if !known {
		s.tell()
	}
}

// wait returns with the first of these: a channel, the time (none for zero), the end of ctx.
func wait(ctx context.Context, d time.Duration, a, b <-chan struct{}) {
	var timeout <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timeout = t.C
	}
	select {
	case <-a:
	case <-b:
	case <-timeout:
	case <-ctx.Done():
	}
}

func (sub *subscription) end() {
	if sub != nil {
		sub.cancel()
		<-sub.done
	}
}

// wanted is the filter for what is to be heard from a modern server, and a channel that is closed when that changes.
func (s *slot) wanted(peer *Peer) (filter string, changed <-chan struct{}) {
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	w := s.wishes()
	for _, k := range listenKinds {
		if peer.Has(k.capability, "listChanged") {
			filter += `,"` + k.filter + `":true`
		}
	}
	if len(w.watched) > 0 && peer.Has("resources", "subscribe") {
		filter += `,"resourceSubscriptions":` + stringArray(w.watched)
	}
	if len(w.tasks) > 0 && peer.Has("extensions", TasksExtension) {
		filter += `,"taskIds":` + stringArray(w.tasks)
	}
	if filter != "" {
		filter = filter[1:]
	}
	return filter, w.rewatch
}

// subscribe begins one subscription.
func (s *slot) subscribe(ctx context.Context, c conn, peer *Peer, filter string) *subscription {
	ctx, cancel := context.WithCancel(ctx)
	sub := &subscription{cancel: cancel, acked: make(chan struct{}), done: make(chan struct{})}
	go func() { // whoever subscribes ends it, and waits for that
		defer close(sub.done)
		defer cancel()
		s.hear(ctx, c, peer, filter, sub)
	}()
	return sub
}

// hear runs a subscription to its end.
func (s *slot) hear(ctx context.Context, c conn, peer *Peer, filter string, sub *subscription) {
	id := s.u.NextID()
	frame := append([]byte(`{"jsonrpc":"2.0","id":`), wire.AppendUpstreamID(nil, id)...)
	frame = append(frame, `,"method":"subscriptions/listen","params":{"notifications":{`+filter+`},"_meta":{"`+
		wire.MetaProtocolVersion+`":"`+peer.Version+`","`+wire.MetaClientInfo+`":{"name":"mcp-proxy","version":"1"},"`+
		wire.MetaClientCapabilities+`":`+listenCapabilities(peer)+`}}}`...)
	x, err := c.Start(ctx, &Outgoing{ID: id, Method: "subscriptions/listen", Frame: frame})
	if err != nil {
		return
	}
	answered, acked := false, false
	defer func() {
		x.Close(!answered)
		if !answered && !isDone(c) {
			s.cancelLater(c, id)
		}
	}()
	for {
		f, err := x.Next(ctx)
		if err != nil {
			return
		}
		if !acked {
			acked = true
			close(sub.acked)
		}
		switch f.Kind {
		case wire.KindNotification:
			if f.Method != "notifications/subscriptions/acknowledged" {
				s.Notification(f)
			} else if !honours(f, filter) {
				s.refusedToTell()
			}
		case wire.KindResponse:
			answered = true
			return
		case wire.KindError:
			answered, sub.refuse = true, true
			s.u.log.Info("the server refuses to announce changes", zap.String("error", s.mask().text(string(f.Error.Of(f.Raw)))))
			return
		}
	}
}

// honours says whether a subscription is acknowledged with every list that was asked for. An acknowledgement that names
// nothing is taken for one of all.
func honours(ack *wire.Frame, filter string) bool {
	honoured, ok := wire.ObjectAt(ack.Raw, ack.Body.Get(ack.Raw, "notifications"))
	if !ok {
		return true
	}
	for _, k := range listenKinds {
		if strings.Contains(filter, `"`+k.filter+`":true`) && string(honoured.Get(ack.Raw, k.filter).Of(ack.Raw)) != "true" {
			return false
		}
	}
	return true
}

// listenCapabilities are what a subscription declares: news of tasks come only to who knows tasks.
func listenCapabilities(peer *Peer) string {
	if peer.Has("extensions", TasksExtension) {
		return `{"extensions":{"` + TasksExtension + `":{}}}`
	}
	return "{}"
}

// cancelLater tells the server that a subscription is over, off everybody's path.
func (s *slot) cancelLater(c conn, id uint64) {
	s.u.off.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), replyTimeout)
		defer cancel()
		_ = c.Cancel(ctx, id, "")
	})
}

// doneContext is a context that ends with a connection.
func doneContext(c conn) context.Context { return connContext{context.Background(), c.Done()} }

type connContext struct {
	context.Context
	done <-chan struct{}
}

func (c connContext) Done() <-chan struct{} { return c.done }

func (c connContext) Err() error {
	select {
	case <-c.done:
		return context.Canceled
	default:
		return nil
	}
}
