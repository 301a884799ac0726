package testmcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// Names of the breaches of the protocol that a Recorder finds, for Recorder.Allow.
const (
	BadUTF8        = "bad-utf8"         // the frame is not UTF-8
	LineBreak      = "line-break"       // a raw CR or LF inside a frame
	NotJSON        = "not-json"         // the frame is not one JSON object
	NotJSONRPC     = "not-jsonrpc"      // jsonrpc is not "2.0", or it is neither request, notification nor answer
	BadID          = "bad-id"           // an id that is neither string nor integer
	IDInFlight     = "id-in-flight"     // an id is used while a request with it is unanswered
	IDReused       = "id-reused"        // an id is used twice in one conversation
	TokenInFlight  = "token-in-flight"  // a progress token is shared by two unanswered requests
	ModernToLegacy = "modern-to-legacy" // _meta keys of the modern era after initialize
	TooEarly       = "too-early"        // a request between initialize and notifications/initialized
	StrayAnswer    = "stray-answer"     // an answer to what was never asked
	StrayCancel    = "stray-cancel"     // a cancel for an id never used, or for initialize
	VersionHeader  = "version-header"   // MCP-Protocol-Version is not the one that holds
	MethodHeader   = "method-header"    // Mcp-Method or Mcp-Name is not what the body says
	AcceptHeader   = "accept-header"    // Accept lacks a type that it must have
	ContentHeader  = "content-header"   // a POST is not application/json
	SessionHeader  = "session-header"   // a session id where none was issued
	RemovedMethod  = "removed-method"   // a modern request for a method of the legacy era
	CancelOverHTTP = "cancel-over-http" // notifications/cancelled in a modern POST
	MissingVersion = "missing-version"  // a modern message without version or capabilities in _meta
)

// checker follows what arrives and notes what no client may do. It is guarded by its recorder.
type checker struct {
	convs map[string]*convState
	found []string
}

type convState struct {
	legacy, ready bool
	version       string
	used          map[string]string // id → method
	open          map[string]string // unanswered id → progress token
	asked         map[string]bool   // ids that the server asked with
}

func newChecker() *checker { return &checker{convs: map[string]*convState{}} }

func (k *checker) conv(r Record) *convState {
	key := fmt.Sprint(r.PID, " ", r.Conn)
	if k.convs[key] == nil {
		k.convs[key] = &convState{used: map[string]string{}, open: map[string]string{}, asked: map[string]bool{}}
	}
	return k.convs[key]
}

func (k *checker) fail(name string, r Record, why string) {
	k.found = append(k.found, name+": "+why+" in "+clip(string(r.Frame), 300)+r.Text)
}

func (k *checker) see(r Record) {
	switch r.Kind {
	case In:
		k.in(r, k.conv(r))
	case Out:
		k.out(r, k.conv(r))
	case Request:
		k.request(r)
	}
}

func (k *checker) out(r Record, c *convState) {
	if r.answer {
		if c.used[string(r.ID)] == "initialize" && r.Frame.Has("result") {
			c.legacy, c.version = true, r.Frame.At("result", "protocolVersion").Str()
		}
		delete(c.open, string(r.ID))
	} else if r.ID != nil {
		c.asked[string(r.ID)] = true
	}
}

func (k *checker) in(r Record, c *convState) {
	if !utf8.Valid(r.Frame) {
		k.fail(BadUTF8, r, "invalid UTF-8")
	}
	if bytes.ContainsAny(r.Frame, "\r\n") {
		k.fail(LineBreak, r, "a line break")
	}
	m := parseMessage(r.Frame)
	if !json.Valid(r.Frame) || m.Raw.Members() == nil {
		k.fail(NotJSON, r, "not a JSON object")
		return
	}
	if m.Raw.At("jsonrpc").Str() != "2.0" || m.kind() == messageUnreadable {
		k.fail(NotJSONRPC, r, "not JSON-RPC 2.0")
		return
	}
	switch m.kind() {
	case messageRequest:
		k.id(r, m, c)
	case messageResponse:
		if !c.asked[string(m.ID)] {
			k.fail(StrayAnswer, r, "an answer to nothing")
		}
	case messageNotice:
		k.notice(r, m, c)
	}
	k.era(r, m, c)
	if r.Header != nil {
		k.headers(r, m, c)
	}
}

