// Package load is an MCP client that does nothing but call: one keep-alive
// connection, one request at a time, prepared bytes out, and just enough
// reading of the answer to know that it is the right one. It is made to cost
// little beside the servers it measures.
package load

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"
)

// Client holds one connection and, in the legacy era, one session on it. It
// serves one goroutine.
type Client struct {
	target  *Target
	conn    net.Conn
	in      *reader
	session string
	request message
	want    shape
	id      []byte
}

// lastClient makes the ids of all clients differ, so that an answer that
// reaches the wrong client is noticed.
var lastClient atomic.Int64

// Dial connects, opens a session where the era has them, and checks a first
// answer in full. Every step ends with ctx or its deadline.
func Dial(ctx context.Context, t *Target) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", t.Addr)
	if err != nil {
		return nil, err
	}
	c := &Client{target: t, conn: conn, in: newReader(conn)}
	// Each client counts up from its own hundred million; twelve digits leave
	// room for thousands of clients.
	c.id = strconv.AppendInt(nil, 100_000_000_000+lastClient.Add(1)*100_000_000, 10)
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := c.begin(); err != nil {
		conn.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, err
	}
	return c, nil
}

func (c *Client) begin() error {
	if c.target.Era == Legacy {
		if err := c.open(); err != nil {
			return fmt.Errorf("opening a session: %w", err)
		}
	}
	c.request = c.target.call(c.session)
	answer, err := c.exchange()
	if err != nil {
		return err
	}
	c.want, err = learn(c.target, answer, c.id)
	return err
}

func (c *Client) open() error {
	c.request = c.target.initialize()
	c.nextID()
	c.request.setID(c.id)
	resp, err := c.send(c.request.bytes)
	if err != nil {
		return err
	}
	if resp.status != 200 || resp.session == "" {
		return wrong("initialize gave status %d, session %q: %.200s", resp.status, resp.session, resp.body)
	}
	c.session = resp.session
	resp, err = c.send(c.target.initialized(c.session))
	if err == nil && resp.status != 202 {
		err = wrong("notifications/initialized gave status %d: %.200s", resp.status, resp.body)
	}
	return err
}

// Run calls again and again until stop is set and returns how many calls were
// answered. It fails at the first wrong answer, or when limit has passed.
func (c *Client) Run(stop *atomic.Bool, limit time.Time) (calls int64, err error) {
	if err := c.conn.SetDeadline(limit); err != nil {
		return 0, err
	}
	for !stop.Load() {
		answer, err := c.exchange()
		if err != nil {
			return calls, err
		}
		if err := c.want.matches(answer, c.id); err != nil {
			return calls, err
		}
		calls++
	}
	return calls, nil
}

// exchange makes the call once, with a new id, and returns the answer's frame.
func (c *Client) exchange() ([]byte, error) {
	c.nextID()
	c.request.setID(c.id)
	resp, err := c.send(c.request.bytes)
	if err != nil {
		return nil, err
	}
	if resp.status != 200 {
		return nil, wrong("status %d: %.500s", resp.status, resp.body)
	}
	if resp.events {
		return lastEvent(resp.body), nil
	}
	return resp.body, nil
}

func (c *Client) send(request []byte) (response, error) {
	if _, err := c.conn.Write(request); err != nil {
		return response{}, err
	}
	return c.in.read()
}

// nextID adds one to the decimal digits of the id.
func (c *Client) nextID() {
	for i := len(c.id) - 1; i >= 0; i-- {
		if c.id[i] < '9' {
			c.id[i]++
			return
		}
		c.id[i] = '0'
	}
}

// Close ends the session, if there is one, and the connection. A server that
// does not answer is left after limit has passed.
func (c *Client) Close(limit time.Time) error {
	defer c.conn.Close()
	if c.session == "" {
		return nil
	}
	if err := c.conn.SetDeadline(limit); err != nil {
		return err
	}
	resp, err := c.send(c.target.end(c.session))
	if err == nil && resp.status/100 != 2 && resp.status != 405 {
		err = wrong("DELETE gave status %d", resp.status)
	}
	return err
}
