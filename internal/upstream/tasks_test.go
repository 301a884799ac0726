package upstream

import (
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
)

// What a server asks for a task belongs to the call that asks about that task, however many others there are.
func TestMuxFindsTheCallThatATaskBelongsTo(t *testing.T) {
	const named = `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t2"}}}}`
	for _, c := range []struct {
		name  string
		tasks []string // that the open calls ask about
		want  int      // the call that has it; -1 for none
	}{
		{"two calls of tasks", []string{"t1", "t2"}, 1},
		{"a call of the task beside plain ones", []string{"", "t2", ""}, 1},
		{"only a plain call", []string{""}, -1},
		{"only a call of another task", []string{"t1"}, -1},
	} {
		r := newRig(t)
		m, replies := newTestMux(r)
		var boxes []*mailbox
		for i, task := range c.tasks {
			box, err := m.open(&Outgoing{ID: uint64(i + 1), Task: task})
			if err != nil {
				t.Fatal(err)
			}
			boxes = append(boxes, box)
		}
		m.dispatch(parsed(t, named))
		got := -1
		for i, b := range boxes {
			if f, _ := b.poll(); f != nil {
				got = i
			}
		}
		if got != c.want {
			t.Errorf("%s: call %d has the question, want %d", c.name, got, c.want)
		}
		if refused := len(*replies) == 1; refused != (c.want < 0) || (r.dropped(count.DropRequest) == 1) != refused {
			t.Errorf("%s: refused %v", c.name, refused)
		}
	}
}

func TestAPlaceIsTheConnectionThatKnows(t *testing.T) {
	for _, c := range []struct {
		name string
		at   Place
		pipe bool
		want int // the slot; -1 for none, -2 for any
	}{
		{"the same process", Place{Generation: 12}, true, 1},
		{"a process that has ended", Place{Generation: 13}, true, -1},
		{"a process without a name", Place{}, true, -1},
		{"the same connection over HTTP", Place{Index: 1}, false, 1},
		{"a connection over HTTP that is down", Place{Index: 2}, false, -2},
		{"more connections than there are", Place{Index: 9}, false, -2},
	} {
		kind := config.TransportHTTP
		if c.pipe {
			kind = config.TransportInProcess
		}
		cfg := serverConfig(kind)
		cfg.Instances = 3
		r := newRig(t)
		u := New(cfg, Options{Log: r.env.log, Count: r.count, Budget: r.budget})
		for i, s := range u.shared[:2] {
			s.conn = &httpConn{}
			if c.pipe {
				s.generation = uint64(11 + i)
			}
		}
		s, err := u.sharedAt(c.at)
		got := -2
		for i, x := range u.shared {
			if s == x {
				got = i
			}
		}
		if err != nil {
			got = -1
		}
		if got != c.want {
			t.Errorf("%s: slot %d, want %d", c.name, got, c.want)
		}
	}
}
