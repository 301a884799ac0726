package app

// Name is one line of the table of final names.
type Name struct {
	Exposed, Upstream, Wire, Kind, Why string
	Effect                             string // of a tool: read_only or side_effect
	Profile                            string // that has this name; empty for the names of everything
}

// Names reports the final names of what the upstreams offer.
func (a *App) Names() []Name {
	var out []Name
	for _, n := range a.proxy.Names() {
		out = append(out, Name{n.Exposed, n.Upstream, n.Wire, n.Kind, n.Why, string(n.Effect), n.Profile})
	}
	return out
}

// Remarks tell what the configuration says of servers that fits nothing of what they offer.
func (a *App) Remarks() (out []string) {
	for _, u := range a.ups.All() {
		for _, text := range a.proxy.Remarks(u.ID) {
			out = append(out, u.ID+": "+text)
		}
	}
	return out
}

// Planned tells how the names of an upstream will look that has not been asked for them.
type Planned struct{ Upstream, Example, Transport string }

// Planned reports how the names will look.
func (a *App) Planned() []Planned {
	var out []Planned
	for _, u := range a.ups.All() {
		out = append(out, Planned{u.ID, a.proxy.ExampleName(u.Config()), transportOf(u.Config())})
	}
	return out
}
