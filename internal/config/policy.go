package config

import (
	"cmp"
	"slices"
	"strings"
)

func readEffects(r *reader, at place, n *node, p *Policy) {
	words, ok := r.texts(at, n, r.text)
	known := []string{string(EffectReadOnly), string(EffectSideEffect)}
	var out []Effect
	for i, w := range words {
		if !slices.Contains(known, w) {
			p := r.mistake(at.index(i), n.items[i].line, "%q is not known; known are %s", n.items[i].text, strings.Join(known, ", "))
			p.Suggestion, ok = suggest(w, known), false
		}
		out = append(out, Effect(w))
	}
	if ok {
		p.Effects = out
	}
}

func effectWords(effects []Effect) []string {
	out := make([]string, len(effects))
	for i, e := range effects {
		out[i] = string(e)
	}
	return out
}

func readProfileNaming(r *reader, at place, n *node, p *Profile) {
	p.Naming = &Naming{}
	readFields(r, at, n, namingFields, p.Naming)
}

func showProfileNaming(s *shower, canon, key string, p *Profile) {
	if p.Naming != nil {
		showGroup(s, canon, key, namingFields, p.Naming)
	}
}

// completeNaming gives the profiles with names of their own what they leave out.
func (p *Proxy) completeNaming() {
	for _, one := range p.Profiles {
		if n := one.Naming; n != nil {
			n.Mode, n.Template = cmp.Or(n.Mode, p.Naming.Mode), cmp.Or(n.Template, p.Naming.Template)
			n.MaxLength, n.OnConflict = cmp.Or(n.MaxLength, p.Naming.MaxLength), cmp.Or(n.OnConflict, p.Naming.OnConflict)
		}
	}
}

// readArguments reads what is said of single arguments of a tool.
func readArguments(r *reader, at place, n *node, t *ToolOverride) {
	if !r.isObject(at, n) {
		return
	}
	for _, m := range n.members {
		here := at.member(m)
		one := ArgumentOverride{Name: m.key}
		if !r.isObject(here, m.value) {
			continue
		}
		for _, v := range m.value.members {
			switch v.key {
			case "fixed":
				one.Fixed, _ = r.json(here.member(v), v.value)
			case "default":
				one.Default, _ = r.json(here.member(v), v.value)
			default:
				r.unknownKey(here.member(v), v, []string{"fixed", "default"}, nil)
			}
		}
		if (one.Fixed == nil) == (one.Default == nil) {
			r.mistake(here, m.line, "needs one of fixed and default")
			continue
		}
		t.Arguments = append(t.Arguments, one)
	}
}

func showArguments(s *shower, canon, key string, t *ToolOverride) {
	if len(t.Arguments) == 0 {
		return
	}
	s.line(key + ":")
	s.indent++
	for _, a := range t.Arguments {
		at := place{canon: canon}.member(member{key: a.Name})
		s.line(quoted(a.Name) + ":")
		s.indent++
		s.json(at.member(member{key: "fixed"}).canon, "fixed", a.Fixed)
		s.json(at.member(member{key: "default"}).canon, "default", a.Default)
		s.indent--
	}
	s.indent--
}
