package interop

import (
	"fmt"
	"slices"
	"testing"
)

// The programs that stand behind the proxy.
const (
	everythingServer = "server-everything"
	goServer         = "go-sdk"
)

// The ways between the proxy and a server.
const (
	overStdio = "stdio"
	overHTTP  = "HTTP"
)

// upstream is a server behind the proxy.
type upstream struct {
	id, program, transport, protocol string
}

func (u upstream) String() string {
	return u.program + " " + map[string]string{legacyRevision: "legacy", modernRevision: "modern"}[u.protocol] + " over " + u.transport
}

// upstreams are the servers that ask and are asked. Those of one kind differ in who shares them.
var upstreams = []upstream{
	{"everything", everythingServer, overStdio, legacyRevision},
	{"everythingchild", everythingServer, overStdio, legacyRevision},
	{"everythingweb", everythingServer, overHTTP, legacyRevision},
	{"ownchild", everythingServer, overStdio, legacyRevision},
	{"ownweb", everythingServer, overHTTP, legacyRevision},
	{"askeroldchild", goServer, overStdio, legacyRevision},
	{"askeroldweb", goServer, overHTTP, legacyRevision},
	{"askerchild", goServer, overStdio, modernRevision},
	{"askerweb", goServer, overHTTP, modernRevision},
}

func upstreamOf(id string) upstream {
	return upstreams[slices.IndexFunc(upstreams, func(u upstream) bool { return u.id == id })]
}

// talkers are the clients that run errands.
var talkers = []struct {
	name, protocol string
	talk           talker
}{
	{"go-sdk modern", modernRevision, goTalker(modernRevision)},
	{"go-sdk legacy", legacyRevision, goTalker(legacyRevision)},
	{"typescript v1", legacyRevision, nodeTalker("talk1.mjs")},
	{"typescript v2 legacy", legacyRevision, nodeTalker("talk2.mjs", "legacy")},
	{"typescript v2 modern", modernRevision, nodeTalker("talk2.mjs", "auto")},
}

// features are what every client does with every server, and what is wrong with what came of it.
var features = []struct {
	name  string
	in    func(e errand) bool
	check func(t *testing.T, who string, e errand, got told)
}{
	{"elicit a form", func(e errand) bool { return e.Elicit != nil }, checkForm},
	{"elicit by URL", func(e errand) bool { return e.Page != nil }, checkPage},
	{"sample", func(e errand) bool { return e.Sample != nil }, checkSample},
	{"list roots", func(e errand) bool { return e.Roots != nil }, checkRoots},
	{"subscribe", func(e errand) bool { return e.Subscribe != "" }, checkUpdated},
	{"complete", func(e errand) bool { return e.Complete != nil }, checkCompleted},
	{"cancel", func(e errand) bool { return e.Wait != nil }, checkCancelled},
	{resuming, func(e errand) bool { return e.Resume != nil }, checkResumed},
}

const resuming = "resume"

// cannot says why a client cannot do that with a server; empty where it can.
func cannot(protocol string, u upstream, feature string) string {
	switch {
	case u.program == everythingServer && u.protocol == modernRevision:
		return "it is built with an SDK that speaks only the legacy era"
	case feature == resuming && protocol == modernRevision:
		return "the revision has no Last-Event-ID: a stream that breaks has cancelled its call"
	}
	return ""
}

// Every client does everything with every server over every transport, in every era that both speak.
func TestNoCellIsLeftOut(t *testing.T) {
	for _, c := range talkers {
		run := map[string]bool{}
		for _, e := range slices.Concat(errands(c.name), ownErrands(c.name), resumeErrands(c.name, c.protocol)) {
			for _, f := range features {
				if f.in(e) {
					run[fmt.Sprint(upstreamOf(e.Server), ": ", f.name)] = true
				}
			}
		}
		for _, program := range []string{everythingServer, goServer} {
			for _, protocol := range []string{legacyRevision, modernRevision} {
				for _, transport := range []string{overStdio, overHTTP} {
					u := upstream{"", program, transport, protocol}
					for _, f := range features {
						cell, why := fmt.Sprint(u, ": ", f.name), cannot(c.protocol, u, f.name)
						if run[cell] == (why != "") {
							t.Errorf("%s with %s: it is run: %t; it cannot be: %q", c.name, cell, run[cell], why)
						}
					}
				}
			}
		}
	}
}
