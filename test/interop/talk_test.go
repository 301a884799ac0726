package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// errand is what a client does with one server that asks it something.
type errand struct {
	Server    string    `json:"server"`
	Elicit    *call     `json:"elicit"`
	Sample    *call     `json:"sample"`
	Roots     *call     `json:"roots"`
	Subscribe string    `json:"subscribe"` // a URI
	Touch     *call     `json:"touch"`     // updates that resource; nil where the server does it by itself
	Complete  *argument `json:"complete"`
	Wait      *call     `json:"wait"` // is cancelled once it has told its progress
	Gone      *call     `json:"gone"` // waits until the server knows
}

type argument struct {
	Prompt   string `json:"prompt"`
	Argument string `json:"argument"`
	Value    string `json:"value"`
}

// told is what a client reports of an errand.
type told struct {
	Elicit    string   `json:"elicit"`
	Sample    string   `json:"sample"`
	Roots     string   `json:"roots"`
	Asked     []string `json:"asked"` // the messages that a person would have seen
	Updated   string   `json:"updated"`
	Completed []string `json:"completed"`
	Waited    string   `json:"waited"`
	Gone      string   `json:"gone"`
}

// talker runs errands as a client of the proxy.
type talker func(ctx context.Context, t *testing.T, s stage, errands []errand) map[string]told

// askers are the servers of the Go SDK that ask, in both eras over both transports.
var askers = []string{"askerchild", "askeroldchild", "askerweb", "askeroldweb"}

// errands of a client; name tells its calls from those of others. The servers that tell nothing of cancelled calls come
// first: a client that closes its session may take its last cancel with it.
func errands(name string) []errand {
	var out []errand
	none := map[string]any{}
	for _, server := range []string{"everything", "everythingweb"} {
		do := func(tool string, arguments map[string]any) *call { return &call{server + "__" + tool, arguments} }
		e := errand{
			Server:   server,
			Elicit:   do("trigger-elicitation-request", none),
			Sample:   do("trigger-sampling-request", map[string]any{"prompt": "think"}),
			Roots:    do("get-roots-list", none),
			Complete: &argument{server + "__completable-prompt", "department", "S"},
		}
		if server == "everything" {
			e.Subscribe = wanted().Resource
		} else {
			e.Wait = long(server)
		}
		out = append(out, e)
	}
	// On a pipe that clients share, a call that was cancelled and never answered may be the one that asks, so this one has
	// a process that asks nothing.
	out = append(out, errand{Server: "everythingchild", Wait: long("everythingchild")})
	// The other one has the same resources, and had them first.
	out = append(out, errand{Server: "everythingopen", Subscribe: "everythingopen+" + wanted().Resource, Wait: long("everythingopen")})
	for _, server := range askers {
		do := func(tool string, arguments map[string]any) *call { return &call{server + "__" + tool, arguments} }
		id := map[string]any{"call": name}
		out = append(out, errand{
			Server: server, Elicit: do("elicit", none), Sample: do("sample", none), Roots: do("roots", none),
			Subscribe: noteOf(server), Touch: do("touch", none),
			Complete: &argument{server + "__pick", "colour", "gr"},
			Wait:     do("wait", id), Gone: do("gone", id),
		})
	}
	return out
}

// long is a call of server-everything that tells its progress ten times a second for a minute.
func long(server string) *call {
	return &call{server + "__trigger-long-running-operation", map[string]any{"duration": 60, "steps": 600}}
}

