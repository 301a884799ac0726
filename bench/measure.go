package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-proxy/mcp-proxy/bench/load"
)

// overtime is how long calls may take beyond the end of a round before the
// round has failed.
const overtime = 10 * time.Second

// sample is what one round of one subject gave.
type sample struct {
	calls int64
	wall  time.Duration
	cpu   time.Duration // of the subject's process; negative when unknown
}

func (s sample) rate() float64 { return float64(s.calls) / s.wall.Seconds() }

// cpuPerCall is in microseconds.
func (s sample) cpuPerCall() float64 {
	return float64(s.cpu) / float64(time.Microsecond) / float64(s.calls)
}

// outcome is what a subject gave in a cell: samples in the order of the
// rounds, or the reason why there are none.
type outcome struct {
	subject subject
	samples []sample
	err     error
}

// crowd is the clients of one subject in one cell.
type crowd struct {
	station
	clients []*load.Client
}

func gather(ctx context.Context, at station, n int) (*crowd, error) {
	ctx, cancel := context.WithTimeout(ctx, overtime)
	defer cancel()
	c := &crowd{station: at}
	for range n {
		client, err := load.Dial(ctx, at.target)
		if err != nil {
			return nil, errors.Join(err, c.leave())
		}
		c.clients = append(c.clients, client)
	}
	return c, nil
}

func (c *crowd) leave() error {
	limit := time.Now().Add(overtime)
	var faults []error
	for _, client := range c.clients {
		faults = append(faults, client.Close(limit))
	}
	return errors.Join(faults...)
}

// round lets all clients call, first for warm and then for length, and counts
// the latter.
func (c *crowd) round(ctx context.Context, warm, length time.Duration) (sample, error) {
	if _, err := c.drive(ctx, warm); err != nil {
		return sample{}, err
	}
	before, known := cpuTime(c.pid)
	start := time.Now()
	calls, err := c.drive(ctx, length)
	if err != nil {
		return sample{}, err
	}
	s := sample{calls: calls, wall: time.Since(start), cpu: -1}
	if after, err := cpuTime(c.pid); known == nil && err == nil {
		s.cpu = after - before
	}
	if s.calls == 0 {
		return sample{}, fmt.Errorf("no call was answered within %v", length)
	}
	return s, nil
}

// drive lets all clients call until length has passed and waits for their last
// answers.
func (c *crowd) drive(ctx context.Context, length time.Duration) (int64, error) {
	var stop atomic.Bool
	halt := func() { stop.Store(true) }
	limit := time.Now().Add(length + overtime)
	defer time.AfterFunc(length, halt).Stop()
	defer context.AfterFunc(ctx, halt)()
	var total atomic.Int64
	faults := make([]error, len(c.clients))
	var running sync.WaitGroup
	for i, client := range c.clients {
		running.Go(func() {
			calls, err := client.Run(&stop, limit)
			total.Add(calls)
			if err != nil {
				faults[i] = err
				halt() // one wrong answer ends the round for all
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	// Of many clients that fail, one tells enough.
	return total.Load(), cmp.Or(faults...)
}

// measure runs one cell: all subjects in turn, round after round, so that
// whatever else the machine does meets all of them. Each round begins with
// another subject.
func measure(ctx context.Context, f *fleet, p *plan, c cell) []outcome {
	subjects := p.subjects(c)
	outcomes := make([]outcome, len(subjects))
	crowds := make([]*crowd, len(subjects))
	for i, s := range subjects {
		outcomes[i].subject = s
		at, err := f.station(ctx, s, c)
		if err == nil {
			crowds[i], err = gather(ctx, at, c.clients)
		}
		outcomes[i].err = err
	}
	for r := range p.rounds {
		for k := range subjects {
			i := (r + k) % len(subjects)
			o := &outcomes[i]
			if o.err != nil {
				continue
			}
			var s sample
			s, o.err = crowds[i].round(ctx, p.warm, p.round)
			o.samples = append(o.samples, s)
		}
	}
	for i := range outcomes {
		if crowds[i] == nil {
			continue
		}
		if err := crowds[i].leave(); outcomes[i].err == nil {
			outcomes[i].err = err
		}
	}
	return outcomes
}
