package app

import (
	"fmt"
	"reflect"
	"slices"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/httpd"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// apply puts a configuration in force. What can fail is made first; where it fails, nothing has changed. It is called by
// one goroutine at a time.
func (a *App) apply(next *config.Config) error {
	next = a.opt.withFunctions(next)
	now := a.config()
	if err := restartNeeded(now.Proxy, next.Proxy); err != nil {
		return err
	}
	var door *httpd.Door
	if a.makeDoor != nil {
		var err error
		if door, err = a.makeDoor(next); err != nil {
			return err
		}
	}
	if a.opt.SetLevel != nil {
		if err := a.opt.SetLevel(next.Proxy.Log.Level); err != nil {
			return err
		}
	}
	// From here on nothing fails.
	a.sessions.SetLimits(next.Proxy.Limits)
	a.proxy.BoundKept(next.Proxy.KeptResults)
	added, removed := a.ups.Replace(a.upstreams(next))
	a.cfg.Store(next)
	a.proxy.Apply(a.shape(next.Proxy))
	a.watchApprovals()
	for _, u := range added {
		u.Start()
	}
	a.ups.Retire(removed, next.Proxy.ShutdownGrace)
	if door != nil {
		a.swapDoor(door)
	}
	a.turnOut(now.Proxy.Auth, next.Proxy.Auth)
	a.log.Info("the configuration is in force", zap.String("source", next.Source), zap.Strings("started", ids(added)),
		zap.Strings("ended", ids(removed)), zap.Strings("later", atRestart(now.Proxy, next.Proxy)))
	return nil
}

func ids(all []*upstream.Upstream) []string {
	out := []string{}
	for _, u := range all {
		out = append(out, u.ID)
	}
	return out
}

// restartNeeded refuses what a running proxy cannot change.
func restartNeeded(now, next config.Proxy) error {
	var bad problemsError
	for _, s := range []struct {
		key       string
		now, next any
	}{
		{"listen", now.Listen, next.Listen},
		{"admin_listen", now.AdminListen, next.AdminListen},
		{"state_dir", now.StateDir, next.StateDir},
		{"sessions.keys", now.Sessions.Keys, next.Sessions.Keys},
	} {
		if !reflect.DeepEqual(s.now, s.next) {
			bad = append(bad, fmt.Sprintf("proxy.%s: a running proxy cannot change this; restart it", s.key))
		}
	}
	if len(bad) > 0 {
		return bad
	}
	return nil
}

// atRestart names the settings that have changed and that a running proxy goes on with as they were.
func atRestart(now, next config.Proxy) []string {
	now.Sessions.Keys, next.Sessions.Keys = nil, nil
	out := []string{}
	for _, s := range []struct {
		key       string
		now, next any
	}{
		{"sessions", now.Sessions, next.Sessions},
		{"stream_after", now.StreamAfter, next.StreamAfter},
		{"keep_alive", now.KeepAlive, next.KeepAlive},
		{"limits.max_depth", now.Limits.MaxDepth, next.Limits.MaxDepth},
		{"limits.max_buffered_bytes", now.Limits.MaxBufferedBytes, next.Limits.MaxBufferedBytes},
		{"limits.max_slots", now.Limits.MaxSlots, next.Limits.MaxSlots},
		{"limits.max_slots_per_principal", now.Limits.MaxSlotsPerPrincipal, next.Limits.MaxSlotsPerPrincipal},
		{"socket_mode", now.SocketMode, next.SocketMode},
		{"log.format", now.Log.Format, next.Log.Format},
		{"log.file", now.Log.File, next.Log.File},
	} {
		if !reflect.DeepEqual(s.now, s.next) {
			out = append(out, "proxy."+s.key)
		}
	}
	return out
}

// turnOut ends what is open of those whose credential or endpoint there is no more. A new credential under the same name
// is another one: the old one may have been changed because others know it.
func (a *App) turnOut(before, after config.Auth) {
	var gone []string
	if before.Mode != after.Mode {
		gone = append(gone, "") // nobody is anonymous any more, or everybody is
	}
	for _, t := range before.Tokens {
		if !slices.Contains(after.Tokens, t) || after.Mode != config.AuthTokens {
			gone = append(gone, t.Name)
		}
	}
	a.sessions.TurnOut(func(view, principal string) bool {
		return slices.Contains(gone, principal) || view != proxy.ViewAll && !a.proxy.HasView(view)
	})
}
