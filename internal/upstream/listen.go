package upstream

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// listenKinds are the changes of lists that a modern server may announce, with the capability that says so.
var listenKinds = []struct{ capability, filter string }{
	{"tools", "toolsListChanged"}, {"prompts", "promptsListChanged"}, {"resources", "resourcesListChanged"},
}

// listen holds a subscription to a modern server's news and renews it when it ends. After each renewal the lists are
// looked at again, since nobody tells what was missed (2026-07-28, basic/patterns/subscriptions).
func (s *slot) listen(ctx context.Context, c conn, peer *Peer) {
	filter := ""
	for _, k := range listenKinds {
		if peer.Has(k.capability, "listChanged") {
			filter += `,"` + k.filter + `":true`
		}
	}
	if filter == "" {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(doneContext(c), cancel)
	defer stop()
	pause := streamPause
	for first := true; ctx.Err() == nil; first = false {
		if !first {
			s.tell()
		}
		began := time.Now()
		if !s.listenOnce(ctx, c, peer, filter[1:]) {
			return
		}
		if time.Since(began) > streamMaxPause {
			pause = streamPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, streamMaxPause)
	}
}

// listenOnce runs one subscription to its end; false where the server refuses it.
func (s *slot) listenOnce(ctx context.Context, c conn, peer *Peer, filter string) (again bool) {
	id := s.u.NextID()
	frame := append([]byte(`{"jsonrpc":"2.0","id":`), wire.AppendUpstreamID(nil, id)...)
	frame = append(frame, `,"method":"subscriptions/listen","params":{"notifications":{`+filter+`},"_meta":{"`+
		wire.MetaProtocolVersion+`":"`+peer.Version+`","`+wire.MetaClientInfo+`":{"name":"mcp-proxy","version":"1"},"`+
		wire.MetaClientCapabilities+`":{}}}}`...)
	x, err := c.Start(ctx, &Outgoing{ID: id, Method: "subscriptions/listen", Frame: frame})
	if err != nil {
		return true
	}
	answered := false
	defer func() {
		x.Close(!answered)
		if !answered && isDone(c) == false {
			s.u.off.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), replyTimeout)
				defer cancel()
				_ = c.Cancel(ctx, id, "")
			})
		}
	}()
	for {
		f, err := x.Next(ctx)
		if err != nil {
			return true
		}
		switch f.Kind {
		case wire.KindNotification:
			if f.Method != "notifications/subscriptions/acknowledged" { // expected, and nobody else's business
				s.Notification(f)
			}
		case wire.KindResponse:
			answered = true
			return true
		case wire.KindError:
			answered = true
			s.u.log.Info("the server refuses to announce changes of its lists", zap.ByteString("error", f.Error.Of(f.Raw)))
			return false
		}
	}
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
