package session

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func TestSubscriptionsOfModernClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		st := newStage(t, b, nil)
		defer st.stop()
		c := st.client().modern("subscriptions/listen", "")
		listen := func(filter string) *response {
			return c.post(`{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":` + filter + `,` + modernMeta + `}}`)
		}
		tools, prompts := listen(`{"toolsListChanged":true,"unknown":true}`), listen(`{"promptsListChanged":true}`)
		synctest.Wait()
		b.change()
		pass(3 * time.Second)
		synctest.Wait()
		const meta = `"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"}`
		want := []string{
			`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged",` + meta + `,"notifications":{"toolsListChanged":true}}}`,
			`{"jsonrpc":"2.0","method":"notifications/tools/list_changed",` + meta + `}}`,
		}
		if got := strings.Join(tools.data(), "\n"); got != strings.Join(want, "\n") {
			t.Errorf("told\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
		if got := prompts.data(); len(got) != 1 || !strings.Contains(got[0], `"notifications":{"promptsListChanged":true}`) {
			t.Errorf("who asked for prompts was told %q", got)
		}
		if st.metric("mcp_proxy_streams", "kind", "listen") != 2 {
			t.Error("the streams are counted wrongly")
		}
		prompts.cancel()
		prompts.wait()
		for name, r := range map[string]*response{
			"no filter": c.post(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` + modernMeta + `}}`),
			"no stream": c.with("Accept", "application/json").post(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{},` + modernMeta + `}}`),
		} {
			if r.wait(); !strings.Contains(r.text(), `"error"`) {
				t.Errorf("%s: %d %s", name, r.code(), r.text())
			}
		}
		st.m.Drain(t.Context())
		got := tools.wait().data()
		if last := got[len(got)-1]; !strings.HasPrefix(last, `{"jsonrpc":"2.0","id":"L","result":{"resultType":"complete"`) {
			t.Errorf("the end is %s", last)
		}
	})
}

func TestModernRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{}, nil)
		defer st.stop()
		good := st.client().modern("tools/call", "t")
		for _, c := range []struct {
			name   string
			c      *client
			body   string
			status int
			want   string
		}{
			{"well", good, callModern, 200, `"resultType":"complete"`},
			{"another method in the header", good.with(headerMethod, "tools/list"), callModern, 400, `-32020`},
			{"no method in the header", good.with(headerMethod, ""), callModern, 400, `-32020`},
			{"another name in the header", good.with(headerName, "x"), callModern, 400, `-32020`},
			{"no name in the header", good.with(headerName, ""), callModern, 400, `-32020`},
			{"an encoded name", good.with(headerName, "=?base64?dA==?="), callModern, 200, `"result"`},
			{"no revision in the header", good.with(headerVersion, ""), callModern, 400, `-32020`},
			{"another revision in the header", good.with(headerVersion, wire.LatestLegacy), callModern, 400, `-32020`},
			{"no _meta", good, callT, 400, `-32602`},
			{"a revision to come", good.with(headerVersion, "2031-01-01"), strings.Replace(callModern, "2026-07-28", "2031-01-01", 1), 400, `-32022`},
			{"no capabilities", good, strings.Replace(callModern, `,"io.modelcontextprotocol/clientCapabilities":{}`, "", 1), 400, `-32602`},
			{"capabilities of another type", good, strings.Replace(callModern, `clientCapabilities":{}`, `clientCapabilities":[]`, 1), 400, `-32602`},
			{"an unknown method", good.with(headerMethod, "no/such", headerName, ""), `{"jsonrpc":"2.0","id":1,"method":"no/such","params":{` + modernMeta + `}}`, 404, `-32601`},
			{"a notification", good, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, 202, ``},
			{"an answer", good, `{"jsonrpc":"2.0","id":1,"result":{}}`, 400, `-32600`},
		} {
			if r := c.c.post(c.body).wait(); r.code() != c.status || !strings.Contains(r.text(), c.want) {
				t.Errorf("%s: %d %s, want %d %s", c.name, r.code(), r.text(), c.status, c.want)
			}
		}
		if st.m.Count() != 0 {
			t.Error("a modern request has made a session")
		}
	})
}
