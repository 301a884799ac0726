package interop

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// told is what a client reports of an errand.
type told struct {
	Elicit    string   `json:"elicit"`
	Page      string   `json:"page"`
	Sample    string   `json:"sample"`
	Roots     string   `json:"roots"`
	Asked     []string `json:"asked"` // what a person or a model would have seen
	Updated   string   `json:"updated"`
	Completed []string `json:"completed"`
	Waited    string   `json:"waited"`
	Gone      string   `json:"gone"`
	Resumed   string   `json:"resumed"`
}

// report is what a client has to tell.
type report struct {
	Protocol string          `json:"protocol"`
	Told     map[string]told `json:"told"` // by the server
}

// talker runs errands as a client of the proxy.
type talker func(ctx context.Context, t *testing.T, s stage, p plan) report

func testTalk(t *testing.T, s stage) {
	checkEras(t, s)
	startUpdates(t, s)
	for _, c := range talkers {
		t.Run(c.name, func(t *testing.T) { s.talk(t, c.talk, c.protocol, planOf(c.name, "", errands(c.name))) })
	}
	for server, heard := range s.heard {
		if n := cancelsHeard(t, heard()); n != len(talkers) {
			t.Errorf("%s was told that %d calls were cancelled, want %d", server, n, len(talkers))
		}
	}
}

// checkEras sees that the proxy speaks with each server in the era that its cells are called by.
func checkEras(t *testing.T, s stage) {
	t.Helper()
	resp, err := http.Get(strings.TrimSuffix(s.url, "/mcp") + "/api/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var status struct {
		Upstreams []struct {
			ID       string `json:"id"`
			Protocol string `json:"protocol_version"`
		} `json:"upstreams"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		t.Fatal(err)
	}
	spoken := map[string]string{}
	for _, u := range status.Upstreams {
		spoken[u.ID] = u.Protocol
	}
	for _, u := range upstreams {
		if !strings.HasPrefix(u.id, "own") && spoken[u.id] != u.protocol {
			t.Errorf("with %s revision %q is spoken, want %q", u.id, spoken[u.id], u.protocol)
		}
	}
}

// talk lets a client run its errands and looks at each feature of each of them.
func (s stage) talk(t *testing.T, talk talker, protocol string, p plan) {
	ctx, cancel := context.WithTimeout(t.Context(), visitTimeout)
	defer cancel()
	got := talk(ctx, t, s, p)
	if got.Protocol != protocol {
		t.Errorf("negotiated revision %q, want %q", got.Protocol, protocol)
	}
	for _, e := range p.Errands {
		for _, f := range features {
			if f.in(e) {
				t.Run(upstreamOf(e.Server).String()+": "+f.name, func(t *testing.T) { f.check(t, p.Who, e, got.Told[e.Server]) })
			}
		}
	}
}

// startUpdates lets server-everything update what is subscribed to, which it goes on doing.
func startUpdates(t *testing.T, s stage) {
	t.Helper()
	session, err := dialGo(t.Context(), s, legacyRevision, planOf("a starter", "", nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closeSession(t, session)
	for _, server := range []string{"everything", "everythingweb"} {
		text, err := callGo(t.Context(), session, *toolOf(server, "toggle-subscriber-updates", none))
		if err != nil || !strings.HasPrefix(text, "Started") {
			t.Fatalf("the updates of %s have not begun: %q, %v", server, text, err)
		}
	}
}

// has fails the test where a part is missing in a text.
func has(t *testing.T, what, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s %q, want %q in it", what, text, part)
	}
}

// shown gives the one thing of that kind that the client was shown.
func shown(t *testing.T, kind string, got told) string {
	t.Helper()
	all := slices.DeleteFunc(slices.Clone(got.Asked), func(what string) bool { return !strings.HasPrefix(what, kind+": ") })
	if len(all) != 1 {
		t.Fatalf("of %s the client was shown %q, want one", kind, all)
	}
	return all[0]
}

func checkForm(t *testing.T, who string, e errand, got told) {
	has(t, "a person saw", shown(t, "form", got), "["+e.Server+"] ")
	has(t, "the tool answered", got.Elicit, who)
}

func checkPage(t *testing.T, who string, e errand, got told) {
	page := shown(t, "url", got)
	has(t, "a person saw", page, "["+e.Server+"] ")
	has(t, "a person saw", page, pageOf(who))
	word := map[string]string{everythingServer: `"action": "accept"`, goServer: "visited: accept"}[upstreamOf(e.Server).program]
	has(t, "the tool answered", got.Page, word)
}

func checkSample(t *testing.T, who string, _ errand, got told) {
	has(t, "a model saw", shown(t, "sample", got), promptOf(who))
	has(t, "the tool answered", got.Sample, "a thought of "+who)
}

func checkRoots(t *testing.T, who string, _ errand, got told) {
	has(t, "the tool answered", got.Roots, rootOf(who))
}

func checkUpdated(t *testing.T, _ string, e errand, got told) {
	if got.Updated != e.Subscribe {
		t.Errorf("%q was updated, want %q", got.Updated, e.Subscribe)
	}
}

func checkCompleted(t *testing.T, _ string, e errand, got told) {
	want := map[string][]string{everythingServer: {"Sales", "Support"}, goServer: {"green", "grey"}}[upstreamOf(e.Server).program]
	if !slices.Equal(got.Completed, want) {
		t.Errorf("completed %q, want %q", got.Completed, want)
	}
}

// checkCancelled sees that the server of the Go SDK knows of it. What server-everything was told is counted in the end.
func checkCancelled(t *testing.T, who string, e errand, got told) {
	if got.Waited != "cancelled" {
		t.Errorf("the call that was given up: %s", got.Waited)
	}
	if e.Gone != nil && got.Gone != who+" is gone" {
		t.Errorf("the server says of the call that was given up: %s", got.Gone)
	}
}

func checkResumed(t *testing.T, _ string, e errand, got told) {
	want := map[string]string{everythingServer: "Long running operation completed", goServer: "done"}[upstreamOf(e.Server).program]
	has(t, "the tool answered", got.Resumed, want)
}

// nodeTalker gives a client that is a script of the folder clients.
func nodeTalker(script string, args ...string) talker {
	return func(ctx context.Context, t *testing.T, s stage, p plan) report {
		dir := t.TempDir()
		layScripts(t, s, dir)
		what, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		out, err := runNode(ctx, s, dir, append([]string{filepath.Join(dir, script), s.url, string(what)}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		var got report
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		return got
	}
}
