package pins

import "time"

// Tool is one tool as its server lists it.
type Tool struct {
	Name string
	Raw  []byte // a JSON object
}

// Look is one look at what a server offers.
type Look struct {
	Server string
	Tools  []Tool
	// Strict trusts nothing on first use.
	Strict bool
	// Whole says that Tools is all that there is: what waits and is not among them is forgotten. Nothing is trusted on first
	// use before.
	Whole bool
	// Part says that Tools is what one caller is offered. What waits and is not among them goes on waiting, and with the first
	// such look the first use is over too.
	Part bool
}

// Kind is what has happened to a tool; a closed set that is also a metric label.
type Kind string

// The kinds of events.
const (
	Trusted  Kind = "trusted"  // approved because it was there on first use
	Added    Kind = "added"    // it is new, and waits
	Changed  Kind = "changed"  // it is not what was approved, and waits
	Restored Kind = "restored" // it is again what was approved
	Approved Kind = "approved" // somebody has approved it
)

// Kinds are all kinds of events.
var Kinds = []Kind{Trusted, Added, Changed, Restored, Approved}

// Event is one thing that has happened to a tool.
type Event struct {
	Kind    Kind
	Tool    string
	Hash    string
	Members []string // that have changed
}

// defined is a tool of a look with the hash of its definition.
type defined struct {
	name, hash string
	raw        []byte
}

// version is the definition as it is kept.
func (d *defined) version(now time.Time) *version {
	def, _ := Define(d.raw) // which has been possible before
	return newVersion(def, now)
}

// verdict is what a look has led to.
type verdict struct {
	waiting map[string]Waiting
	events  []Event
	changed bool // the record is another one
}

// judge compares what a server offers with what is on record, and notes in the record what is new.
func (r *record) judge(l *Look, tools []defined, now time.Time) verdict {
	v := verdict{waiting: map[string]Waiting{}}
	seen := make(map[string]bool, len(tools))
	for _, one := range tools {
		seen[one.name] = true
		// A server whose list never ends well would otherwise be on its first use for ever.
		r.judgeTool(&v, one, !r.Known && !l.Strict && (l.Whole || l.Part), now)
	}
	if l.Whole {
		v.changed = r.forget(seen) || v.changed
	}
	if l.Whole || l.Part {
		v.changed = v.changed || !r.Known
		r.Known = true
	}
	return v
}

func (r *record) judgeTool(v *verdict, one defined, first bool, now time.Time) {
	t := r.Tools[one.name]
	switch {
	case t.Approved != nil && t.Approved.Hash == one.hash:
		if t.Waiting == nil {
			return
		}
		t.Waiting = nil
		v.events = append(v.events, Event{Kind: Restored, Tool: one.name, Hash: one.hash})
	case t.Approved == nil && first:
		t.Approved, t.Waiting = one.version(now), nil
		v.events = append(v.events, Event{Kind: Trusted, Tool: one.name, Hash: one.hash})
	case t.Waiting != nil && t.Waiting.Hash == one.hash:
		v.waiting[one.name] = t.describe(one.name)
		return
	default:
		t.Waiting = one.version(now)
		w := t.describe(one.name)
		v.waiting[one.name] = w
		e := Event{Kind: Changed, Tool: one.name, Hash: w.Hash, Members: w.Members}
		if w.New {
			e.Kind = Added
		}
		v.events = append(v.events, e)
	}
	r.Tools[one.name], v.changed = t, true
}

// forget drops what waits and is offered no more.
func (r *record) forget(seen map[string]bool) (changed bool) {
	for name, t := range r.Tools {
		if t.Waiting == nil || seen[name] {
			continue
		}
		changed = true
		if t.Waiting = nil; t.Approved == nil {
			delete(r.Tools, name)
			continue
		}
		r.Tools[name] = t
	}
	return changed
}

// approve takes what waits for approved, where it is still what was shown.
func (r *record) approve(picks map[string]string, now time.Time) (gone []string) {
	for name, hash := range picks {
		t := r.Tools[name]
		if t.Waiting == nil || t.Waiting.Hash != hash {
			gone = append(gone, name)
			continue
		}
		t.Approved = t.Waiting
		t.Approved.At = now.UTC().Truncate(time.Second)
		t.Waiting = nil
		r.Tools[name] = t
	}
	return gone
}

// approvals tells what has been approved between two records.
func approvals(before, after *record) []Event {
	var out []Event
	for name, t := range after.Tools {
		old := before.Tools[name].Approved
		if t.Approved != nil && (old == nil || old.Hash != t.Approved.Hash) {
			out = append(out, Event{Kind: Approved, Tool: name, Hash: t.Approved.Hash})
		}
	}
	return out
}
