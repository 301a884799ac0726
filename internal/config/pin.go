package config

import "strings"

// Pin says whether the tools of a server are offered only while they are what somebody has approved.
type Pin string

// The ways to pin. A server that says nothing has an empty Pin until the configuration has been read as a whole.
const (
	PinOff    Pin = "false"
	PinTrust  Pin = "true"   // what is there on first use counts as approved
	PinStrict Pin = "strict" // nothing does
)

const pinWords = `true, false or "strict"`

// pinField reads true, false or "strict".
func pinField[T any](doc, def string, at func(*T) *Pin) field[T] {
	return field[T]{
		key: "pin", typ: "boolean or `strict`", doc: doc, example: `true`, def: def,
		read: func(r *reader, here place, n *node, dst *T) {
			s := n.text
			if n.kind == kindString {
				var ok bool
				if s, ok = r.text(here, n); !ok {
					return
				}
			}
			switch p := Pin(strings.ToLower(s)); {
			case n.kind != kindString && n.kind != kindBool, p != PinOff && p != PinTrust && p != PinStrict:
				r.mistake(here, n.line, "must be "+pinWords)
			default:
				*at(dst) = p
			}
		},
		value: func(src *T) any {
			switch p := *at(src); p {
			case PinStrict:
				return string(p)
			default:
				return p == PinTrust
			}
		},
	}
}

// checkPins gives servers that say nothing what holds for all, and refuses what could not keep a promise.
func (r *reader) checkPins(root *node, cfg *Config) {
	const homeless = "needs proxy.state_dir, where what is approved is kept"
	some := cfg.Proxy.Pin == PinTrust || cfg.Proxy.Pin == PinStrict
	if some && cfg.Proxy.StateDir == "" {
		section := &node{}
		if m := root.get("proxy"); m != nil {
			section = m.value
		}
		at, line := section.placeOf("pin")
		r.refuse(at, line, homeless)
	}
	for _, s := range cfg.Servers {
		if s.Agent != nil && s.Agent.Kind != AgentMCP {
			s.Pin = PinOff // its tool is what this file says
			continue
		}
		if s.Pin != "" && s.Pin != PinOff && cfg.Proxy.StateDir == "" {
			r.serverMistake(root, s, "pin", homeless)
		}
		if s.Pin == "" {
			s.Pin = cfg.Proxy.Pin
		}
		if s.Pin == "" {
			s.Pin = PinOff
		}
	}
}

// Pinned says whether tools are compared with what is approved.
func (s *Server) Pinned() bool { return s.Pin == PinTrust || s.Pin == PinStrict }
