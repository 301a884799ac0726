package testmcp

import (
	"net/http"
	"strings"
)

// Asked gives what the server has asked so far.
func (c *Client) Asked() []Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Message(nil), c.asked...)
}

// answerTo gives the raw result for a question, or an error object; ok is false where the client has none.
func (c *Client) answerTo(q Message) (result, fault string, ok bool) {
	c.mu.Lock()
	c.asked = append(c.asked, q)
	f := c.Answers[q.Method]
	c.mu.Unlock()
	if f == nil {
		return "", "", false
	}
	text := f(q.Params)
	if e, isError := strings.CutPrefix(text, "!"); isError {
		return "", e, true
	}
	return text, "", true
}

// reply posts the answer to a legacy server→client request.
func (c *Client) reply(q Message) {
	body := `{"jsonrpc":"2.0","id":` + string(q.ID)
	switch result, fault, ok := c.answerTo(q); {
	case !ok:
		body += `,"error":{"code":-32601,"message":"Method not found"}}`
	case fault != "":
		body += `,"error":` + fault + `}`
	default:
		body += `,"result":` + result + `}`
	}
	c.Do(http.MethodPost, body, c.HeadersFor("", "")).Close()
}

// retry gives the parameters of the next round of a modern request; ok is false where an answer is missing.
func (c *Client) retry(params string, result Raw) (next string, ok bool) {
	var parts []string
	for key, request := range result.At("inputRequests").Members() {
		q := parseMessage(request)
		answer, fault, ok := c.answerTo(q)
		if !ok || fault != "" { // there is no way to send an error: whoever declines does not come back
			return "", false
		}
		parts = append(parts, Quote(key)+":"+answer)
	}
	if state := result.At("requestState"); state != nil {
		params = withMember(params, "requestState", string(state))
	}
	if parts != nil {
		params = withMember(params, "inputResponses", "{"+strings.Join(parts, ",")+"}")
	}
	return params, true
}
