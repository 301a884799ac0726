// Package cheapmcp is an MCP server that costs next to nothing: its results
// are rendered once at start and only the request's id is put into them. It
// stands behind the proxies under measurement, over HTTP and over stdio, so
// that the figures tell about the proxies and not about the server.
//
// It speaks both eras, decided per request by the protocol version in _meta.
package cheapmcp

import (
	"bytes"
	"fmt"
)

// JSON-RPC and MCP error codes used here.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeHeaderMismatch = -32020
	codeBadVersion     = -32022
)

// Server answers messages. It never changes after New and is safe for
// concurrent use.
type Server struct {
	texts    map[string]rendered // by tool name
	tools    rendered
	discover []byte
	// initialize holds the answer for each legacy revision.
	initialize map[string][]byte
}

// New makes a server with the text tools, and as many filler tools as it
// takes to list total tools. It never lists fewer than the text tools.
func New(total int) *Server {
	tools := textTools()
	tools = append(tools, fillerTools(max(0, total-len(tools)))...)
	s := &Server{
		texts:      map[string]rendered{},
		tools:      render(map[string]any{"tools": tools}, cacheable()),
		initialize: map[string][]byte{},
	}
	for _, size := range TextSizes() {
		s.texts[TextTool(size)] = textResult(size)
	}
	legacy := []string{LegacyVersion, "2025-06-18", "2025-03-26", "2024-11-05"}
	capabilities := map[string]any{"tools": map[string]any{}}
	for _, version := range legacy {
		s.initialize[version] = mustMarshal(map[string]any{
			"protocolVersion": version, "capabilities": capabilities, "serverInfo": serverInfo(),
		})
	}
	s.discover = render(map[string]any{
		"supportedVersions": append([]string{ModernVersion}, legacy...),
		"capabilities":      capabilities,
	}, cacheable()).modern
	return s
}

// reply is the answer to one request. A reply without id is no answer at all.
type reply struct {
	id     []byte // spliced in as it came
	result []byte // the result, when code is 0
	code   int
	fault  string
	data   string // the JSON text of the error's data, or empty
}

func (r *reply) answers() bool { return len(r.id) > 0 }

// size is the length in bytes of the message, if it is a result.
func (r *reply) size() int {
	return len(replyHead) + len(r.id) + len(replyResult) + len(r.result) + len(replyEnd)
}

const (
	replyHead   = `{"jsonrpc":"2.0","id":`
	replyResult = `,"result":`
	replyEnd    = `}`
)

// render returns the message, errors included, in one piece.
func (r *reply) render() []byte {
	out := make([]byte, 0, r.size()+len(r.fault)+len(r.data)+64)
	out = append(append(out, replyHead...), r.id...)
	if r.code == 0 {
		out = append(append(out, replyResult...), r.result...)
		return append(out, replyEnd...)
	}
	out = fmt.Appendf(out, `,"error":{"code":%d,"message":%q`, r.code, r.fault)
	if r.data != "" {
		out = append(append(out, `,"data":`...), r.data...)
	}
	return append(out, "}}"...)
}

// answer handles one message.
func (s *Server) answer(message []byte) (request, reply) {
	message = bytes.TrimSpace(message)
	if len(message) > 0 && message[0] == '[' {
		return request{}, reply{id: []byte("null"), code: codeInvalidRequest, fault: "batches are not supported"}
	}
	req, ok := parse(message)
	if !ok {
		return request{}, reply{id: []byte("null"), code: codeParse, fault: "not a JSON object"}
	}
	if len(req.id) == 0 || len(req.method) == 0 {
		return req, reply{} // a notification, or an answer nobody waits for
	}
	if req.modern && string(req.version) != ModernVersion {
		return req, badVersion(req)
	}
	return req, s.dispatch(req)
}

func (s *Server) dispatch(req request) reply {
	switch {
	case string(req.method) == "tools/call":
		return s.call(req)
	case string(req.method) == "tools/list":
		return reply{id: req.id, result: s.tools.of(req.modern)}
	case req.modern && string(req.method) == "server/discover":
		return reply{id: req.id, result: s.discover}
	case !req.modern && string(req.method) == "initialize":
		result, known := s.initialize[string(req.version)]
		if !known {
			result = s.initialize[LegacyVersion]
		}
		return reply{id: req.id, result: result}
	case !req.modern && string(req.method) == "ping":
		return reply{id: req.id, result: []byte("{}")}
	}
	return reply{id: req.id, code: codeNoMethod, fault: "no such method"}
}

func (s *Server) call(req request) reply {
	result, known := s.texts[string(req.name)]
	if !known {
		return reply{id: req.id, code: codeInvalidParams, fault: "no such tool"}
	}
	return reply{id: req.id, result: result.of(req.modern)}
}

func badVersion(req request) reply {
	return reply{
		id: req.id, code: codeBadVersion, fault: "unsupported protocol version",
		data: string(mustMarshal(map[string]any{
			"supported": []string{ModernVersion, LegacyVersion}, "requested": string(req.version),
		})),
	}
}
