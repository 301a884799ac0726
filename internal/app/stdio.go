package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
)

// Part says which part of everything is offered over stdio: one profile, one server by its own names, or all.
type Part struct{ Profile, Server string }

func (p Part) view() string {
	switch {
	case p.Profile != "":
		return proxy.ProfileView(p.Profile)
	case p.Server != "":
		return proxy.ServerView(p.Server)
	}
	return proxy.ViewAll
}

// ServeStdio serves one conversation and ends with it: when r ends, or ctx. The App must have been made for it. Everything
// has been stopped when it returns.
func (a *App) ServeStdio(ctx context.Context, r io.Reader, w io.Writer, part Part) error {
	view := part.view()
	if !a.proxy.HasView(view) {
		return errors.Join(fmt.Errorf("there is no %s in the configuration", view), a.Stop())
	}
	a.Start()
	a.log.Info("serving over stdio")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The client is answered from the start. What is found out later and must not be, ends the conversation.
	checked := make(chan error, 1)
	go func() {
		err := a.Check(ctx)
		if err != nil {
			cancel()
		}
		checked <- err
	}()
	err := a.sessions.ServeStdio(ctx, r, w, view)
	cancel()
	return errors.Join(<-checked, err, a.Stop())
}
