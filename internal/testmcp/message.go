package testmcp

import "strings"

// Protocol revisions and the _meta keys that a modern request carries.
const (
	Rev2024 = "2024-11-05"
	Rev2503 = "2025-03-26"
	Rev2506 = "2025-06-18"
	Rev2511 = "2025-11-25"
	Rev2607 = "2026-07-28"

	metaPrefix   = "io.modelcontextprotocol/"
	metaVersion  = metaPrefix + "protocolVersion"
	metaCaps     = metaPrefix + "clientCapabilities"
	metaInfo     = metaPrefix + "clientInfo"
	metaLogLevel = metaPrefix + "logLevel"
	metaSub      = metaPrefix + "subscriptionId"
)

// JSON-RPC codes that the kit itself answers.
const (
	codeParse         = -32700
	codeNoMethod      = -32601
	codeBadParams     = -32602
	codeHeader        = -32020
	codeCapability    = -32021
	codeVersion       = -32022
	codeResourceGone  = -32002
	messageRequest    = "request"
	messageNotice     = "notification"
	messageResponse   = "response"
	messageUnreadable = "unreadable"
)

// Message is one frame with the members that decide what it is.
type Message struct {
	Raw    Raw
	ID     Raw // nil without the member
	Method string
	Params Raw
}

func parseMessage(frame []byte) Message {
	raw := Raw(frame)
	m := raw.Members()
	return Message{Raw: raw, ID: Raw(m["id"]), Method: Raw(m["method"]).Str(), Params: Raw(m["params"])}
}

// Result gives the result of an answer, nil if it is an error.
func (m Message) Result() Raw { return m.Raw.At("result") }

// Err gives the error of an answer, nil if it is a result.
func (m Message) Err() Raw { return m.Raw.At("error") }

func (m Message) kind() string {
	switch {
	case m.Method != "" && m.ID != nil:
		return messageRequest
	case m.Method != "":
		return messageNotice
	case m.ID != nil && (m.Raw.Has("result") || m.Raw.Has("error")):
		return messageResponse
	}
	return messageUnreadable
}

func (m Message) isAnswer() bool { return m.kind() == messageResponse }

// meta gives a member of params._meta.
func (m Message) meta(key string) Raw { return m.Params.At("_meta", key) }

// resourceName is what the Mcp-Name header must repeat; ok is false for methods without it.
func (m Message) resourceName() (name string, ok bool) {
	switch {
	case m.Method == "tools/call" || m.Method == "prompts/get":
		return m.Params.At("name").Str(), true
	case m.Method == "resources/read":
		return m.Params.At("uri").Str(), true
	case strings.HasPrefix(m.Method, "tasks/"):
		return m.Params.At("taskId").Str(), true
	}
	return "", false
}

func frameOf(id, method, params string) string {
	var b strings.Builder
	b.WriteString(`{"jsonrpc":"2.0"`)
	if id != "" {
		b.WriteString(`,"id":` + id)
	}
	b.WriteString(`,"method":` + Quote(method))
	if params != "" {
		b.WriteString(`,"params":` + params)
	}
	b.WriteString("}")
	return b.String()
}
