package results

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestMain(m *testing.M) { testmcp.Main(m) }

var _ = testmcp.Register("talkative", func(args []string) *testmcp.Server {
	s := testmcp.Basic("talkative")
	s.Tools = append(s.Tools, testmcp.SimpleTool("story", func(c *testmcp.Call) { c.Text(story) }))
	if args[0] == "modern" {
		s.Era = testmcp.Modern
	} else {
		s.Era = testmcp.Legacy
	}
	return s
})

var story = strings.Repeat("Es war einmal, \"ø\" und 𝄞. ", 3000)

const settings = `{"auth":{"tokens":[{"name":"alice","token":"token-of-alice"},{"name":"bob","token":"token-of-bob"}]},
	"profiles":{"found":{"servers":["up"],"lazy":"search_only"}}}`

func as(t *testing.T, url string, era testmcp.Era, who string) *testmcp.Client {
	t.Helper()
	c := testmcp.NewClient(t, url, era)
	c.Header.Set("Authorization", "Bearer token-of-"+who)
	return c.Open()
}

// told reads all pages of a resource.
func told(t *testing.T, c *testmcp.Client, uri string) (text string, pages int) {
	t.Helper()
	for uri != "" {
		a := c.Call("resources/read", `{"uri":`+testmcp.Quote(uri)+`}`)
		first := a.Result().At("contents", 0)
		text += first.At("text").Str()
		uri = first.At("_meta", "io.github.mcp-proxy/next").Str()
		pages++
	}
	return text, pages
}

func TestALongResultIsReadInPagesByWhoeverCalled(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"legacy", "modern"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config(settings, map[string]string{"up": rec.Entry("talkative", []string{server}, `"max_result_size":"16KiB"`, `"oversize":"resource"`)}))
			for _, era := range []testmcp.Era{testmcp.Legacy, testmcp.Modern} {
				for url, call := range map[string][2]string{
					p.URL:              {"up__story", "{}"},
					p.Server("up"):     {"story", "{}"},
					p.Profile("found"): {"call_tool", `{"name":"up__story","arguments":{}}`},
				} {
					alice := as(t, url, era, "alice")
					a := alice.CallTool(call[0], call[1])
					link := a.Result().At("content", 1)
					uri := link.At("uri").Str()
					if link.At("type").Str() != "resource_link" || len(a.Raw) > 17<<10 || !strings.HasPrefix(a.Text(), story[:5000]) {
						t.Fatalf("%s: the answer is %.300s", url, a.Raw)
					}
					if text, n := told(t, alice, uri); text != story || n < 5 {
						t.Errorf("%s: %d pages hold %d bytes of %d", url, n, len(text), len(story))
					}
					bob := as(t, url, era, "bob")
					other, never := bob.Try("resources/read", `{"uri":`+testmcp.Quote(uri)+`}`), bob.Try("resources/read", `{"uri":`+testmcp.Quote(uri+"0")+`}`)
					if other.Code() == 0 || other.Code() != never.Code() ||
						strings.ReplaceAll(string(other.Raw.At("error")), uri, "X") != strings.ReplaceAll(string(never.Raw.At("error")), uri+"0", "X") {
						t.Errorf("%s: somebody else hears %s, and of what never was %s", url, other.Raw, never.Raw)
					}
				}
			}
		})
	}
}

func TestALongResultIsRefused(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	entry := func(more ...string) string { return rec.Entry("talkative", []string{"legacy"}, more...) }
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": entry(`"max_result_size":16384`, `"tools":{"big":{"max_result_size":"1MiB"}}`)}))
	for _, era := range []testmcp.Era{testmcp.Legacy, testmcp.Modern} {
		c := p.Client(era)
		a := c.CallTool("up__story", "")
		if a.Result().At("isError").String() != "true" || !strings.HasPrefix(a.Text(), "up::story: the result has ") {
			t.Errorf("the answer is %s", a.Raw)
		}
		if text := c.CallTool("up__big", `{"bytes":100000}`).Text(); len(text) != 100_000 {
			t.Errorf("a tool with its own bound gives %d bytes", len(text))
		}
	}
	m := p.Metrics()
	if n := m.Sum("mcp_proxy_limit_exceeded_total", "limit", "result_size"); n != 2 {
		t.Errorf("%v results are counted", n)
	}
	p.WriteConfig(testmcp.Config("", map[string]string{"up": entry()}))
	p.Reload()
	p.WaitLog("the configuration is in force")
	if text := p.Client(testmcp.Modern).CallTool("up__story", "").Text(); text != story {
		t.Errorf("without a bound %d bytes come", len(text))
	}
}
