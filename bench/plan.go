package main

import (
	"fmt"
	"regexp"
	"time"

	"github.com/mcp-proxy/mcp-proxy/bench/cheapmcp"
	"github.com/mcp-proxy/mcp-proxy/bench/load"
)

// subject is one way for a call to travel; they are measured side by side.
type subject string

// The subjects. Control subjects show how exact the figures are: a second
// ReverseProxy should come out like the first.
const (
	subjectReverse subject = "ReverseProxy"
	subjectHTTP    subject = "mcp-proxy"
	subjectStdio   subject = "mcp-proxy, stdio"
	subjectAgain   subject = "ReverseProxy again"
	subjectDirect  subject = "direct"
)

// cell is one thing that is measured: what is asked, in which era, by how many
// clients at once.
type cell struct {
	era     load.Era
	method  string // tools/call or tools/list
	text    int    // bytes of the text that a call brings
	clients int
}

func (c cell) list() bool { return c.method == "tools/list" }

func (c cell) what() string {
	switch {
	case c.list():
		return fmt.Sprintf("list of %d tools", listedTools)
	case c.text%1024 == 0:
		return fmt.Sprintf("call, %d KiB", c.text/1024)
	}
	return fmt.Sprintf("call, %d B", c.text)
}

func (c cell) String() string {
	noun := "clients"
	if c.clients == 1 {
		noun = "client"
	}
	return fmt.Sprintf("%s %s, %d %s", c.era, c.what(), c.clients, noun)
}

// target is what the clients of this cell ask at addr.
func (c cell) target(addr string, name func(tool string) string) *load.Target {
	t := &load.Target{Addr: addr, Path: pathCalls, Era: c.era, Method: c.method, Text: c.text}
	if c.list() {
		t.Tools = listedTools
	} else {
		t.Tool = name(cheapmcp.TextTool(c.text))
	}
	return t
}

// plan says what is measured and for how long.
type plan struct {
	cells   []cell
	control bool // compare with control subjects and not with the product
	rounds  int
	warm    time.Duration // before each round, not counted
	round   time.Duration
}

// manyClients is the number of clients for which floors are set.
const manyClients = 32

func newPlan(opts options) plan {
	p := plan{control: opts.control, rounds: opts.rounds, round: opts.round, warm: opts.round / 6}
	clients := []int{1, manyClients}
	if opts.quick {
		clients = []int{manyClients}
	}
	for _, era := range []load.Era{load.Legacy, load.Modern} {
		for _, n := range clients {
			for _, size := range cheapmcp.TextSizes() {
				p.add(opts.only, cell{era: era, method: "tools/call", text: size, clients: n})
			}
			p.add(opts.only, cell{era: era, method: "tools/list", clients: n})
		}
	}
	return p
}

func (p *plan) add(only *regexp.Regexp, c cell) {
	if only == nil || only.MatchString(c.String()) {
		p.cells = append(p.cells, c)
	}
}

// subjects are those measured in c, the one to compare with first.
func (p *plan) subjects(c cell) []subject {
	switch {
	case p.control:
		return []subject{subjectReverse, subjectAgain, subjectDirect}
	case c.list():
		return []subject{subjectReverse, subjectHTTP}
	}
	return []subject{subjectReverse, subjectHTTP, subjectStdio}
}

// limit bounds the whole run: three times what it should take, and what
// starting may take.
func (p *plan) limit() time.Duration {
	total := 2 * time.Minute
	for _, c := range p.cells {
		total += 3 * time.Duration(p.rounds*len(p.subjects(c))) * (p.warm + p.round)
	}
	return total
}
