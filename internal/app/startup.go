package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// strictly waits, where the start is strict, until every upstream has been reached, and gives all that failed.
func (a *App) strictly(ctx context.Context) error {
	if a.config().Proxy.Startup != config.StartupStrict {
		return nil
	}
	if !a.firstAttempts(ctx) {
		return nil
	}
	return a.Failures()
}

// unambiguous waits, where equal names are an error, for the first lists within startup_grace, and gives the names of tools
// that are taken twice by then. What clashes later is withheld instead, and so is a prompt: a proxy that serves does not
// end for it.
func (a *App) unambiguous(ctx context.Context) error {
	if !failsOnConflict(a.config().Proxy) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.config().Proxy.StartupGrace)
	defer cancel()
	a.WaitListed(ctx)
	return a.conflicts("tool")
}

// failsOnConflict says whether equal names are an error, everywhere or in a profile.
func failsOnConflict(p config.Proxy) bool {
	for _, one := range p.Profiles {
		if one.Naming != nil && one.Naming.OnConflict == config.ConflictFail {
			return true
		}
	}
	return p.Naming.OnConflict == config.ConflictFail
}

// firstAttempts waits for the end of the first attempt to connect with every upstream; false where ctx ends first.
func (a *App) firstAttempts(ctx context.Context) bool {
	for _, u := range a.ups.All() {
		select {
		case <-u.First():
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// WaitListed waits until every upstream has been listed or has failed.
func (a *App) WaitListed(ctx context.Context) {
	if !a.firstAttempts(ctx) {
		return
	}
	for _, u := range a.ups.All() {
		if u.Status().Up {
			a.proxy.WaitListed(ctx, u.ID)
		}
	}
}

// Failures tells what is wrong with the upstreams and their names at this moment.
func (a *App) Failures() error {
	var errs []error
	for _, u := range a.ups.All() {
		if err := failureOf(u); err != nil {
			errs = append(errs, err)
		} else if err := a.proxy.ListFailure(u.ID); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", u.ID, err))
		}
	}
	return errors.Join(append(errs, a.conflicts(""))...)
}

// conflicts gives the names of one kind, or of all, that are taken twice.
func (a *App) conflicts(kind string) error {
	var errs []error
	for _, n := range a.proxy.Conflicts() {
		if kind != "" && n.Kind != kind {
			continue
		}
		in := ""
		if n.Profile != "" {
			in = fmt.Sprintf(" in the profile %q", n.Profile)
		}
		errs = append(errs, fmt.Errorf("%s: the %s %q%s: %s", n.Upstream, n.Kind, n.Wire, in, n.Why))
	}
	return errors.Join(errs...)
}

func failureOf(u *upstream.Upstream) error {
	st := u.Status()
	switch {
	case st.Up:
		return nil
	case st.Failure != nil:
		return fmt.Errorf("%s: %s: %s", u.ID, st.Failure.Stage, st.Failure.Message)
	}
	return fmt.Errorf("%s: not connected yet", u.ID)
}
