package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"
)

// cleanups are the named steps of giving back what was taken, done last first.
type cleanups struct {
	steps []cleanup
}

type cleanup struct {
	name string
	do   func(context.Context) error
}

func (c *cleanups) add(name string, do func(context.Context) error) {
	c.steps = append(c.steps, cleanup{name, do})
}

func (c *cleanups) run(ctx context.Context, log *zap.Logger) error {
	var errs []error
	for _, s := range slices.Backward(c.steps) {
		if err := s.do(ctx); err != nil {
			log.Warn("stopping a part failed", zap.String("part", s.name), zap.Error(err))
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
		}
	}
	c.steps = nil
	return errors.Join(errs...)
}

// Start begins to serve. It returns at once.
func (a *App) Start() {
	a.proxy.Start()
	a.cleanups.add("catalog", func(context.Context) error { a.proxy.Stop(); return nil })
	a.ups.Start()
	a.cleanups.add("upstreams", func(context.Context) error { a.ups.Stop(); return nil })
	a.cleanups.add("parked calls", func(context.Context) error { a.proxy.EndParked(); return nil })
	if a.opt.listens() {
		// Before the first answer, and at once: whoever gets an answer finds the record.
		a.log.Info("listening", zap.String("url", a.URL()))
		_ = a.log.Sync()
	}
	a.watchApprovals()
	a.cleanups.add("approvals", func(context.Context) error { a.pinned.stop(); return nil })
	a.sessions.Start()
	a.cleanups.add("sessions", func(context.Context) error { a.sessions.Stop(); return nil })
	for i, s := range a.servers {
		l := a.listeners[i]
		a.serves.Go(func() {
			if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				a.serving <- fmt.Errorf("serving on %s: %w", l.Addr(), err)
			}
		})
		a.cleanups.add("server "+l.Addr().String(), a.closeServer(s))
	}
	if a.opt.Mounted {
		a.cleanups.add("handler", a.guests.leave)
	}
	if !a.opt.Offline {
		a.cleanups.add("draining", a.drain)
	}
	if a.opt.Source != nil {
		stop := a.reload.start(a.opt.Source)
		a.cleanups.add("reload", func(context.Context) error { stop(); return nil })
	}
}

// closeGrace is what a server has to end its connections once all calls have ended.
const closeGrace = 2 * time.Second

func (a *App) closeServer(s *http.Server) func(context.Context) error {
	return func(context.Context) error {
		ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
		defer cancel()
		if s.Shutdown(ctx) != nil {
			a.endBase()
			return s.Close()
		}
		return nil
	}
}

// drain lets running calls end, within the grace, after the delay in which load balancers hear that we go. The listeners
// are open meanwhile, so that readiness can be asked for and new requests are told to come again.
func (a *App) drain(context.Context) error {
	cfg := a.config().Proxy
	a.log.Info("stopping", zap.Duration("delay", cfg.ShutdownDelay), zap.Duration("grace", cfg.ShutdownGrace))
	a.leaving.Store(true)
	<-time.After(cfg.ShutdownDelay)
	ctx, cancel := context.WithTimeout(context.Background(), cfg.ShutdownGrace)
	defer cancel()
	a.sessions.Drain(ctx)
	return nil
}

// Stop ends everything in the reverse order of its beginning.
func (a *App) Stop() error {
	err := a.cleanups.run(context.Background(), a.log)
	if a.endBase != nil {
		a.endBase()
	}
	a.serves.Wait()
	if err == nil && !a.opt.Offline {
		a.log.Info("stopped")
	}
	return err
}

// Kill ends the processes of all upstreams at once, for an end that waits for nothing. It may be called while Stop runs.
func (a *App) Kill() { a.ups.Kill() }

// Run serves until ctx ends or something fails that nothing can go on without.
func (a *App) Run(ctx context.Context) error {
	a.Start()
	ctx, cancel := context.WithCancel(ctx)
	checked := make(chan error, 1)
	a.serves.Go(func() { checked <- a.Check(ctx) })
	err := a.await(ctx, checked)
	cancel()
	return errors.Join(err, a.Stop())
}

// await waits for what ends the proxy: a start that is not as it must be, a listener that fails, at whatever time, or ctx.
func (a *App) await(ctx context.Context, checked <-chan error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-a.serving:
			return err
		case err := <-checked:
			if err != nil {
				return err
			}
			checked = nil
		}
	}
}
