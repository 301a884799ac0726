package testmcp

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync"
)

// A child reports over a unix socket. Each record is one line of JSON and is acknowledged before the child goes
// on, which is what makes "recorded before answered" hold across processes. A socket also survives a crash:
// bytes written before a SIGKILL are still read, and the end of the connection is the record of the death.
const (
	ackLine    = "ack"
	signalLine = "signal "
)

// wireRecord is a Record on the socket, with what the exported type hides.
type wireRecord struct {
	Record
	Frame, ID []byte // Raw may be anything but JSON, so it travels encoded
	Answer    bool
}

// link is the recorder's end of one child's connection.
type link struct {
	conn net.Conn
	mu   sync.Mutex
	dead bool
}

// send writes one line; a child that is gone misses it.
func (l *link) send(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return
	}
	if _, err := l.conn.Write([]byte(line + "\n")); err != nil {
		l.dead = true
	}
}

func (r *Recorder) accept() {
	for {
		conn, err := r.ln.Accept()
		if err != nil {
			return
		}
		l := &link{conn: conn}
		r.mu.Lock()
		r.links[l] = true
		for name, ch := range r.signals {
			select {
			case <-ch:
				l.send(signalLine + name)
			default:
			}
		}
		r.mu.Unlock()
		r.wg.Go(func() { r.follow(l) })
	}
}

// follow reads a child's records until it is gone.
func (r *Recorder) follow(l *link) {
	defer l.conn.Close()
	pid, exited := 0, false
	in := bufio.NewReader(l.conn)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		var w wireRecord
		if json.Unmarshal(line, &w) != nil {
			continue
		}
		rec := w.Record
		rec.Frame, rec.ID = Raw(w.Frame), Raw(w.ID)
		pid, exited = rec.PID, rec.Kind == Exit
		r.add(rec, w.Answer)
		l.send(ackLine)
	}
	r.mu.Lock()
	delete(r.links, l)
	r.mu.Unlock()
	if pid != 0 && !exited {
		r.add(Record{Time: now(), PID: pid, Kind: Exit, Text: "gone"}, false)
	}
}

// reporter is the child's end.
type reporter struct {
	conn net.Conn
	acks chan struct{}

	mu sync.Mutex // one record at a time

	sigMu   sync.Mutex
	signals map[string]chan struct{}
}

func dialRecorder(path string) (*reporter, error) {
	if path == "" {
		return nil, errors.New("no recorder")
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	r := &reporter{conn: conn, acks: make(chan struct{}, 1), signals: map[string]chan struct{}{}}
	go r.listen() // ends with the process or the test
	return r, nil
}

func (r *reporter) listen() {
	defer close(r.acks)
	in := bufio.NewScanner(r.conn)
	for in.Scan() {
		if in.Text() == ackLine {
			r.acks <- struct{}{}
		} else if name, ok := strings.CutPrefix(in.Text(), signalLine); ok {
			r.give(name)
		}
	}
}

func (r *reporter) give(name string) {
	r.sigMu.Lock()
	defer r.sigMu.Unlock()
	ch := r.chanLocked(name)
	select {
	case <-ch:
	default:
		close(ch)
	}
}

func (r *reporter) chanLocked(name string) chan struct{} {
	if r.signals[name] == nil {
		r.signals[name] = make(chan struct{})
	}
	return r.signals[name]
}

func (r *reporter) signal(name string) <-chan struct{} {
	r.sigMu.Lock()
	defer r.sigMu.Unlock()
	return r.chanLocked(name)
}

// record sends one record and waits until the test has it. Once the test is gone nothing is recorded any more.
func (r *reporter) record(rec Record) {
	line, err := json.Marshal(wireRecord{Record: rec, Frame: rec.Frame, ID: rec.ID, Answer: rec.answer})
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.conn.Write(append(line, '\n')); err == nil {
		<-r.acks
	}
}
