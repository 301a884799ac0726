package app

import (
	"fmt"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/httpd"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// Status gathers what the operators' pages show.
func (a *App) Status() httpd.Status {
	s := httpd.Status{Status: httpd.StatusStarting, Version: a.opt.Version, Uptime: time.Since(a.began).Round(time.Second).String(),
		Sessions: a.sessions.Count(), Ready: a.ready(), Reload: a.reload.status()}
	if s.Ready {
		s.Status = httpd.StatusReady
	}
	counts, unapproved := a.proxy.Counts(), a.proxy.Unapproved()
	for _, u := range a.ups.Shown() {
		n := counts[u.ID]
		one := a.upstreamStatus(u, n[proxy.Tool], n[proxy.Prompt], n[proxy.Resource]+n[proxy.Template])
		if one.Unapproved = unapproved[u.ID]; one.Unapproved > 0 {
			one.Hints = append(one.Hints, fmt.Sprintf("%d of its tools are withheld until somebody approves them: mcp-proxy approve --list %s", one.Unapproved, u.ID))
		}
		s.Upstreams = append(s.Upstreams, one)
	}
	for _, c := range a.config().Servers {
		if c.Disabled {
			s.Upstreams = append(s.Upstreams, httpd.Upstream{ID: c.ID, State: "disabled", Transport: transportOf(c), Agent: agentOf(c)})
		}
	}
	for _, n := range a.proxy.Names() {
		s.Names = append(s.Names, httpd.Name{Exposed: n.Exposed, Upstream: n.Upstream, Wire: n.Wire, Kind: n.Kind, Length: len(n.Exposed), Why: n.Why,
			Effect: string(n.Effect), Profile: n.Profile})
	}
	return s
}

// ready says whether every upstream's first attempt has ended, lists included, or the grace is over. Once it was so, it
// stays: what a reload adds does not make us unready.
func (a *App) ready() bool {
	if !a.wasReady.Load() && a.begun() {
		a.wasReady.Store(true)
	}
	return a.wasReady.Load()
}

func (a *App) begun() bool {
	if time.Since(a.began) >= a.config().Proxy.StartupGrace {
		return true
	}
	for _, u := range a.ups.All() {
		select {
		case <-u.First():
		default:
			return false
		}
		if u.Status().Up && !a.proxy.Listed(u.ID) {
			return false
		}
	}
	return true
}

func (a *App) upstreamStatus(u *upstream.Upstream, tools, prompts, resources int) httpd.Upstream {
	st := u.Status()
	out := httpd.Upstream{ID: u.ID, State: string(st.State), Transport: transportOf(u.Config()), Agent: agentOf(u.Config()), Tools: tools, Prompts: prompts,
		Resources: resources, Restarts: st.Failures, Slots: map[string]int{}, Stderr: st.Stderr}
	if st.Peer != nil {
		out.Era, out.ProtocolVersion = st.Peer.Era.String(), st.Peer.Version
		out.ServerName, out.ServerVersion = st.Peer.Name, st.Peer.Software
	}
	if f := st.Failure; f != nil {
		out.LastError = &httpd.Failure{Stage: f.Stage, Message: f.Message, At: f.At}
	}
	if !st.NextRetry.IsZero() {
		out.NextRetry = &st.NextRetry
	}
	if st.Unclear > 0 {
		out.Hints = append(out.Hints, fmt.Sprintf("%d of its questions were refused, because several calls share its connection and "+
			"nobody could tell which one asked; %s", st.Unclear, upstream.HintSharing))
	}
	out.Hints = append(out.Hints, a.proxy.Remarks(u.ID)...)
	for state, n := range st.Slots {
		out.Slots[string(state)] = n
	}
	return out
}
