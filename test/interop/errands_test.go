package interop

import (
	"net/url"
	"strings"
)

// errand is what a client does with one server that asks it something.
type errand struct {
	Server    string    `json:"server"`
	Elicit    *call     `json:"elicit"`
	Page      *call     `json:"page"`
	Sample    *call     `json:"sample"`
	Roots     *call     `json:"roots"`
	Subscribe string    `json:"subscribe"` // a URI
	Touch     *call     `json:"touch"`     // updates that resource; nil where the server does it by itself
	Complete  *argument `json:"complete"`
	Wait      *call     `json:"wait"`   // is cancelled once it has told its progress
	Gone      *call     `json:"gone"`   // waits until the server knows
	Resume    *call     `json:"resume"` // the stream of this one is cut
}

type argument struct {
	Prompt   string `json:"prompt"`
	Argument string `json:"argument"`
	Value    string `json:"value"`
}

// plan is what a client is to do. What it answers has its name in it, so that nobody can take another's answer for its.
type plan struct {
	Who     string   `json:"who"`
	Root    string   `json:"root"`
	Token   string   `json:"token"` // empty where nobody asks for one
	Errands []errand `json:"errands"`
}

func planOf(who, token string, errands []errand) plan {
	return plan{Who: who, Root: rootOf(who), Token: token, Errands: errands}
}

// rootOf, pageOf and promptOf are what is one client's alone.
func rootOf(who string) string   { return "file:///home/" + strings.ReplaceAll(who, " ", "-") }
func pageOf(who string) string   { return "https://example.org/in?for=" + url.QueryEscape(who) }
func promptOf(who string) string { return "think of " + who }

// none are the arguments of a tool that takes none.
var none = map[string]any{}

func toolOf(server, tool string, arguments map[string]any) *call {
	return &call{server + "__" + tool, arguments}
}

// askers are the servers of the Go SDK that ask, in both eras over both transports.
var askers = []string{"askerchild", "askeroldchild", "askerweb", "askeroldweb"}

// errands with servers that everybody shares. Those that tell nothing of cancelled calls come first: a client that closes
// its session may take its last cancel with it.
func errands(who string) []errand {
	// It asks for the roots once in its life, so that only the first client could be asked: ownErrands have them.
	everything, web := askEverything("everything", who), askEverything("everythingweb", who)
	everything.Subscribe = wanted().Resource
	// The other one has the same resources, and had them first.
	web.Subscribe = "everythingweb+" + wanted().Resource
	web.Wait = long("everythingweb")
	// On a pipe that clients share, a call that was cancelled and never answered may be the one that asks, so this one has
	// a process that asks nothing.
	out := []errand{everything, web, {Server: "everythingchild", Wait: long("everythingchild")}}
	for _, server := range askers {
		e := errand{Server: server, Subscribe: noteOf(server), Touch: toolOf(server, "touch", none)}
		e.Elicit = toolOf(server, "elicit", none)
		e.Page = toolOf(server, "page", map[string]any{"url": pageOf(who)})
		e.Sample = toolOf(server, "sample", map[string]any{"prompt": promptOf(who)})
		e.Roots = toolOf(server, "roots", none)
		e.Complete = &argument{server + "__pick", "colour", "gr"}
		e.Wait, e.Gone = toolOf(server, "wait", map[string]any{"call": who}), toolOf(server, "gone", map[string]any{"call": who})
		out = append(out, e)
	}
	return out
}

// ownErrands are errands with servers that have a connection for each client.
func ownErrands(who string) []errand {
	var out []errand
	for _, server := range []string{"ownchild", "ownweb"} {
		e := askEverything(server, who)
		e.Roots = toolOf(server, "get-roots-list", none)
		out = append(out, e)
	}
	return out
}

func askEverything(server, who string) errand {
	return errand{
		Server:   server,
		Elicit:   toolOf(server, "trigger-elicitation-request", none),
		Page:     toolOf(server, "trigger-url-elicitation", map[string]any{"url": pageOf(who), "message": "Please sign in."}),
		Sample:   toolOf(server, "trigger-sampling-request", map[string]any{"prompt": promptOf(who)}),
		Complete: &argument{server + "__completable-prompt", "department", "S"},
	}
}

// long is a call of server-everything that tells its progress ten times a second for a minute.
func long(server string) *call {
	return toolOf(server, "trigger-long-running-operation", map[string]any{"duration": 60, "steps": 600})
}

// resumeErrands are calls whose streams are cut and taken up again, where there is such a thing.
func resumeErrands(who, protocol string) []errand {
	if protocol == modernRevision {
		return nil
	}
	var out []errand
	for _, server := range []string{"everything", "everythingweb"} {
		out = append(out, errand{Server: server, Resume: toolOf(server, "trigger-long-running-operation", map[string]any{"duration": 1, "steps": 5})})
	}
	for _, server := range askers {
		out = append(out, errand{Server: server, Resume: toolOf(server, "slow", map[string]any{"call": server + " and " + who})})
	}
	return out
}
