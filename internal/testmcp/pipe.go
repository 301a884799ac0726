package testmcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
)

// pipeConn names the conversation of a child in records.
const pipeConn = "pipe"

// runChild plays a server over stdin and stdout and ends the process.
func runChild(srv *Server) {
	rec, err := childSink()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testmcp:", err)
		os.Exit(3)
	}
	in := newInstance(srv, rec)
	p := &Process{in: in, stdin: pollable(), out: &frameWriter{w: os.Stdout, form: srv.Write}, eof: make(chan struct{})}
	in.proc = p
	dir, _ := os.Getwd()
	in.record(Record{Kind: Start, Text: srv.name(), Args: os.Args, Env: os.Environ(), Dir: dir})
	p.watchSignals()
	if srv.Start != nil {
		srv.Start(p)
	}
	p.ended(in.readFrames(p.stdin, p.out))
}

func childSink() (sink, error) {
	path := os.Getenv(envRecord)
	if path == "" {
		return discard{}, nil
	}
	return dialRecorder(path)
}

// watchSignals records SIGTERM and SIGINT, then exits as a well-behaved server does, unless told to ignore them.
func (p *Process) watchSignals() {
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, endSignals()...)
	go func() { // ends with the process
		for s := range ch {
			p.in.record(Record{Kind: Signal, Text: s.String()})
			if p.in.value(ignoreSignals) == 0 {
				p.Exit(0)
			}
		}
	}()
}

// ended leaves what follows the end of stdin to the script.
func (p *Process) ended(err error) {
	if p.closed.Load() {
		p.Hang()
	}
	why := "end of stdin"
	if err != nil {
		why = err.Error()
	}
	p.in.record(Record{Kind: Closed, Conn: pipeConn, Text: why})
	close(p.eof)
	if p.in.srv.AtEOF == nil {
		p.Exit(0)
	}
	p.in.srv.AtEOF(p)
	p.Hang()
}

// Serve plays the server over a pair of streams in the test's own process, until in or ctx ends; it returns only
// when in has ended. Exits and other faults of a process are not to be had: Call.Process panics. Rec may be nil.
func Serve(ctx context.Context, srv *Server, rec *Recorder, in io.Reader, out io.Writer) error {
	inst := newInstance(srv, sinkOf(rec))
	defer inst.end()
	defer context.AfterFunc(ctx, func() { inst.stop(context.Cause(ctx)) })()
	return inst.readFrames(in, &frameWriter{w: out, form: srv.Write})
}

func sinkOf(rec *Recorder) sink {
	if rec == nil {
		return discard{}
	}
	return rec
}

// readFrames handles one line after the other until the stream ends; nil means that it ended as it should.
func (in *Instance) readFrames(r io.Reader, out *frameWriter) error {
	s := in.newSession(pipeConn, out.frame)
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSuffix(line, []byte("\n")); len(line) > 0 {
			in.handleLine(s, line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading frames: %w", err)
		}
	}
}

func (in *Instance) handleLine(s *session, line []byte) {
	m := parseMessage(line)
	c := s.request(in.ctx, m, nil)
	s.seen(m, nil)
	switch m.kind() {
	case messageUnreadable:
		s.write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":`+strconv.Itoa(codeParse)+`,"message":"unreadable message"}}`), nil)
	case messageRequest:
		in.perhapsSerial(c.run)
	case messageResponse: // never behind a handler, which may be what waits for it
		s.take(m, nil)
	default:
		in.perhapsSerial(func() { s.take(m, nil) })
	}
}

// perhapsSerial runs f beside the reading, except in a server that does one thing after the other. There cancels
// wait too, as they do in a single-threaded program.
func (in *Instance) perhapsSerial(f func()) {
	if in.srv.Serial {
		f()
		return
	}
	in.wg.Go(f)
}
