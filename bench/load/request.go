package load

import (
	"fmt"
	"strings"
)

// Era is one of the two families of protocol revisions.
type Era string

// The eras, and the revision spoken in each.
const (
	Legacy Era = "legacy"
	Modern Era = "modern"

	legacyVersion = "2025-11-25"
	modernVersion = "2026-07-28"
)

// Target says what is asked of whom.
type Target struct {
	Addr string // host:port
	Path string
	Era  Era
	// Method is tools/call or tools/list.
	Method string
	// Tool is the name that tools/call uses.
	Tool string
	// Text is the length in bytes of the text that tools/call must bring,
	// Tools the number of tools that tools/list must bring.
	Text, Tools int
}

// idDigits is the number of digits of every request id, so that all requests
// of a client have the same length.
const idDigits = 12

// message is a complete HTTP request whose id can be replaced in place.
type message struct {
	bytes []byte
	id    int // where the id's digits begin
}

func (m *message) setID(digits []byte) { copy(m.bytes[m.id:m.id+idDigits], digits) }

// call builds the request that is measured. session is empty in the modern era.
func (t *Target) call(session string) message {
	params := `{`
	if t.Method == "tools/call" {
		params += fmt.Sprintf(`"name":%q,"arguments":{"query":"everything about seven","limit":20}`, t.Tool)
	}
	headers := []string{"Mcp-Protocol-Version: " + legacyVersion, "Mcp-Session-Id: " + session}
	if t.Era == Modern {
		headers = []string{"Mcp-Protocol-Version: " + modernVersion, "Mcp-Method: " + t.Method}
		if t.Method == "tools/call" {
			headers = append(headers, "Mcp-Name: "+t.Tool)
			params += `,`
		}
		params += `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modernVersion + `",` +
			`"io.modelcontextprotocol/clientCapabilities":{},` +
			`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}`
	}
	return t.request(t.Method, params+`}`, headers...)
}

func (t *Target) initialize() message {
	return t.request("initialize", `{"protocolVersion":"`+legacyVersion+`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`)
}

func (t *Target) request(method, params string, headers ...string) message {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%0*d,"method":%q,"params":%s}`, idDigits, 0, method, params)
	text := t.post(body, headers...)
	return message{bytes: text, id: len(text) - len(body) + len(`{"jsonrpc":"2.0","id":`)}
}

func (t *Target) initialized(session string) []byte {
	return t.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		"Mcp-Protocol-Version: "+legacyVersion, "Mcp-Session-Id: "+session)
}

func (t *Target) post(body string, headers ...string) []byte {
	headers = append([]string{
		"POST " + t.Path + " HTTP/1.1",
		"Host: " + t.Addr,
		"Content-Type: application/json",
		"Accept: application/json, text/event-stream",
		fmt.Sprintf("Content-Length: %d", len(body)),
	}, headers...)
	return []byte(strings.Join(headers, "\r\n") + "\r\n\r\n" + body)
}

// end is the request that ends a legacy session.
func (t *Target) end(session string) []byte {
	return fmt.Appendf(nil, "DELETE %s HTTP/1.1\r\nHost: %s\r\nMcp-Protocol-Version: %s\r\nMcp-Session-Id: %s\r\n\r\n",
		t.Path, t.Addr, legacyVersion, session)
}