func testTalk(t *testing.T, s stage) {
	startUpdates(t, s)
	clients := []struct {
		name string
		talk talker
	}{
		{"go-sdk modern", goTalker(modernRevision)},
		{"go-sdk legacy", goTalker(legacyRevision)},
		{"typescript v1", nodeTalker("talk1.mjs")},
		{"typescript v2 legacy", nodeTalker("talk2.mjs", "legacy")},
		{"typescript v2 modern", nodeTalker("talk2.mjs", "auto")},
	}
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), visitTimeout)
			defer cancel()
			got := c.talk(ctx, t, s, errands(c.name))
			for _, e := range errands(c.name) {
				checkTold(t, c.name, e, got[e.Server])
			}
		})
	}
	for _, server := range []string{"everythingchild", "everythingopen", "everythingweb"} {
		if got := cancelled(t, s, server); got < len(clients) {
			t.Errorf("%d calls of %s were cancelled by clients, want %d", got, server, len(clients))
		}
	}
}

// startUpdates lets server-everything update what is subscribed to, which it goes on doing.
func startUpdates(t *testing.T, s stage) {
	t.Helper()
	session, err := dialGo(t.Context(), s, legacyRevision, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closeSession(t, session)
	for _, server := range []string{"everything", "everythingopen"} {
		text, err := callGo(t.Context(), session, call{server + "__toggle-subscriber-updates", map[string]any{}})
		if err != nil || !strings.HasPrefix(text, "Started") {
			t.Fatalf("the updates of %s have not begun: %q, %v", server, text, err)
		}
	}
}

func checkTold(t *testing.T, client string, e errand, got told) {
	t.Helper()
	if e.Elicit != nil {
		checkAsked(t, e, got)
	}
	if got.Updated != e.Subscribe {
		t.Errorf("%s: %q was updated, want %q", e.Server, got.Updated, e.Subscribe)
	}
	if e.Wait != nil && got.Waited != "cancelled" {
		t.Errorf("%s: the call that was given up: %s", e.Server, got.Waited)
	}
	if e.Gone != nil && got.Gone != client+" is gone" {
		t.Errorf("%s: the server says of the call that was given up: %s", e.Server, got.Gone)
	}
}

// checkAsked looks at what came of the questions of a server, and of what it was asked itself.
func checkAsked(t *testing.T, e errand, got told) {
	t.Helper()
	for what, pair := range map[string][2]string{
		"elicitation": {got.Elicit, "Ada"},
		"sampling":    {got.Sample, "a thought of my own"},
		"roots":       {got.Roots, "file:///home/ada"},
	} {
		if !strings.Contains(pair[0], pair[1]) {
			t.Errorf("%s: %s: the tool answered %q, want %q in it", e.Server, what, pair[0], pair[1])
		}
	}
	if len(got.Asked) != 1 || !strings.Contains(got.Asked[0], e.Server) {
		t.Errorf("%s: a person was asked %q, want one question with the server's name", e.Server, got.Asked)
	}
	want := []string{"green", "grey"}
	if strings.HasPrefix(e.Server, "everything") {
		want = []string{"Sales", "Support"}
	}
	if !slices.Equal(got.Completed, want) {
		t.Errorf("%s: completed %q, want %q", e.Server, got.Completed, want)
	}
}

// cancelled reads how many calls of an upstream clients have cancelled.
func cancelled(t *testing.T, s stage, upstream string) int {
	t.Helper()
	resp, err := http.Get(strings.TrimSuffix(s.url, "/mcp") + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	series := fmt.Sprintf(`mcp_proxy_cancellations_total{cause="client",upstream=%q} `, upstream)
	_, value, found := strings.Cut(string(text), series)
	if !found {
		t.Fatalf("there is no series %s", series)
	}
	value, _, _ = strings.Cut(value, "\n")
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// nodeTalker gives a client that is a script of the folder clients.
func nodeTalker(script string, args ...string) talker {
	return func(ctx context.Context, t *testing.T, s stage, errands []errand) map[string]told {
		dir := t.TempDir()
		layScripts(t, s, dir)
		what, err := json.Marshal(errands)
		if err != nil {
			t.Fatal(err)
		}
		out, err := runNode(ctx, s, dir, append([]string{filepath.Join(dir, script), s.url, string(what)}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]told
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		return got
	}
}
