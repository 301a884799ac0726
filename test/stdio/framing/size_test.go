package framing

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// sized is a server whose answers have an exact length in bytes.
var _ = testmcp.Register("sized", func(args []string) *testmcp.Server {
	s := testmcp.Basic("sized")
	s.Era = stdio.Era(args)
	s.Tools = append(s.Tools,
		testmcp.SimpleTool("front", func(c *testmcp.Call) { sendRaw(c, args[1], sizedFrame(c, `"id":`+string(c.ID)+`,`, "")) }),
		testmcp.SimpleTool("back", func(c *testmcp.Call) { sendRaw(c, args[1], sizedFrame(c, "", `,"id":`+string(c.ID))) }),
		testmcp.SimpleTool("endless", func(c *testmcp.Call) {
			out := c.Process().Stdout
			out(`{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"`)
			for range c.Args("megabytes").Int() {
				out(strings.Repeat("x", 1<<20))
			}
			out(`"}]},"id":` + string(c.ID) + "}\n")
		}),
	)
	return s
})

// sendRaw sends an answer where it can without reading it first, which would take long with ten megabytes and the race
// detector.
func sendRaw(c *testmcp.Call, form, frame string) {
	switch form {
	case "pipe":
		c.Process().Stdout(frame + "\n")
	case "json":
		c.Respond(testmcp.Status(http.StatusOK, "application/json", frame))
	case "events":
		c.StreamBytes("data: " + frame + "\n\n")
		c.EndStream()
	default:
		c.Frame(frame)
	}
}

// sizedFrame makes an answer of as many bytes as the caller asks for, with the id before or behind the result.
func sizedFrame(c *testmcp.Call, before, behind string) string {
	resultType := ""
	if c.Modern() {
		resultType = `"resultType":"complete",`
	}
	head := `{"jsonrpc":"2.0",` + before + `"result":{` + resultType + `"content":[{"type":"text","text":"`
	tail := `"}]}` + behind + `}`
	return head + filling(c.Args("bytes").Int()-len(head)-len(tail)) + tail
}

// filling is a text of n bytes that tells its own length and shows every shift and gap.
func filling(n int) string {
	const unit = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456" // 59 letters: no power of two divides it
	head := fmt.Sprintf("%010d:", n)
	body := strings.Repeat(unit, n/len(unit)+1)
	return head + body[:n-len(head)]
}

// checkFilling looks for the text in the bytes of an answer of n bytes as they came.
func checkFilling(t *testing.T, answer []byte, n int) {
	t.Helper()
	_, text, _ := bytes.Cut(answer, []byte(`"text":"`))
	said, _, _ := bytes.Cut(text, []byte(":"))
	size, err := strconv.Atoi(strings.TrimLeft(string(said), "0"))
	if err != nil || size < n-200 || !bytes.HasPrefix(text, []byte(filling(size)+`"`)) {
		t.Errorf("an answer of %d bytes arrives with %d and is changed: %.200s", n, len(answer), answer)
	}
}

func TestResultsOfAnySizeArriveWhole(t *testing.T) {
	sizes := []int{10<<20 + 1, 65_535, 65_536, 65_537, 1<<20 + 1} // the first once only
	for _, way := range stdio.Ways {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": way.Entry(t, rec, "sized", nil)}))
			for i, era := range []testmcp.Era{testmcp.Legacy, testmcp.Modern} {
				c := p.Client(era)
				for _, n := range sizes[i:] {
					checkFilling(t, rawRequest(t, c, "tools/call", testmcp.ToolParams("up__front", fmt.Sprintf(`{"bytes":%d}`, n))), n)
				}
			}
		})
	}
}

// rawRequest gives the body of the response to a request, into which nothing has looked.
func rawRequest(t *testing.T, c *testmcp.Client, method, params string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.URL, strings.NewReader(c.Body(c.NextID(), method, params)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = c.HeadersFor(method, params)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("HTTP %d, %v", resp.StatusCode, err)
	}
	return body
}

// A limit that the tests can afford to exceed by far.
const (
	smallLimit  = 128 << 10
	smallLimits = `{"limits":{"max_frame_bytes":131072}}`
)

func TestAnAnswerOverTheLimitFailsOnlyItsCall(t *testing.T) {
	for _, way := range stdio.Ways {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config(smallLimits, map[string]string{"up": way.Entry(t, rec, "sized", nil)}))
			c := p.Client(testmcp.Legacy)
			held := c.Begin("tools/call", testmcp.ToolParams("up__wait", `{"signal":"go"}`))
			rec.Wait(t, testmcp.CalledTool("wait"))
			for _, tool := range []string{"front", "back"} {
				for _, n := range []int{smallLimit + 64, 1 << 20} {
					a := c.CallTool("up__"+tool, fmt.Sprintf(`{"bytes":%d}`, n))
					checkOverLimit(t, a)
				}
			}
			// Just below the limit all is well, on the same connection.
			checkFilling(t, c.CallTool("up__front", fmt.Sprintf(`{"bytes":%d}`, smallLimit-64)).Raw, smallLimit-64)
			rec.Signal("go")
			if got := held.Final().Text(); got != "waited" {
				t.Errorf("the call that was under way gave %q", got)
			}
			if n := rec.Count(testmcp.Is(testmcp.Start)); n != 1 {
				t.Errorf("the upstream was started %d times", n)
			}
			if n := p.Metrics().Sum("mcp_proxy_limit_exceeded_total", "limit", "frame"); n != 4 {
				t.Errorf("the limit was counted %v times, want 4", n)
			}
		})
	}
}

func checkOverLimit(t *testing.T, a testmcp.Answer) {
	t.Helper()
	message := a.Err().At("message").Str()
	if a.Code() != -32603 || a.Err().At("data", "reason").Str() != "transport_error" || !strings.Contains(message, "max_frame_bytes") {
		t.Errorf("an answer over the limit gives %.300s", a.Raw)
	}
	if !strings.HasPrefix(message, "up::") || a.Err().At("data", "upstream").Str() != "up" {
		t.Errorf("the error does not name upstream and tool: %s", a.Err())
	}
}

func TestALineWithoutEndCostsNoMemory(t *testing.T) {
	rec := testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config(smallLimits, map[string]string{"up": rec.Entry("sized", []string{"legacy", "pipe"})}))
	c := p.Client(testmcp.Legacy)
	c.CallTool("up__front", `{"bytes":100000}`)
	before := testmcp.RSS(p.PID())
	const megabytes = 96
	checkOverLimit(t, c.CallTool("up__endless", fmt.Sprintf(`{"megabytes":%d}`, megabytes)))
	if grown := testmcp.RSS(p.PID()) - before; grown > megabytes<<20/3 {
		t.Errorf("a line of %d MiB took %d MiB of memory", megabytes, grown>>20)
	}
	if a := c.CallTool("up__echo", `{"text":"still here"}`); a.Text() != "still here" {
		t.Errorf("the next call gave %s", a.Raw)
	}
}
