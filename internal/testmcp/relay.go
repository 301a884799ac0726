package testmcp

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Relay is a TCP relay between a client and a server, as balancers and networks are: it may close what is idle,
// break all connections, or go silent.
type Relay struct {
	Addr string // where it listens

	target string
	idle   time.Duration
	ln     net.Listener
	wg     sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	total  int
	frozen chan struct{} // closed when traffic flows
	closed bool
}

// StartRelay relays to an address. A connection on which nothing has moved for idle is closed; 0 keeps all.
func StartRelay(t testing.TB, target string, idle time.Duration) *Relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	open := make(chan struct{})
	close(open)
	r := &Relay{Addr: ln.Addr().String(), target: target, idle: idle, ln: ln, conns: map[net.Conn]bool{}, frozen: open}
	r.wg.Go(r.accept)
	t.Cleanup(r.stop)
	return r
}

// Through gives a URL that leads through the relay.
func (r *Relay) Through(to string) string {
	u, err := url.Parse(to)
	if err != nil {
		panic(err)
	}
	u.Host = r.Addr
	return u.String()
}

// Connections says how many connections have been made so far.
func (r *Relay) Connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// Cut resets every connection.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
}

// Freeze lets nothing through any more while connections stay open, until Thaw.
func (r *Relay) Freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = make(chan struct{})
}

// Thaw ends Freeze. It is called once for each Freeze.
func (r *Relay) Thaw() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.frozen)
}

func (r *Relay) stop() {
	_ = r.ln.Close()
	r.mu.Lock()
	r.closed = true
	select {
	case <-r.frozen:
	default:
		close(r.frozen)
	}
	r.mu.Unlock()
	r.Cut()
	r.wg.Wait()
}

func (r *Relay) accept() {
	for {
		near, err := r.ln.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", r.target)
		if err != nil || !r.keep(near, far) {
			_ = near.Close()
			continue
		}
		p := &relayed{r: r, near: near, far: far}
		if r.idle > 0 {
			p.timer = time.AfterFunc(r.idle, p.close)
		}
		r.wg.Go(func() { p.copy(near, far) })
		r.wg.Go(func() { p.copy(far, near) })
	}
}

// keep counts a pair of connections in; it closes the far one and says no when the relay is stopping.
func (r *Relay) keep(near, far net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = far.Close()
		return false
	}
	r.conns[near], r.conns[far] = true, true
	r.total++
	return true
}

func (r *Relay) flowing() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.frozen
}

// relayed is one connection through the relay.
type relayed struct {
	r         *Relay
	near, far net.Conn
	timer     *time.Timer
}

func (p *relayed) copy(from, to net.Conn) {
	defer p.close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if p.timer != nil {
			p.timer.Reset(p.r.idle)
		}
		<-p.r.flowing()
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *relayed) close() {
	p.r.mu.Lock()
	delete(p.r.conns, p.near)
	delete(p.r.conns, p.far)
	p.r.mu.Unlock()
	_ = p.near.Close()
	_ = p.far.Close()
}
