package testmcp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// child starts a registered behaviour and connects a raw client to it.
func child(t *testing.T, era Era, name string, args ...string) (*PipeClient, *Recorder) {
	t.Helper()
	rec := NewRecorder(t)
	command, arguments, env := rec.Command(name, args...)
	var list []string
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	return NewPipeClient(t, era, append(list, "TESTMCP_EXTRA=1"), command, arguments...), rec
}

func TestChildTellsHowItWasStarted(t *testing.T) {
	c, rec := child(t, Legacy, "basic", "one", "two words")
	if got := c.Open().Opened.Result().At("serverInfo", "name").Str(); got != "one-two words" {
		t.Errorf("the child got the arguments %q", got)
	}
	start := rec.Wait(t, Is(Start))
	if start.PID != c.PID() || !slices.Contains(start.Env, "TESTMCP_EXTRA=1") || start.Args[2] != "two words" || start.Dir == "" {
		t.Errorf("start record %+v", start)
	}
	if got := rec.Live(); !slices.Equal(got, []int{c.PID()}) {
		t.Errorf("alive are %v", got)
	}
	if code, err := c.Close(); code != 0 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	if exit := rec.Wait(t, Is(Exit)); exit.Text != "0" {
		t.Errorf("exit record %v", exit)
	}
	rec.WaitGone(t)
}

func TestRecordIsThereWhenTheAnswerIs(t *testing.T) {
	c, rec := child(t, Modern, "basic")
	for i := 1; i <= 20; i++ {
		c.CallTool("echo", `{"text":"x"}`)
		if got := rec.Count(CalledTool("echo")); got != i {
			t.Fatalf("after call %d the record has %d", i, got)
		}
	}
}

func TestCrashAndExitAreRecorded(t *testing.T) {
	for tool, want := range map[string]string{"crash": "gone", "exit": "7"} {
		c, rec := child(t, Legacy, "basic")
		c.Open().Start("tools/call", ToolParams(tool, `{"code":7}`))
		if exit := rec.Wait(t, Is(Exit)); exit.Text != want || exit.PID != c.PID() {
			t.Errorf("%s: exit record %v", tool, exit)
		}
		rec.WaitGone(t)
	}
}

func TestCancelReachesTheHandler(t *testing.T) {
	c, rec := child(t, Legacy, "basic")
	id := c.Open().Start("tools/call", ToolParams("hang", ""))
	rec.Wait(t, CalledTool("hang"))
	c.Notify("notifications/cancelled", `{"requestId":`+id+`,"reason":"enough"}`)
	got := rec.Wait(t, Is(Cancel))
	if string(got.ID) != id || !strings.Contains(got.Text, "enough") {
		t.Errorf("cancel record %v", got)
	}
}

func TestSignalsReachChildren(t *testing.T) {
	c, rec := child(t, Legacy, "basic")
	rec.Signal("early")
	if got := c.Open().CallTool("wait", `{"signal":"early"}`).Result().At("content", 0, "text").Str(); got != "waited" {
		t.Errorf("got %q", got)
	}
	id := c.Start("tools/call", ToolParams("wait", `{"signal":"late"}`))
	rec.WaitN(t, 2, CalledTool("wait"))
	rec.Signal("late")
	c.Final(id)
}

func TestChildAsksInBothEras(t *testing.T) {
	c, _ := child(t, Legacy, "basic")
	c.Answers["roots/list"] = func(Raw) string { return `{"roots":[]}` }
	if got := c.Open().CallTool("roots", "").Result().At("content", 0, "text").Str(); got != `{"roots":[]}` {
		t.Errorf("legacy: %s", got)
	}
	if got := c.CallTool("sample", "").Err().At("code").Int(); got != codeNoMethod {
		t.Errorf("an undeclared question gave %d", got)
	}
	m, _ := child(t, Modern, "basic")
	first := m.CallTool("roots", "").Result()
	if first.At("resultType").Str() != "input_required" || first.At("inputRequests", "roots", "method").Str() != "roots/list" {
		t.Errorf("modern: %s", first)
	}
	second := m.Call("tools/call", `{"name":"roots","inputResponses":{"roots":{"roots":[1]}}}`).Result()
	if second.At("content", 0, "text").Str() != `{"roots":[1]}` || second.At("resultType").Str() != "complete" {
		t.Errorf("modern, second round: %s", second)
	}
}

var _ = Register("faulty", func(args []string) *Server {
	s := Basic("faulty")
	add := func(name string, h Handler) { s.Tools = append(s.Tools, SimpleTool(name, h)) }
	add("close-stdin", func(c *Call) { c.Process().CloseStdin(); c.Text("closed") })
	add("close-stdout", func(c *Call) { c.Process().CloseStdout(); c.Note("closed") })
	add("half", func(c *Call) { c.Process().Stdout(`{"jsonrpc":"2.0",`); c.Note("half a line") })
	add("flood", func(c *Call) { c.Process().FloodStderr(1<<18, true); c.Text("flooded") })
	add("spawn", func(c *Call) {
		c.Process().Spawn(Spawn{HoldPipes: true, Detach: true, Stubborn: true})
		c.Text("spawned")
	})
	add("dribble", func(c *Call) {
		c.Process().StdoutSlowly(fmt.Sprintf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n", c.ID))
	})
	add("late", func(c *Call) { c.Text("done"); c.Progress(9, 0, "late") })
	s.On = map[string]Handler{"server/discover": Exits(1)}
	s.Start = func(p *Process) {
		p.Stderr("starting\n")
		if slices.Contains(args, "stubborn") {
			p.IgnoreSIGTERM()
		}
		if slices.Contains(args, "broken") {
			p.Stderr("missing key\n")
			p.Exit(3)
		}
	}
	if slices.Contains(args, "stubborn") {
		s.AtEOF = func(p *Process) { p.Note("goes on") }
	}
	s.Serial = slices.Contains(args, "serial")
	return s
})

func TestChildCanCloseItsPipes(t *testing.T) {
	c, rec := child(t, Legacy, "faulty")
	c.Open().CallTool("close-stdin", "")
	Eventually(t, "a failing write", func() bool {
		_, err := c.stdin.Write([]byte("{}\n"))
		return err != nil
	})
	if len(rec.Live()) != 1 {
		t.Error("the child did not live on")
	}
	d, rec := child(t, Legacy, "faulty")
	d.Open().Start("tools/call", ToolParams("close-stdout", ""))
	rec.Wait(t, Noted("closed"))
	Eventually(t, "end of stdout", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.over
	})
	if len(rec.Live()) != 1 {
		t.Error("the child did not live on")
	}
}

