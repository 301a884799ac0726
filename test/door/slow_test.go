package door

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// The flood is more than the sockets of a stalled connection and the proxy keep for a client that does not read.
const (
	floodPiece = 64 << 10
	floodCount = 120
)

func flooding([]string) *testmcp.Server {
	s := testmcp.Basic("flood")
	s.Quiet = true // what it sends is known
	// Padding the frames on their way out costs less than the kit's looking at large ones.
	padding := bytes.Repeat([]byte("x"), floodPiece)
	s.Write = func(_ int, frame []byte) []byte {
		return append(bytes.Replace(frame, []byte("PADDING"), padding, 1), '\n')
	}
	s.Tools = append(s.Tools, testmcp.SimpleTool("flood", func(c *testmcp.Call) {
		for i := range floodCount {
			c.Progress(float64(i+1), floodCount, "PADDING")
		}
		c.Note("flooded")
		c.Text("flooded")
	}))
	return s
}

var _ = testmcp.Register("flood", flooding)

// TestClientThatDoesNotReadDelaysNobody: a child floods progress for it, and the calls of others to the same child are
// answered meanwhile. What it does not read is dropped and counted, but not its answer.
func TestClientThatDoesNotReadDelaysNobody(t *testing.T) {
	t.Parallel()
	const small = 5 * time.Second // what the proxy allows a write is three times that
	rec := testmcp.NewRecorder(t)
	p := start(t, "", map[string]string{"up": rec.Entry("flood", nil)})
	other := p.Client(testmcp.Modern)
	for n, e := range eras {
		t.Run(e.name, func(t *testing.T) {
			before := dropped(p)
			stalled := stall(t, p.Client(e.era), "tools/call", `{"_meta":{"progressToken":1},"name":"up__flood"}`)
			for range 25 {
				a := other.CallTool("up__echo", `{"text":"x"}`)
				wantText(t, a, "x")
				if a.Took > small {
					t.Errorf("a call of another client took %v", a.Took)
				}
			}
			rec.WaitN(t, n+1, testmcp.Noted("flooded"))
			testmcp.Eventually(t, "flood that is dropped", func() bool { return dropped(p) > before })
			wantRising(t, readOn(t, stalled))
		})
	}
}

// dropped counts what was dropped because nobody reads it.
func dropped(p *testmcp.Proxy) float64 {
	return p.Metrics().Sum("mcp_proxy_dropped_total", "what", "progress")
}

// stall sends a request on a connection of its own and reads nothing.
func stall(t *testing.T, c *testmcp.Client, method, params string) net.Conn {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.URL, strings.NewReader(c.Body("1", method, params)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = c.HeadersFor(method, params)
	conn, err := net.Dial("tcp", req.URL.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := req.Write(conn); err != nil {
		t.Fatal(err)
	}
	return conn
}

// readOn reads the stream of a stalled client up to its answer.
func readOn(t *testing.T, conn net.Conn) (steps []int) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(testmcp.Patience))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"result":`) {
			return steps
		}
		if _, rest, found := strings.Cut(lines.Text(), `"progress":`); found {
			number, _, _ := strings.Cut(rest, ",")
			steps = append(steps, testmcp.Raw(number).Int())
		}
	}
	t.Fatalf("the stream ended without the answer, after %d steps: %v", len(steps), lines.Err())
	return nil
}

// wantRising: what is left of the progress comes in its order, the last step included.
func wantRising(t *testing.T, steps []int) {
	t.Helper()
	last := 0
	for _, step := range steps {
		if step <= last {
			t.Errorf("step %d came after step %d", step, last)
		}
		last = step
	}
	if len(steps) == floodCount || last != floodCount {
		t.Errorf("%d of %d steps came, the last of them is %d", len(steps), floodCount, last)
	}
}

// updating reports far more updates of one resource than a client takes that does not read.
var _ = testmcp.Register("updating", func([]string) *testmcp.Server {
	s := testmcp.Basic("updating")
	s.Quiet = true
	padding := strings.Repeat("x", 10<<10)
	s.Tools = append(s.Tools, testmcp.SimpleTool("update", func(c *testmcp.Call) {
		for range c.Args("times").Int() {
			c.Instance().Notify("notifications/resources/updated", `{"uri":"test://updating/readme","_meta":{"x":"`+padding+`"}}`)
		}
		c.Note("updated")
		c.Text("updated")
	}))
	return s
})

// TestAStandingStreamThatNobodyReadsCostsNobody: neither the calls of others nor the memory of the program.
func TestAStandingStreamThatNobodyReadsCostsNobody(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := start(t, "", map[string]string{"up": rec.Entry("updating", nil)})
	other := p.Client(testmcp.Modern)
	stalled := testmcp.NewClient(t, p.URL, testmcp.Legacy)
	stalled.Open()
	stalled.Call("resources/subscribe", `{"uri":"test://updating/readme"}`)
	stalled.HoldReading = true
	get := stalled.Get("")
	fresh := testmcp.NewClient(t, p.URL, testmcp.Modern)
	fresh.HoldReading = true
	listen := fresh.Listen(`{"resourceSubscriptions":["test://updating/readme"]}`)
	reader := p.Client(testmcp.Legacy)
	reader.Call("resources/subscribe", `{"uri":"test://updating/readme"}`)
	heard := stand(t, reader)

	before := testmcp.RSS(p.PID())
	times := 10_000 // 100 MiB of them
	if testmcp.Watched {
		times = 1500
	}
	flood := p.Client(testmcp.Legacy).Begin("tools/call", testmcp.ToolParams("up__update", fmt.Sprintf(`{"times":%d}`, times)))
	for range 20 {
		wantText(t, other.CallTool("up__echo", `{"text":"x"}`), "x")
	}
	wantText(t, flood.Final(), "updated")
	heard.WaitMethod("notifications/resources/updated")
	if grown := testmcp.RSS(p.PID()) - before; grown > 48<<20 && !testmcp.Watched {
		t.Errorf("the program has grown by %d MiB", grown>>20)
	}
	// Whoever reads again is told, and has lost nothing but repetitions.
	for name, s := range map[string]*testmcp.Stream{"GET": get, "listen": listen} {
		s.Resume()
		if s.WaitMethod("notifications/resources/updated"); countMethod(s, "notifications/resources/updated") > times {
			t.Errorf("%s was told more than there was to tell", name)
		}
	}
}
