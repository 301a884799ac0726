// Package testmcp is the kit with which tests play both sides of the proxy: upstreams that misbehave as those in
// the field do, and raw clients of both eras that see every byte. It is used by tests only and knows nothing of
// the rooms it tests.
//
// An upstream is a [Server] value. Its tools and methods are Go functions that get a [Call] and can answer with
// raw bytes, send progress, ask the client, wait for the test, or break in all manner of ways. The same value is
// served as a child process ([Register], [Recorder.Command]), over streamable HTTP ([ServeHTTP]) and over the
// older HTTP+SSE ([ServeSSE]). A [Recorder] holds what an upstream saw, in order, across restarts and crashes,
// lets the test wait for conditions, and at the end fails the test for every breach of the protocol by the
// client.
//
// A [Client] speaks to the proxy over HTTP and a [PipeClient] over stdin and stdout; [StartProxy] builds and
// runs the real program.
//
// A child is the test binary itself, so its TestMain begins with [MaybeRunChild] or is [Main]:
//
//	func TestMain(m *testing.M) { testmcp.Main(m) }
//
//	var _ = testmcp.Register("dies-mid-call", func(args []string) *testmcp.Server {
//		s := testmcp.Basic("fragile")
//		s.Tools = append(s.Tools, testmcp.SimpleTool("die", func(c *testmcp.Call) {
//			c.Progress(1, 2, "about to")
//			c.Process().Crash()
//		}))
//		s.Write = testmcp.NoiseBeforeEach("debug: sending\n")
//		return s
//	})
//
//	func TestOneDeathHurtsNobodyElse(t *testing.T) {
//		fragile, steady := testmcp.NewRecorder(t), testmcp.NewRecorder(t)
//		p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{
//			"fragile": fragile.Entry("dies-mid-call", nil),
//			"steady":  steady.Entry("basic", nil),
//		}))
//		c := p.Client(testmcp.Legacy)
//		held := c.Begin("tools/call", testmcp.ToolParams("steady__wait", `{"signal":"go"}`))
//		steady.Wait(t, testmcp.CalledTool("wait"))
//		if a := c.CallTool("fragile__die", ""); a.Err() == nil {
//			t.Errorf("a call whose process died was answered %s", a.Raw)
//		}
//		fragile.WaitN(t, 2, testmcp.Is(testmcp.Start)) // it is started again
//		steady.Signal("go")
//		if got := held.Final().Text(); got != "waited" {
//			t.Errorf("the other call gave %q", got)
//		}
//	}
//
// Nothing here sleeps: tests wait for records, events, log lines and signals, each with one limit, [Patience].
package testmcp
