package app

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/agents"
	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// makeAgent makes the upstream of an agent that is served in this process.
func (a *App) makeAgent(s *config.Server, opts upstream.Options) *upstream.Upstream {
	var u *upstream.Upstream // started only when there is one
	o := agents.Options{Func: a.opt.Functions[s.ID].Run, Client: a.web, Version: a.opt.Version,
		Mask: func(text string) string { return u.Mask(text) },
		Exec: func(ctx context.Context, args []string, stdin []byte, most int64) (string, error) {
			return u.Run(ctx, upstream.Run{Args: args, Stdin: stdin, Most: most})
		}}
	opts.Serve = func(ctx context.Context, rw io.ReadWriteCloser) error { return agents.Serve(ctx, s, o, rw) }
	u = upstream.New(s, opts)
	return u
}

// Function is an agent that is a function of this program.
type Function struct {
	Title, Description string
	Timeout            time.Duration // of one run; zero for the default
	Run                agents.Func
}

// withFunctions gives a configuration with the entries of the functions behind those of the file, which they come before
// where both have a name.
func (o *Options) withFunctions(c *config.Config) *config.Config {
	if len(o.Functions) == 0 {
		return c
	}
	out := *c
	out.Servers = slices.DeleteFunc(slices.Clone(c.Servers), func(s *config.Server) bool {
		_, ours := o.Functions[s.ID]
		return ours
	})
	for _, id := range slices.Sorted(maps.Keys(o.Functions)) {
		f := o.Functions[id]
		out.Servers = append(out.Servers, config.NewFunction(id, f.Title, f.Description, f.Timeout))
	}
	return &out
}

// transportOf names how an upstream is reached: an agent in this process by what runs it.
func transportOf(s *config.Server) string {
	if s.Agent != nil && s.Transport == config.TransportInProcess {
		return string(s.Agent.Kind)
	}
	return string(s.Transport)
}

func agentOf(s *config.Server) string {
	if s.Agent == nil {
		return ""
	}
	return string(s.Agent.Kind)
}
