package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/mcp-proxy/mcp-proxy/bench/load"
)

// fleet starts the processes that the cells need, each when it is first asked
// for, and keeps them until stop. It serves one goroutine.
type fleet struct {
	dir      string // for files, removed by the caller
	binary   string // the product; empty until built
	upstream *process
	running  map[string]*process
	failed   map[string]error // what did not start is not started again
}

// newFleet starts the upstream that stands behind everything else.
func newFleet(ctx context.Context, dir, binary string) (*fleet, error) {
	upstream, err := startRole(ctx, roleHTTP)
	if err != nil {
		return nil, err
	}
	return &fleet{
		dir: dir, binary: binary, upstream: upstream,
		running: map[string]*process{}, failed: map[string]error{},
	}, nil
}

// stop ends all processes, those in front first, and tells which did not end
// well.
func (f *fleet) stop() error {
	var faults []error
	for name, p := range f.running {
		if err := p.stop(); err != nil {
			faults = append(faults, fmt.Errorf("stopping %s: %w", name, err))
		}
	}
	if err := f.upstream.stop(); err != nil {
		faults = append(faults, fmt.Errorf("stopping the upstream: %w", err))
	}
	return errors.Join(faults...)
}

// station is where the clients of a cell send their calls, and whose processor
// time counts.
type station struct {
	target *load.Target
	pid    int
}

// station starts what s needs in c.
func (f *fleet) station(ctx context.Context, s subject, c cell) (station, error) {
	same := func(tool string) string { return tool }
	switch s {
	case subjectHTTP, subjectStdio:
		p, err := f.product(ctx, s, c)
		if err != nil {
			return station{}, err
		}
		return station{c.target(p.addr, exposedName), p.cmd.Process.Pid}, nil
	case subjectDirect:
		return f.passing(f.upstream, c.target(f.upstream.addr, same)), nil
	}
	p, err := f.once(string(s), func() (*process, error) {
		return startRole(ctx, roleReverse, "http://"+f.upstream.addr)
	})
	if err != nil {
		return station{}, err
	}
	return f.passing(p, c.target(p.addr, same)), nil
}

// passing is the station of a process that shows the upstream's own paths.
func (f *fleet) passing(p *process, t *load.Target) station {
	t.Path = upstreamPath(t.Tools > 0)
	return station{t, p.cmd.Process.Pid}
}

func upstreamPath(list bool) string {
	if list {
		return pathList
	}
	return pathCalls
}

// product starts the product with the upstream that c needs, which is told to
// speak the era of the clients: what is compared is passing on, not
// translating.
func (f *fleet) product(ctx context.Context, s subject, c cell) (*process, error) {
	name := fmt.Sprintf("%s for %s calls", s, c.era)
	upstream := map[string]any{"url": "http://" + f.upstream.addr + upstreamPath(c.list())}
	switch {
	case c.list():
		name = fmt.Sprintf("%s for %s lists", s, c.era)
	case s == subjectStdio:
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		upstream = map[string]any{"command": program, "args": []string{roleStdio}}
	}
	return f.once(name, func() (*process, error) {
		dir := filepath.Join(f.dir, strconv.Itoa(len(f.running)+len(f.failed)))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		return startProduct(ctx, f.binary, dir, upstream, c.era)
	})
}

// once starts what has this name, or gives what came of it before.
func (f *fleet) once(name string, start func() (*process, error)) (*process, error) {
	if p := f.running[name]; p != nil {
		return p, nil
	}
	if err := f.failed[name]; err != nil {
		return nil, err
	}
	p, err := start()
	if err != nil {
		f.failed[name] = err
		return nil, err
	}
	f.running[name] = p
	return p, nil
}
