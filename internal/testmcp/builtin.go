package testmcp

import (
	"slices"
	"strconv"
	"strings"
)

// run hands the call to the script, or does what the kit does by default.
func (c *Call) run() {
	defer c.cancel(nil)
	srv := c.session.in.srv
	if srv.Before != nil && srv.Before(c) {
		return
	}
	if h := srv.On[c.Method]; h != nil {
		h(c)
		return
	}
	c.Default()
}

// Default does what the kit does when the script says nothing about this method.
func (c *Call) Default() {
	if c.kind() == messageNotice {
		return
	}
	if why := c.refusal(); why != nil {
		why()
		return
	}
	if h := builtins[c.Method]; h != nil {
		h(c)
		return
	}
	c.Error(codeNoMethod, "method not found: "+c.Method, "")
}

// builtins is filled at start because the handlers refer to it through Default.
var builtins map[string]Handler

func init() {
	empty := func(c *Call) { c.Result("{}") }
	builtins = map[string]Handler{
		"initialize":               initialize,
		"server/discover":          discover,
		"ping":                     empty,
		"logging/setLevel":         empty,
		"resources/subscribe":      empty,
		"resources/unsubscribe":    empty,
		"tools/list":               listTools,
		"tools/call":               callTool,
		"resources/list":           listResources,
		"resources/templates/list": listTemplates,
		"resources/read":           readResource,
		"prompts/list":             listPrompts,
		"prompts/get":              getPrompt,
		"completion/complete":      func(c *Call) { c.Result(`{"completion":{"values":[],"hasMore":false}}`) },
		"subscriptions/listen":     listen,
	}
}

var modernRemoved = []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}

// refusal gives the error of a request that this server's era does not allow; nil if it does.
func (c *Call) refusal() func() {
	srv := c.session.in.srv
	known := append(slices.Clone(srv.modernVersions()), srv.legacyVersions()...)
	switch {
	case !c.Modern() && !srv.Era.legacy():
		return func() { c.Error(codeNoMethod, "not supported", `{"supported":`+quoteAll(srv.modernVersions())+`}`) }
	case !c.Modern():
		return nil
	case !srv.Era.modern():
		return func() { c.Error(codeNoMethod, "method not found: "+c.Method, "") }
	case !c.Params.Has("_meta", metaVersion) || !c.Params.Has("_meta", metaCaps):
		return func() { c.Error(codeBadParams, "_meta lacks a required member", "") }
	case !slices.Contains(srv.modernVersions(), c.Version()):
		return func() {
			c.Error(codeVersion, "unsupported protocol version", `{"supported":`+quoteAll(known)+`,"requested":`+Quote(c.Version())+`}`)
		}
	case slices.Contains(modernRemoved, c.Method):
		return func() { c.Error(codeNoMethod, "method not found: "+c.Method, "") }
	}
	return nil
}

func initialize(c *Call) {
	srv, s := c.session.in.srv, c.session
	version := c.Params.At("protocolVersion").Str()
	if !slices.Contains(srv.legacyVersions(), version) {
		version = srv.legacyVersions()[0]
	}
	s.mu.Lock()
	s.legacy, s.version, s.caps = true, version, c.Params.At("capabilities")
	s.mu.Unlock()
	c.Result(`{"protocolVersion":` + Quote(version) + `,"capabilities":` + srv.capabilities() +
		`,"serverInfo":` + srv.info() + srv.instructions() + `}`)
}

func discover(c *Call) {
	srv := c.session.in.srv
	versions := srv.modernVersions()
	if srv.Era.legacy() {
		versions = append(slices.Clone(versions), srv.legacyVersions()...)
	}
	c.Result(`{"resultType":"complete","supportedVersions":` + quoteAll(versions) + `,"capabilities":` + srv.capabilities() +
		srv.instructions() + `,"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":` + srv.info() + `}}`)
}

func (s *Server) info() string { return `{"name":` + Quote(s.name()) + `,"version":"1.0.0"}` }

func (s *Server) instructions() string {
	if s.Instructions == "" {
		return ""
	}
	return `,"instructions":` + Quote(s.Instructions)
}