func (k *checker) id(r Record, m Message, c *convState) {
	id := string(m.ID)
	if !isID(m.ID) {
		k.fail(BadID, r, "an id that is no string or integer")
	}
	if r.Conn == modernConn {
		return // each POST is a conversation of its own
	}
	token := string(m.meta("progressToken"))
	if _, busy := c.open[id]; busy {
		k.fail(IDInFlight, r, "id "+id+" is unanswered")
	} else if c.used[id] != "" {
		k.fail(IDReused, r, "id "+id+" was used before")
	}
	for other, t := range c.open {
		if token != "" && t == token && other != id {
			k.fail(TokenInFlight, r, "progress token "+token+" belongs to id "+other)
		}
	}
	c.used[id], c.open[id] = m.Method, token
}

// isID says whether this is a legal request id: a string or an integer.
func isID(id Raw) bool {
	if len(id) == 0 {
		return false
	}
	return id[0] == '"' || !bytes.ContainsAny(id, ".eEntf[{")
}

func (k *checker) notice(r Record, m Message, c *convState) {
	switch m.Method {
	case "notifications/initialized":
		c.ready = true
	case "notifications/cancelled":
		if method, known := c.used[string(m.Params.At("requestId"))]; !known || method == "initialize" {
			k.fail(StrayCancel, r, "cancel of "+orElse(method, "an unknown id"))
		}
		if r.Header != nil && r.Conn == modernConn {
			k.fail(CancelOverHTTP, r, "a cancel notice over HTTP")
		}
	}
}

func (k *checker) era(r Record, m Message, c *convState) {
	modern := m.Params.Has("_meta", metaVersion)
	if c.legacy {
		for key := range m.Params.At("_meta").Members() {
			if slices.Contains([]string{metaVersion, metaCaps, metaInfo, metaLogLevel}, key) {
				k.fail(ModernToLegacy, r, "_meta key "+key)
			}
		}
		if !c.ready && m.kind() == messageRequest && m.Method != "initialize" && m.Method != "ping" {
			k.fail(TooEarly, r, "a request before notifications/initialized")
		}
		return
	}
	if m.kind() != messageRequest || m.Method == "initialize" {
		return
	}
	if !modern || !m.Params.Has("_meta", metaCaps) {
		k.fail(MissingVersion, r, "no version or capabilities in _meta")
	}
	if slices.Contains(modernRemoved, m.Method) {
		k.fail(RemovedMethod, r, m.Method)
	}
}

func (k *checker) headers(r Record, m Message, c *convState) {
	version := r.Header.Get("Mcp-Protocol-Version")
	if c.legacy && m.Method != "initialize" {
		if version != c.version && (version != "" || c.version >= Rev2506) {
			k.fail(VersionHeader, r, fmt.Sprintf("version header %q where %q was negotiated", version, c.version))
		}
		return
	}
	if !m.Params.Has("_meta", metaVersion) {
		return
	}
	if inBody := m.meta(metaVersion).Str(); version != inBody {
		k.fail(VersionHeader, r, fmt.Sprintf("version header %q, body %q", version, inBody))
	}
	if got := r.Header.Get("Mcp-Method"); got != m.Method {
		k.fail(MethodHeader, r, fmt.Sprintf("Mcp-Method %q", got))
	}
	if want, named := m.resourceName(); named {
		if got, ok := decodeHeader(r.Header.Get("Mcp-Name")); !ok || got != want {
			k.fail(MethodHeader, r, fmt.Sprintf("Mcp-Name %q for %q", r.Header.Get("Mcp-Name"), want))
		}
	}
	if r.Header.Get("Mcp-Session-Id") != "" {
		k.fail(SessionHeader, r, "a session id in a modern request")
	}
}

// request checks what holds for an HTTP request whatever its body.
func (k *checker) request(r Record) {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	verb, _, _ := strings.Cut(r.Text, " ")
	if (verb == http.MethodPost || verb == http.MethodGet) && !strings.Contains(accept, "text/event-stream") ||
		verb == http.MethodPost && r.Conn != sseConn && !strings.Contains(accept, "application/json") {
		if r.Conn != sseConn || verb == http.MethodGet {
			k.fail(AcceptHeader, r, fmt.Sprintf("Accept %q: ", accept))
		}
	}
	if ct, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); verb == http.MethodPost && !strings.EqualFold(strings.TrimSpace(ct), "application/json") {
		k.fail(ContentHeader, r, fmt.Sprintf("Content-Type %q: ", ct))
	}
}

// EncodeHeader writes a value the way that Mcp-Name and Mcp-Param headers want it.
func EncodeHeader(s string) string {
	plain := strings.Trim(s, " \t") == s && !strings.HasPrefix(s, "=?base64?")
	for _, b := range []byte(s) {
		plain = plain && (b == '\t' || b >= ' ' && b <= '~')
	}
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}

func decodeHeader(s string) (string, bool) {
	inner, ok := strings.CutPrefix(s, "=?base64?")
	if !ok {
		return s, true
	}
	b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
	return string(b), err == nil
}
