package proxy

import (
	"errors"
	"slices"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// A legacy upstream that asks for several things at once sends them one after the other, and nothing says which is the
// last. A modern client is to get them together, in one round, so what else comes is waited for a moment.

const (
	// quietAfter is how long nothing may come after a question until what has been asked is brought to the client.
	quietAfter = 50 * time.Millisecond
	// askingMost bounds how long questions that keep coming are waited for.
	askingMost = time.Second
)

// errQuiet says that the upstream waits for what it has asked.
var errQuiet = errors.New("nothing more comes for now")

// arrival is what the upstream sends next, once it is there.
type arrival struct {
	f   *wire.Frame
	err error
}

// next gives what the upstream sends next. While it has questions for a modern client it gives errQuiet when nothing
// comes for a moment; what comes later is given the next time.
func (c *call) next() (*wire.Frame, error) {
	d, isTask := c.x.(*taskDrive)
	switch asking := len(c.questions) > 0; {
	case asking && isTask && !d.hasQuestion():
		return nil, errQuiet // a task tells all at once
	case isTask, !asking && c.ahead == nil:
		return c.x.Next(c.ctx)
	case !asking:
		return c.take(<-c.ahead)
	case c.ahead == nil:
		c.readAhead()
	}
	t := time.NewTimer(min(quietAfter, time.Until(c.asking.Add(askingMost))))
	defer t.Stop()
	select {
	case r := <-c.ahead:
		return c.take(r)
	case <-t.C:
		return nil, errQuiet
	}
}

func (c *call) take(r arrival) (*wire.Frame, error) {
	c.ahead = nil
	return r.f, r.err
}

// readAhead begins to read the next frame. An exchange is used by one goroutine at a time: until this one is done, nobody
// else reads.
func (c *call) readAhead() {
	ahead := make(chan arrival, 1)
	c.ahead = ahead
	x, ctx := c.x, c.ctx
	go func() {
		f, err := x.Next(ctx)
		ahead <- arrival{f, err}
	}()
}

// stopReading waits for a reading that nobody needs any more; the call's context has ended.
func (c *call) stopReading() {
	if c.ahead != nil {
		<-c.ahead
		c.ahead = nil
	}
}

// pose notes a question of the upstream that is to be brought to a modern client; false where too many are open, or one
// with its id.
func (c *call) pose(f *wire.Frame) bool {
	if len(c.questions) >= maxAsks || c.posed(wire.IDKey(f.ID.Of(f.Raw))) >= 0 {
		return false
	}
	if len(c.questions) == 0 {
		c.asking = time.Now()
	}
	c.questions = append(c.questions, f)
	return true
}

// posed gives the place of the question with that id among those that nobody has been asked yet; below zero for none.
func (c *call) posed(id string) int {
	return slices.IndexFunc(c.questions, func(q *wire.Frame) bool { return wire.IDKey(q.ID.Of(q.Raw)) == id })
}

// withdraw takes a question back; false where it is not open.
func (c *call) withdraw(id string) bool {
	if i := c.posed(id); i >= 0 {
		c.questions = slices.Delete(c.questions, i, i+1)
		return true
	}
	return c.asks.withdraw(id)
}
