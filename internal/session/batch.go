package session

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

const (
	// maxBatch bounds the messages of one batch.
	maxBatch = 100
	// batchWorkers is how many requests of one batch run at a time.
	batchWorkers = 8
)

// batch serves an array of messages, which only the revision 2025-03-26 has. Each of them meets every check that it
// would meet alone.
func (p *poster) batch(body []byte) {
	header := p.r.Header.Get(headerVersion)
	if wire.LooksModern(header) {
		invalidRequest(p.w, http.StatusBadRequest, nil, "batches exist only in the revision 2025-03-26")
		return
	}
	s, ok := p.session(nil)
	if !ok {
		return
	}
	defer s.release()
	if s.version != wire.Rev20250326 {
		invalidRequest(p.w, http.StatusBadRequest, nil, "batches exist only in the revision 2025-03-26; this session speaks "+s.version)
		return
	}
	parts, err := wire.SplitBatch(body, maxBatch)
	if err != nil {
		var pe *wire.ParseError
		if errors.As(err, &pe) && pe.Reason == wire.ReasonTooManyMembers {
			p.m.count.Limit(count.LimitBatch)
		}
		p.m.refuseFrame(p.w, err)
		return
	}
	var requests []*wire.Frame
	var failed []proxy.Answer
	for _, part := range parts {
		f, err := wire.Parse(part, wire.Downstream, p.m.limits)
		switch {
		case err != nil:
			failed = append(failed, p.m.parseFailure(err))
		case f.Kind == wire.KindNotification:
			p.m.notified(s, f)
		case f.Kind != wire.KindRequest:
			p.m.answered(s, f)
		case f.Method == "initialize":
			failed = append(failed, proxy.Failure(f.ID.Of(f.Raw), wire.CodeInvalidRequest, "initialize must not be part of a batch", nil))
		case f.Meta.Has(f.Raw, wire.MetaProtocolVersion):
			// Alone it would be a request of the stateless era, whose headers must say what it says.
			failed = append(failed, proxy.Failure(f.ID.Of(f.Raw), wire.CodeInvalidRequest, "a request of a revision without batches must be sent alone", nil))
		default:
			requests = append(requests, f)
		}
	}
	if len(requests) == 0 && len(failed) == 0 {
		p.w.WriteHeader(http.StatusAccepted)
		return
	}
	p.runBatch(s, requests, failed)
}

// runBatch runs the requests of a batch side by side and answers all of them.
func (p *poster) runBatch(s *session, requests []*wire.Frame, failed []proxy.Answer) {
	if !p.m.begin() {
		p.drainRefused(nil)
		return
	}
	defer p.m.calls.Done()
	all, cancelAll := context.WithCancelCause(p.m.base)
	defer cancelAll(nil)
	x, stop := p.exchange(s, cancelAll, func() []byte { return allTooLarge(requests) })
	defer stop()
	answers := &batchAnswers{x: x}
	for i := range failed {
		answers.add(&failed[i])
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, batchWorkers)
	for _, f := range requests {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithCancelCause(all)
			defer cancel(nil)
			key := wire.IDKey(f.ID.Of(f.Raw))
			r := s.enter(key, cancel)
			defer s.leave(key, r)
			a := p.m.proxy.Handle(ctx, cancel, p.request(s, f, x))
			if !a.Ended {
				answers.add(&a)
				a.Release()
			}
		})
	}
	wg.Wait()
	answers.finish()
}

// allTooLarge is answerTooLarge for all requests of a batch.
func allTooLarge(requests []*wire.Frame) []byte {
	if len(requests) == 0 { // all answers are refusals
		return answerTooLarge(nil)
	}
	var parts [][]byte
	for _, f := range requests {
		parts = append(parts, answerTooLarge(f.ID.Of(f.Raw)))
	}
	return append(append([]byte{'['}, bytes.Join(parts, []byte{','})...), ']')
}

// batchAnswers gathers the answers of a batch, which go out as one array: as the body, or as the last event once
// something streams.
type batchAnswers struct {
	x     *exchange
	mu    sync.Mutex
	array []byte // without its brackets
}

func (b *batchAnswers) add(a *proxy.Answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.array) > 0 {
		b.array = append(b.array, ',')
	}
	b.array = append(b.array, a.Bytes()...)
}

func (b *batchAnswers) finish() {
	if len(b.array) == 0 { // all of them were cancelled
		b.x.finishSilently(nil)
		return
	}
	whole := append(append([]byte{'['}, b.array...), ']')
	a := proxy.Whole(whole)
	b.x.finish(&a, http.StatusOK)
}
