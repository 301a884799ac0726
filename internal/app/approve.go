package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/pins"
	"github.com/mcp-proxy/mcp-proxy/internal/state"
)

// Approval is a look at the tools of pinned servers that wait to be approved, and the approving of some.
type Approval struct {
	Config  *config.Config
	Version string
	// Server is the server in question; empty for a look at all of them.
	Server string
	// Tools are those to approve, each as its wire name or as name@hash, where the hash is what somebody has seen; none
	// stands for all that wait.
	Tools []string
	// List only looks.
	List bool
	// Connect starts or reaches the servers first, and looks at what they offer now.
	Connect bool
	// Started is told how to end at once what has been started, and gives what is called when it has ended; nil for nobody.
	Started func(kill func()) (ended func())
	Out     io.Writer
}

// Run looks and approves. A proxy may run meanwhile; it takes over what is approved.
func (o *Approval) Run(ctx context.Context) error {
	servers, err := o.servers()
	if err != nil {
		return err
	}
	if o.Connect {
		if err := o.connect(ctx, servers); err != nil {
			return err
		}
	}
	store := pins.New(state.ApprovalsIn(o.Config.Proxy.StateDir), false)
	for _, s := range servers {
		err = errors.Join(err, o.one(store, s.ID))
	}
	return err
}

// servers are those in question.
func (o *Approval) servers() ([]*config.Server, error) {
	if o.Config.Proxy.StateDir == "" {
		return nil, errors.New("there is no proxy.state_dir, where what is approved is kept")
	}
	var pinned []*config.Server
	for _, s := range o.Config.Servers {
		switch {
		case s.ID == o.Server && !s.Pinned():
			return nil, fmt.Errorf("the server %q is not pinned: all its tools are offered (pin)", s.ID)
		case s.Pinned() && (o.Server == "" || o.Server == s.ID):
			pinned = append(pinned, s)
		}
	}
	switch {
	case len(pinned) > 0:
		return pinned, nil
	case o.Server == "":
		return nil, errors.New("no server is pinned (pin)")
	}
	return nil, fmt.Errorf("there is no server %q", o.Server)
}

// connect lets the record see what the servers offer now.
func (o *Approval) connect(ctx context.Context, servers []*config.Server) error {
	only := *o.Config
	only.Servers = servers
	only.Proxy.Profiles = nil
	a, err := New(Options{Config: &only, Log: zap.NewNop(), Version: o.Version, Offline: true, Review: true})
	if err != nil {
		return err
	}
	if o.Started != nil {
		defer o.Started(a.Kill)()
	}
	a.Start()
	a.WaitListed(ctx)
	failures := a.Failures()
	return errors.Join(failures, a.Stop(), ctx.Err())
}

// one shows what waits of a server, and approves what is wanted of it.
func (o *Approval) one(store *pins.Store, server string) error {
	waiting, err := store.Waiting(server)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", server, err, state.ApprovalsIn(o.Config.Proxy.StateDir).Path(server))
	}
	picked, err := o.pick(waiting)
	if err != nil {
		return fmt.Errorf("%s: %w", server, err)
	}
	fmt.Fprintf(o.Out, "%s: %d approved, %d waiting\n", server, store.Approved(server), len(waiting))
	for _, w := range picked {
		if err := w.Print(o.Out); err != nil {
			return err
		}
	}
	if o.List || o.Server == "" || len(picked) == 0 {
		return nil
	}
	if err := store.Approve(server, picked); err != nil {
		return fmt.Errorf("%s: %w", server, err)
	}
	fmt.Fprintf(o.Out, "%s: %d tools are approved now; a proxy that runs offers them at once\n", server, len(picked))
	return nil
}

// pick gives the tools in question of those that wait.
func (o *Approval) pick(waiting []pins.Waiting) ([]pins.Waiting, error) {
	if len(o.Tools) == 0 {
		return waiting, nil
	}
	var out []pins.Waiting
	for _, want := range o.Tools {
		i := slices.IndexFunc(waiting, func(w pins.Waiting) bool { return matches(w, want) })
		if i < 0 {
			return nil, fmt.Errorf("nothing waits as %q; --list shows what does", want)
		}
		out = append(out, waiting[i])
	}
	return out, nil
}

func matches(w pins.Waiting, want string) bool {
	rest, ok := strings.CutPrefix(want, w.Tool)
	mark, marked := strings.CutPrefix(rest, "@")
	return ok && (rest == "" || marked && len(mark) >= minMark && strings.HasPrefix(w.Hash, mark))
}

// minMark is how much of a hash must be given.
const minMark = 8