func TestChildFaults(t *testing.T) {
	c, rec := child(t, Legacy, "faulty")
	c.Open()
	if c.CallTool("flood", ""); len(c.Stderr()) < 1<<18 {
		Eventually(t, "all of stderr", func() bool { return len(c.Stderr()) >= 1<<18 })
	}
	if got := c.CallTool("dribble", "").Result().String(); got != "{}" {
		t.Errorf("dribbled %s", got)
	}
	c.Call("tools/call", `{"name":"late","_meta":{"progressToken":"tok"}}`)
	late := c.Wait("late progress", func(m Message) bool { return m.Method == "notifications/progress" })
	if late.Params.At("progressToken").Str() != "tok" || late.Params.Has("total") {
		t.Errorf("late progress %s", late.Raw)
	}
	c.CallTool("spawn", "")
	pid := rec.SpawnedPIDs()[0]
	if !Alive(pid) || !slices.Contains(Descendants(c.PID()), pid) {
		t.Errorf("the grandchild %d is not to be seen", pid)
	}
	killPID(pid)
	Eventually(t, "end of the grandchild", func() bool { return !Alive(pid) })
	before := len(c.Lines())
	c.Start("tools/call", ToolParams("half", ""))
	rec.Wait(t, Noted("half a line"))
	if len(c.Lines()) != before {
		t.Error("half a line was a whole one")
	}
}

func TestStubbornChildOutlivesEOFAndSIGTERM(t *testing.T) {
	c, rec := child(t, Legacy, "faulty", "stubborn")
	c.Open()
	_ = c.stdin.Close()
	rec.Wait(t, Noted("goes on"))
	if err := terminate(c.cmd.Process); err != nil {
		t.Fatal(err)
	}
	if got := rec.Wait(t, Is(Signal)); got.Text != "terminated" || len(rec.Live()) != 1 {
		t.Errorf("after %v alive: %v", got, rec.Live())
	}
	polite, rec := child(t, Legacy, "faulty")
	polite.Open()
	if err := terminate(polite.cmd.Process); err != nil {
		t.Fatal(err)
	}
	rec.WaitGone(t)
}

func TestChildEndsBeforeAndDuringTheHandshake(t *testing.T) {
	c, rec := child(t, Legacy, "faulty", "broken")
	if exit := rec.Wait(t, Is(Exit)); exit.Text != "3" {
		t.Errorf("exit record %v", exit)
	}
	Eventually(t, "the reason on stderr", func() bool { return strings.Contains(c.Stderr(), "missing key") })
	m, rec := child(t, Modern, "faulty")
	m.Start("server/discover", "")
	if exit := rec.Wait(t, Is(Exit)); exit.Text != "1" {
		t.Errorf("exit record %v", exit)
	}
}

func TestSerialChildDoesOneThingAfterTheOther(t *testing.T) {
	c, rec := child(t, Legacy, "faulty", "serial")
	id := c.Open().Start("tools/call", ToolParams("wait", `{"signal":"go"}`))
	rec.Wait(t, CalledTool("wait"))
	ping := c.Start("ping", "")
	if rec.Count(Received("ping")) != 0 {
		t.Error("a serial child read on during a call")
	}
	rec.Signal("go")
	c.Final(id)
	c.Final(ping)
}

func TestWriteForms(t *testing.T) {
	const ask = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	const plain = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for name, tt := range map[string]struct {
		form func(int, []byte) []byte
		want string
	}{
		"plain":    {nil, plain + "\n" + plain + "\n"},
		"crlf":     {EndingWith("\r\n"), plain + "\r\n" + plain + "\r\n"},
		"one line": {EndingWith(""), plain + plain},
		"banner":   {Banner("ready\n"), "ready\n" + plain + "\n" + plain + "\n"},
		"bom":      {Banner(ByteOrderMark), "\xEF\xBB\xBF" + plain + "\n" + plain + "\n"},
		"noise":    {NoiseBeforeEach("debug\n"), "debug\n" + plain + "\ndebug\n" + plain + "\n"},
		"twice":    {Twice, strings.Repeat(plain+"\n", 4)},
		"array":    {InArray, "[" + plain + "]\n[" + plain + "]\n"},
		"string":   {StringID, strings.Repeat(`{"jsonrpc":"2.0","id":"1","result":{}}`+"\n", 2)},
	} {
		var out bytes.Buffer
		s := &Server{Write: tt.form, Serial: true}
		if err := Serve(t.Context(), s, nil, strings.NewReader(ask+ask), &out); err != nil {
			t.Error(err)
		}
		if out.String() != tt.want {
			t.Errorf("%s: got %q, want %q", name, out.String(), tt.want)
		}
	}
}
