package web

import (
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// forms are the ways in which events are written.
var forms = map[string]func(id string, frame []byte) []byte{
	"lf":    testmcp.EventForm,
	"crlf":  testmcp.EventEnding("\r\n"),
	"cr":    testmcp.EventEnding("\r"),
	"lines": testmcp.EventLines,
	"noise": testmcp.EventAmongNoise,
	"mixed": func(_ string, frame []byte) []byte { return []byte("data:" + string(frame) + "\r\n\n") },
}

// beginnings are what servers begin a stream with.
var beginnings = map[string]string{
	"nothing":    "",
	"id":         "id: 7\n\n",
	"id-no-data": "id: 7\ndata: \n\n",
	"pause":      "retry: 500\n\n",
	"ping":       "event: ping\ndata: 2026-11-30\n\n",
	"comment":    ": comment\n\n",
	"mark":       "\uFEFFevent: endpoint\ndata: /elsewhere\n\n",
}

// Events may be written in many ways, and streams may begin with what is no message: all of it is read alike.
func TestEventsAreReadHoweverTheyAreWritten(t *testing.T) {
	t.Parallel()
	for word, era := range eras {
		servers := map[string]string{}
		for name, form := range forms {
			id := word + "-" + name
			servers[id] = testmcp.ServeHTTP(t, of(era), testmcp.HTTPOptions{Answers: testmcp.AsEvents, Event: form}).Entry()
			if era == testmcp.Legacy {
				servers["older-"+name] = testmcp.ServeSSE(t, of(era), testmcp.SSEOptions{Event: form}).Entry(`"type":"sse"`)
			}
		}
		for name, text := range beginnings {
			servers[word+"-after-"+name] = testmcp.ServeHTTP(t, of(era), testmcp.HTTPOptions{Answers: testmcp.AsEvents, Prime: func(string) string { return text }}).Entry()
		}
		p := start(t, "", servers)
		for id := range servers {
			for client, era := range eras {
				t.Run(id+", "+client+" client", func(t *testing.T) {
					works(t, p.Client(era), id)
				})
			}
		}
	}
}
