package session

import (
	"net/http"
	"testing"
)

func TestWhatAClientAccepts(t *testing.T) {
	both, onlyJSON, neither := acceptance{json: true, stream: true}, acceptance{json: true}, acceptance{}
	onlyStream := acceptance{stream: true, streamFirst: true}
	ratherStream := acceptance{json: true, stream: true, streamFirst: true}
	for _, c := range []struct {
		values []string
		want   acceptance
	}{
		{nil, both},
		{[]string{"application/json, text/event-stream"}, both},
		{[]string{"text/event-stream,application/json"}, ratherStream},
		{[]string{"text/event-stream", "application/json"}, ratherStream},
		{[]string{"text/event-stream;q=0.9, application/json"}, both},
		{[]string{"application/json;q=0.5, text/event-stream"}, ratherStream},
		{[]string{"application/json;q=nonsense, text/event-stream"}, both},
		{[]string{"text/event-stream, */*;q=0.1"}, ratherStream},
		{[]string{"application/json", "text/event-stream"}, both},
		{[]string{"*/*"}, both},
		{[]string{"Application/JSON; charset=utf-8"}, onlyJSON},
		{[]string{"application/*"}, onlyJSON},
		{[]string{"text/event-stream"}, onlyStream},
		{[]string{"text/*;q=0.5"}, onlyStream},
		{[]string{"application/json, text/event-stream;q=0"}, onlyJSON},
		{[]string{"application/json;q=0.0, text/event-stream"}, onlyStream},
		{[]string{"application/json; q=0.001"}, onlyJSON},
		{[]string{"application/json; Q = 0"}, neither},
		{[]string{"text/html"}, neither},
		{[]string{""}, neither},
		{[]string{"text/html, */*;q=0.1"}, both},
	} {
		if got := accepted(http.Header{"Accept": c.values}); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.values, got, c.want)
		}
	}
}

func TestWhatIsJSON(t *testing.T) {
	for v, want := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "APPLICATION/JSON": true, " application/json ;x": true,
		"": false, "text/plain": false, "application/jsonp": false, "application/json-rpc": false,
	} {
		if got := isJSON(http.Header{"Content-Type": {v}}); got != want {
			t.Errorf("%q: %v", v, got)
		}
	}
}
