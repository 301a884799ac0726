package wire

import (
	"encoding/base64"
	"strings"
)

const (
	base64Open  = "=?base64?"
	base64Close = "?="
)

// EncodeHeader makes a header value of any text (2026-07-28, streamable HTTP, "Value Encoding").
func EncodeHeader(s string) string {
	plain := strings.TrimSpace(s) == s && !(strings.HasPrefix(s, base64Open) && strings.HasSuffix(s, base64Close))
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] >= ' ' && s[i] <= '~' || s[i] == '\t'
	}
	if plain {
		return s
	}
	return base64Open + base64.StdEncoding.EncodeToString([]byte(s)) + base64Close
}

// DecodeHeader is the reverse of EncodeHeader; false where the value is marked as Base64 and is none.
func DecodeHeader(s string) (string, bool) {
	inner, ok := strings.CutPrefix(s, base64Open)
	if !ok || !strings.HasSuffix(inner, base64Close) {
		return s, true
	}
	b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, base64Close))
	return string(b), err == nil
}

// NamedBy is the member of params that the header Mcp-Name repeats in requests of a method; empty where there is no such
// header.
func NamedBy(method string) string {
	switch method {
	case "tools/call", "prompts/get":
		return "name"
	case "resources/read":
		return "uri"
	case "tasks/get", "tasks/update", "tasks/cancel":
		return "taskId"
	}
	return ""
}
