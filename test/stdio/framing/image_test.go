package framing

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// An image as large as those of cameras and scanners, and the limits with and without which it passes.
const (
	imageBytes  = 40 << 20
	largeLimits = `{"limits":{"max_frame_bytes":67108864}}`
)

// image is no picture, but every part of it is another.
var image = sync.OnceValue(func() string {
	data := make([]byte, 0, imageBytes+sha256.Size)
	for sum := sha256.Sum256(nil); len(data) < imageBytes; sum = sha256.Sum256(sum[:]) {
		data = append(data, sum[:]...)
	}
	return base64.StdEncoding.EncodeToString(data[:imageBytes])
})

var _ = testmcp.Register("camera", func(args []string) *testmcp.Server {
	s := testmcp.Basic("camera")
	s.Era, s.Quiet = stdio.Era(args), true
	form := args[1]
	s.Tools = append(s.Tools,
		testmcp.SimpleTool("shoot", func(c *testmcp.Call) { sendRaw(c, form, photo(c)) }),
		// half sends a part and is then gone.
		testmcp.SimpleTool("half", func(c *testmcp.Call) {
			frame := photo(c)
			half := frame[:len(frame)/2]
			switch form {
			case "pipe":
				c.Process().Stdout(half)
				c.Process().Crash()
			case "json":
				c.Respond(testmcp.Truncated("application/json", half, len(frame)))
			case "events":
				c.StreamBytes("data: " + half)
				c.EndStream()
			}
		}),
	)
	return s
})

func photo(c *testmcp.Call) string {
	kind := ""
	if c.Modern() {
		kind = `"resultType":"complete",`
	}
	return `{"jsonrpc":"2.0","id":` + string(c.ID) + `,"result":{` + kind + `"content":[{"type":"image","mimeType":"image/png","data":"` + image() + `"}]}}`
}

// A large image comes whole, or not at all and with a word why: never a part of it that looks like a success.
func TestALargeImageComesWholeOrNotAtAll(t *testing.T) {
	want := []byte(`"content":[{"type":"image","mimeType":"image/png","data":"` + image() + `"}]}`)
	for _, way := range stdio.Ways {
		if way.Name == "sse" {
			continue // the kit has one stream for all, which cannot be broken off in the middle
		}
		if testmcp.Watched && way.Name != "stdio-legacy" && way.Name != "http-modern-events" {
			continue // so much data takes the race detector a minute each
		}
		t.Run(way.Name, func(t *testing.T) {
			large := testmcp.StartProxy(t, testmcp.Config(largeLimits, map[string]string{"up": way.Entry(t, testmcp.NewRecorder(t), "camera", nil)}))
			usual := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": way.Entry(t, testmcp.NewRecorder(t), "camera", nil)}))
			for name, era := range stdio.Eras {
				before := testmcp.RSS(large.PID())
				body := rawRequest(t, large.Client(era), "tools/call", testmcp.ToolParams("up__shoot", ""))
				if !bytes.Contains(body, want) {
					t.Errorf("%s client: of an image of %d bytes %d bytes arrive: %.200s", name, len(want), len(body), body)
				}
				t.Logf("%s client: with an answer of %d MiB the program grows by %d MiB", name, len(body)>>20, (testmcp.RSS(large.PID())-before)>>20)
				checkOverLimit(t, usual.Client(era).CallTool("up__shoot", ""))
				half := large.Client(era).CallTool("up__half", "")
				reason := half.Err().At("data", "reason").Str()
				if half.Status != http.StatusOK || reason != "uncertain" && reason != "transport_error" || !strings.HasPrefix(half.Err().At("message").Str(), "up::half: ") {
					t.Errorf("%s client: half an image gives %.300s", name, half.Raw)
				}
				testmcp.Eventually(t, "a call afterwards", func() bool {
					return large.Client(era).CallTool("up__echo", fmt.Sprintf(`{"text":%q}`, name)).Text() == name
				})
			}
		})
	}
}
