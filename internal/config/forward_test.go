package config

import "testing"

func TestHeadersThatAreNeverForwarded(t *testing.T) {
	for _, name := range []string{"authorization", "Cookie", "Mcp-Session-Id", "mcp-param-x", "Host", "Content-Length", "a b", ""} {
		if isForwardable(name) == "" {
			t.Errorf("%q may be forwarded", name)
		}
	}
	for _, name := range []string{"X-Request-Id", "traceparent", "x-api-key", "X-Forwarded-For"} {
		if wrong := isForwardable(name); wrong != "" {
			t.Errorf("%q: %s", name, wrong)
		}
	}
}
