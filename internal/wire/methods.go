package wire

// interned maps the methods of the protocol to themselves, so that reading one from a message allocates nothing.
var interned = func() map[string]string {
	m := map[string]string{}
	for _, name := range []string{
		"initialize", "ping", "server/discover",
		"tools/list", "tools/call", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel",
		"resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe",
		"roots/list", "sampling/createMessage", "elicitation/create", "subscriptions/listen",
		"tasks/get", "tasks/list", "tasks/result", "tasks/update", "tasks/cancel",
		"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/message",
		"notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed",
		"notifications/resources/updated", "notifications/roots/list_changed", "notifications/elicitation/complete",
		"notifications/tasks", "notifications/tasks/status", "notifications/subscriptions/acknowledged",
	} {
		m[name] = name
	}
	return m
}()

// methodName decodes a method token; it is false when the token is not a string or empty.
func methodName(tok []byte) (string, bool) {
	if len(tok) < 3 || tok[0] != '"' {
		return "", false
	}
	if name, known := interned[string(tok[1:len(tok)-1])]; known {
		return name, true
	}
	name, ok := DecodeString(tok)
	return name, ok && name != ""
}
