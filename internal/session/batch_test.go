package session

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{}, nil)
		defer st.stop()
		c := st.client().open(wire.Rev20250326)
		for _, b := range []struct {
			name   string
			c      *client
			body   string
			status int
			want   string
		}{
			{"requests", c, `[` + ping + `,{"jsonrpc":"2.0","id":"1","method":"ping"}]`, 200, `"id":"1"`},
			{"notifications", c, `[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":5,"result":{}}]`, 202, ""},
			{"one that is broken", c, `[{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"},` + ping + `]`, 200, `-32600`},
			{"initialize", c, `[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}]`, 200, "must not be part of a batch"},
			{"nothing", c, `[]`, 400, `-32600`},
			{"no objects", c, `[1]`, 400, `-32600`},
			{"too many", c, `[` + strings.Repeat(ping+",", maxBatch) + ping + `]`, 400, `-32600`},
			{"another revision", legacyClient(st), `[` + ping + `]`, 400, "only in the revision 2025-03-26"},
			{"the other era", st.client().modern("ping", ""), `[` + ping + `]`, 400, `-32600`},
			{"no session", st.client(), `[` + ping + `]`, 400, `Mcp-Session-Id`},
		} {
			r := b.c.post(b.body).wait()
			if r.code() != b.status || !strings.Contains(r.text(), b.want) {
				t.Errorf("%s: %d %s, want %d %s", b.name, r.code(), r.text(), b.status, b.want)
			}
			if b.status == 200 && (!strings.HasPrefix(r.text(), "[") || !strings.HasSuffix(r.text(), "]")) {
				t.Errorf("%s: no array: %s", b.name, r.text())
			}
		}
	})
}

// A batch of a client that goes and does not come back is cancelled as a single call is.
func TestABatchWhoseClientGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{tool: never}
		st := newStage(t, b, nil)
		defer st.stop()
		r := st.client().open(wire.Rev20250326).post(`[` + callT + `,` + strings.Replace(callT, `"A"`, `"B"`, 1) + `]`)
		pass(time.Second)
		r.cancel()
		r.wait()
		if synctest.Wait(); b.received("notifications/cancelled") != 2 {
			t.Errorf("the server heard %d cancels", b.received("notifications/cancelled"))
		}
	})
}