func quoteAll(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = Quote(s)
	}
	return "[" + strings.Join(out, ",") + "]"
}

// page answers a list request with the page that its cursor names.
func (c *Call) page(member string, items []string) {
	from, next := 0, ""
	if cursor, has := strings.CutPrefix(c.Params.At("cursor").Str(), "from-"); has {
		from, _ = strconv.Atoi(cursor)
	} else if c.Params.Has("cursor") {
		c.Error(codeBadParams, "unknown cursor", "")
		return
	}
	from = min(max(from, 0), len(items))
	to := len(items)
	if size := c.session.in.srv.PageSize; size > 0 && from+size < to {
		to = from + size
		next = `,"nextCursor":` + Quote("from-"+strconv.Itoa(to))
	}
	if c.Modern() {
		next += `,"ttlMs":0,"cacheScope":"private"`
	}
	c.Result(`{` + Quote(member) + `:[` + strings.Join(items[from:to], ",") + `]` + next + `}`)
}

func listTools(c *Call) {
	var items []string
	for _, t := range c.session.in.currentTools() {
		items = append(items, t.Definition)
	}
	c.page("tools", items)
}

func callTool(c *Call) {
	name := c.Params.At("name").Str()
	for _, t := range c.session.in.currentTools() {
		if Raw(t.Definition).At("name").Str() == name && t.Handle != nil {
			t.Handle(c)
			return
		}
	}
	c.Error(codeBadParams, "Unknown tool: "+name, "")
}

func listResources(c *Call) {
	var items []string
	for _, r := range c.session.in.srv.Resources {
		items = append(items, r.Definition)
	}
	c.page("resources", items)
}

func listTemplates(c *Call) { c.page("resourceTemplates", c.session.in.srv.Templates) }

func readResource(c *Call) {
	uri := c.Params.At("uri").Str()
	for _, r := range c.session.in.srv.Resources {
		if Raw(r.Definition).At("uri").Str() != uri {
			continue
		}
		if r.Read != nil {
			r.Read(c)
			return
		}
		c.Contents(uri, "")
		return
	}
	code := codeResourceGone
	if c.Modern() {
		code = codeBadParams
	}
	c.Error(code, "Resource not found", `{"uri":`+Quote(uri)+`}`)
}

// Contents answers resources/read with one text.
func (c *Call) Contents(uri, text string) {
	tail := ""
	if c.Modern() {
		tail = `,"ttlMs":0,"cacheScope":"private"`
	}
	c.Result(`{"contents":[{"uri":` + Quote(uri) + `,"mimeType":"text/plain","text":` + Quote(text) + `}]` + tail + `}`)
}

func listPrompts(c *Call) {
	var items []string
	for _, p := range c.session.in.srv.Prompts {
		items = append(items, p.Definition)
	}
	c.page("prompts", items)
}

func getPrompt(c *Call) {
	name := c.Params.At("name").Str()
	for _, p := range c.session.in.srv.Prompts {
		if Raw(p.Definition).At("name").Str() != name {
			continue
		}
		if p.Get != nil {
			p.Get(c)
			return
		}
		c.Result(`{"messages":[{"role":"user","content":{"type":"text","text":` + Quote("prompt "+name) + `}}]}`)
		return
	}
	c.Error(codeBadParams, "Unknown prompt: "+name, "")
}

// listen acknowledges the whole filter and stays open; the answer is the graceful end when the server stops.
func listen(c *Call) {
	sub := Quote(metaSub) + ":" + string(c.ID)
	c.Notify("notifications/subscriptions/acknowledged",
		`{"_meta":{`+sub+`},"notifications":`+orElse(string(c.Params.At("notifications")), "{}")+`}`)
	c.session.in.addListen(c)
	defer c.session.in.dropListen(c)
	select {
	case <-c.ctx.Done():
	case <-c.session.in.rec.signal(EndListens):
		c.Result(`{"_meta":{` + sub + `}}`)
	}
}

// EndListens is the signal at which every open listen request is answered, which ends it gracefully.
const EndListens = "testmcp.end-listens"
