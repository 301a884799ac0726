package session

import (
	"context"
	"net/http"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// listen is one subscription of a modern client (2026-07-28, basic/patterns/subscriptions).
type listen struct {
	view      string
	principal string
	ended     chan struct{} // closed when its client may not use it any more
	out       bool          // ended is closed; guarded by the manager's mutex
	want      proxy.Changes
	news      *news
	subs      *proxy.Subscriptions
	tasks     []string // that the client hears of
}

// listen serves subscriptions/listen: first what is honoured of it, then the news, each with the subscription's id.
func (p *poster) listen(f *wire.Frame, caller *proxy.Caller) {
	id := append([]byte(nil), f.ID.Of(f.Raw)...)
	filter, ok := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, "notifications"))
	switch {
	case !ok:
		refuse(p.w, http.StatusOK, proxy.Failure(id, wire.CodeInvalidParams, "subscriptions/listen: params.notifications must be an object", nil))
		return
	case !p.accept.stream:
		invalidRequest(p.w, http.StatusNotAcceptable, id, "subscriptions/listen is answered as a stream: Accept must name text/event-stream")
		return
	case p.m.Draining():
		p.drainRefused(id)
		return
	}
	l := p.m.newListen(p.r.Context(), f, &filter, caller)
	defer l.subs.Close()
	es, ok := p.m.openStream(p.w, streamListen)
	if !ok {
		p.w.Header().Set("Retry-After", "60")
		invalidRequest(p.w, http.StatusServiceUnavailable, id, "too many streams are open (limits.max_streams)")
		return
	}
	defer p.m.closeStream(streamListen)
	defer p.m.hear(l)()
	meta := subscriptionMeta(id)
	if es.event(l.acknowledged(meta)) {
		p.write(es, l, id, meta)
	}
}

// newListen reads what a client wants to hear of, and subscribes to the resources among it. Its subs must be closed.
func (m *Manager) newListen(ctx context.Context, f *wire.Frame, filter *wire.Object, caller *proxy.Caller) *listen {
	l := &listen{view: caller.View, principal: caller.Principal, ended: make(chan struct{}), news: newNews(), want: proxy.Changes{
		Tools:     isTrue(f, filter, "toolsListChanged"),
		Prompts:   isTrue(f, filter, "promptsListChanged"),
		Resources: isTrue(f, filter, "resourcesListChanged"), Unseen: true,
	}}
	l.subs = m.proxy.NewSubscriptions(l.news.addUpdate)
	l.subs.HearTasks(l.news.addTask)
	l.subs.HearLists(l.news.add)
	l.subs.Listen(caller)
	for _, e := range wire.Elements(f.Raw, filter.Get(f.Raw, "taskIds")) {
		if id, ok := wire.DecodeString(e.Of(f.Raw)); ok && l.subs.WatchTask(caller, id) {
			l.tasks = append(l.tasks, id)
		}
	}
	for _, e := range wire.Elements(f.Raw, filter.Get(f.Raw, "resourceSubscriptions")) {
		uri, ok := wire.DecodeString(e.Of(f.Raw))
		if !ok {
			continue
		}
		if refusal, ok := l.subs.Add(ctx, caller, uri); ok && refusal == nil {
			l.want.Updated = append(l.want.Updated, uri)
		}
	}
	return l
}

// hear lets a subscription hear of changes until the function that it returns is called.
func (m *Manager) hear(l *listen) (stop func()) {
	m.mu.Lock()
	m.listens[l] = struct{}{}
	m.mu.Unlock()
	return func() {
		m.mu.Lock()
		delete(m.listens, l)
		m.mu.Unlock()
	}
}

// subscriptionMeta is the _meta of what belongs to the subscription with that id.
func subscriptionMeta(id []byte) string {
	return `{"` + wire.MetaSubscriptionID + `":` + string(id) + `}`
}

// take gives the changes that the client wants to hear of.
func (l *listen) take() proxy.Changes {
	c := l.news.take()
	return proxy.Changes{Tools: c.Tools && l.want.Tools, Prompts: c.Prompts && l.want.Prompts, Resources: c.Resources && l.want.Resources, Updated: c.Updated, Tasks: c.Tasks}
}

// complete is the answer to a subscription that ends in order.
func complete(id []byte, meta string) proxy.Answer {
	return proxy.Result(id, []byte(`{"resultType":"complete","_meta":`+meta+`}`))
}

func isTrue(f *wire.Frame, o *wire.Object, name string) bool {
	return string(o.Get(f.Raw, name).Of(f.Raw)) == "true"
}

// acknowledged names the part of the filter that is honoured.
func (l *listen) acknowledged(meta string) []byte {
	honoured := ""
	for _, k := range []struct {
		on   bool
		name string
	}{{l.want.Tools, "toolsListChanged"}, {l.want.Prompts, "promptsListChanged"}, {l.want.Resources, "resourcesListChanged"}} {
		if k.on {
			honoured += `,"` + k.name + `":true`
		}
	}
	for _, k := range []struct {
		name string
		list []string
	}{{"resourceSubscriptions", l.want.Updated}, {"taskIds", l.tasks}} {
		for i, item := range k.list {
			sep := ","
			if i == 0 {
				sep = `,"` + k.name + `":[`
			}
			honoured = string(wire.AppendString([]byte(honoured+sep), item))
		}
		if len(k.list) > 0 {
			honoured += "]"
		}
	}
	if honoured != "" {
		honoured = honoured[1:]
	}
	return []byte(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":` + meta + `,"notifications":{` + honoured + `}}}`)
}

func (p *poster) endListen(es *eventStream, id []byte, meta string) {
	a := complete(id, meta)
	es.event(a.Bytes())
}

// write keeps the subscription until the client goes or we stop; then it is answered, as a graceful end.
func (p *poster) write(es *eventStream, l *listen, id []byte, meta string) {
	tick := time.NewTicker(p.m.opt.KeepAlive)
	defer tick.Stop()
	for {
		select {
		case <-l.news.signal:
			for _, a := range announcements(l.take(), meta) {
				if !es.event(a) {
					return
				}
			}
		case <-tick.C:
			if !es.comment() {
				return
			}
		case <-p.r.Context().Done():
			return
		case <-l.ended:
			p.endListen(es, id, meta)
			return
		case <-p.m.drained:
			p.endListen(es, id, meta)
			return
		}
	}
}
