package upstream

import "testing"

func TestWhatMeansALostSession(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		lost   bool
	}{
		{404, ``, true},
		{404, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`, true},
		{410, `gone`, true},
		{400, `Bad Request: No valid session ID provided`, true},
		{400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`, true},
		{400, `invalid session id`, true},
		{401, `session expired`, true},
		{503, `unknown session`, true},
		{503, `upstream connect error`, false},
		{400, `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"bad arguments"}}`, false},
		{401, `token expired`, false},
		{500, `session not found`, false},
		{200, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"Session not found"}}`, true},
		{200, `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"browser session not found"}}`, false},
		{200, `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"Session not found"}]}}`, false},
		{200, `{"jsonrpc":"2.0","id":7,"result":{"content":[],"isError":true}}`, false},
		{202, ``, false},
	} {
		if got := lostSession(c.status, []byte(c.body)); got != c.lost {
			t.Errorf("HTTP %d %s: lost %v, want %v", c.status, c.body, got, c.lost)
		}
	}
}
