package wire

import (
	"strings"
	"unicode"
)

// names is a set of member names that mean something to a proxy at one place of a message. It is read-only once made.
type names struct {
	byLen  [][]control
	folded map[string]string // folded name → name
}

type control struct {
	name string
	bit  uint64
}

func newNames(list ...string) *names {
	n := &names{folded: make(map[string]string, len(list))}
	for i, name := range list {
		for len(n.byLen) <= len(name) {
			n.byLen = append(n.byLen, nil)
		}
		n.byLen[len(name)] = append(n.byLen[len(name)], control{name, 1 << i})
		n.folded[fold(name)] = name
	}
	return n
}

// The names that are read at each place, by the proxy or by those it passes the message to.
var (
	envelopeNames = newNames("jsonrpc", "id", "method", "params", "result", "error")
	paramsNames   = newNames("name", "arguments", "_meta", "uri", "cursor", "requestId", "progressToken", "ref",
		"argument", "level", "task", "taskId", "inputResponses", "requestState", "notifications", "protocolVersion",
		"capabilities", "clientInfo", "message", "mode", "url", "elicitationId", "requestedSchema")
	resultNames = newNames("_meta", "resultType", "nextCursor", "content", "structuredContent", "isError", "contents",
		"messages", "tools", "prompts", "resources", "resourceTemplates", "roots", "completion", "inputRequests",
		"requestState", "task", "tasks", "taskId", "status", "ttlMs", "cacheScope", "protocolVersion",
		"supportedVersions", "capabilities", "serverInfo", "instructions", "action")
	errorNames = newNames("code", "message", "data")
	metaNames  = newNames("progressToken", MetaProtocolVersion, MetaClientCapabilities, MetaClientInfo, MetaLogLevel,
		MetaServerInfo, MetaSubscriptionID, MetaRelatedTask)
)

// bit identifies name within the set; 0 when it is not part of it.
func (n *names) bit(name []byte) uint64 {
	if len(name) < len(n.byLen) {
		for i := range n.byLen[len(name)] {
			if c := &n.byLen[len(name)][i]; c.name == string(name) {
				return c.bit
			}
		}
	}
	return 0
}

// meant is the name of the set that an ASCII key outside of it equals in all but case; empty when there is none.
func (n *names) meant(key []byte) string {
	if len(key) < len(n.byLen) {
		for _, c := range n.byLen[len(key)] {
			if equalFoldASCII(key, c.name) {
				return c.name
			}
		}
	}
	return ""
}

// pairwiseMost is up to how many members comparing each with each is cheaper than a map.
const pairwiseMost = 24

// checkStrict refuses members whose names are equal or differ only in case, and members that differ only in case from
// one of n. A reader that ignores case, as several JSON libraries do, would see other values in them than we do.
func (n *names) checkStrict(raw []byte, o *Object, place string) *ParseError {
	if len(o.Members) > pairwiseMost {
		return n.checkFolded(raw, o, place)
	}
	var seen uint64
	for i := range o.Members {
		m := &o.Members[i]
		key := m.bare(raw)
		bit := n.bit(key)
		switch {
		case m.Name != "" || bit == 0 && !isASCII(key):
			return n.checkFolded(raw, o, place)
		case seen&bit != 0:
			return duplicate(raw, m, place)
		case bit == 0:
			if err := n.checkUnknown(raw, o, i, place); err != nil {
				return err
			}
		}
		seen |= bit
	}
	return nil
}

// checkUnknown is checkStrict for the one member at index, which is not of n, and those before it.
func (n *names) checkUnknown(raw []byte, o *Object, index int, place string) *ParseError {
	m := &o.Members[index]
	key := m.bare(raw)
	if want := n.meant(key); want != "" {
		return miscased(raw, m, want, place)
	}
	for k := range index {
		if equalFoldASCII(key, o.Members[k].bare(raw)) {
			return duplicate(raw, m, place)
		}
	}
	return nil
}

// checkFolded is checkStrict for many members, or names with escapes or letters beyond ASCII.
func (n *names) checkFolded(raw []byte, o *Object, place string) *ParseError {
	seen := make(map[string]struct{}, len(o.Members))
	for i := range o.Members {
		m := &o.Members[i]
		name := m.name(raw)
		key := fold(name)
		if want := n.folded[key]; want != "" && want != name {
			return miscased(raw, m, want, place)
		}
		if _, twice := seen[key]; twice {
			return duplicate(raw, m, place)
		}
		seen[key] = struct{}{}
	}
	return nil
}

// checkExact refuses only members of n that occur twice.
func (n *names) checkExact(raw []byte, o *Object, place string) *ParseError {
	var seen uint64
	for i := range o.Members {
		m := &o.Members[i]
		bit := n.bit(m.bare(raw))
		if m.Name != "" {
			bit = n.bit([]byte(m.Name))
		}
		if seen&bit != 0 {
			return duplicate(raw, m, place)
		}
		seen |= bit
	}
	return nil
}

func duplicate(raw []byte, m *Member, place string) *ParseError {
	return newParseError(ReasonDuplicateMember, m.Key.Start,
		place+": the member "+quoteShort(m.name(raw))+" occurs twice, or once more in other case; send it once")
}

func miscased(raw []byte, m *Member, want, place string) *ParseError {
	return newParseError(ReasonMiscasedMember, m.Key.Start,
		place+"."+want+": the member is spelt "+quoteShort(m.name(raw))+"; names are case-sensitive, write "+quoteShort(want))
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// equalFoldASCII compares ASCII texts without regard to case.
func equalFoldASCII[T string | []byte](a []byte, b T) bool {
	if len(a) != len(b) {
		return false
	}
	for i, x := range a {
		if y := b[i]; x != y && (x|0x20 != y|0x20 || x|0x20 < 'a' || x|0x20 > 'z') {
			return false
		}
	}
	return true
}

// fold maps texts to the same result exactly when strings.EqualFold holds for them: each letter becomes the smallest
// of those that simple folding treats as equal (so "ſ" and "S", or the Kelvin sign and "K", are one).
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}
