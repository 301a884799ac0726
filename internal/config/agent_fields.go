package config

import (
	"slices"
	"time"
)

var agentKinds = []AgentKind{AgentCommand, AgentOpenAI, AgentA2A, AgentMCP}

func agentKindNames() (out []string) {
	for _, k := range agentKinds {
		out = append(out, string(k))
	}
	return out
}

var agentFields = []field[Agent]{
	withDefault("required", choiceField("kind", "What the agent is: a program, a model behind an OpenAI-compatible address, an agent that speaks A2A, or one tool of an MCP server.", `"command"`,
		func(a *Agent) *AgentKind { return &a.Kind }, agentKinds)),
	textField("title", "The name of the tool for people.", `"Triage"`, func(a *Agent) *string { return &a.Title }),
	textField("description", "What models are told about the tool. With `mcp` it takes the place of the tool's own.", `"Sorts tickets."`, func(a *Agent) *string { return &a.Description }),
	textField("instructions", "What the agent is told before the input: the system prompt of a model, and text put before the input for the other kinds.", `"Be brief."`, func(a *Agent) *string { return &a.Instructions }),
	durationField("timeout", "How long one run may take; then it is ended, and the tool answers with an error.", `"2m"`, time.Millisecond, func(a *Agent) *time.Duration { return &a.Timeout }),
	bytesField("max_answer_bytes", "The longest answer; a longer one is an error, and the run is ended.", `65536`, func(a *Agent) *int64 { return &a.MaxAnswerBytes }),
	choiceField("input", "For `command`: how the program gets the input. `{input}` in `args` stands for it in any case; with `argument` and no `{input}` it is the last argument.", `"argument"`,
		func(a *Agent) *AgentInput { return &a.Input }, []AgentInput{InputStdin, InputArgument}),
	withDefault("required", textField("model", "For `openai`: the name of the model.", `"gpt-5-mini"`, func(a *Agent) *string { return &a.Model }, notEmpty)),
	withDefault("`responses` where `url` ends with `/responses`, else `chat`", choiceField("api", "For `openai`: whether `url` is one of chat completions or of responses.", `"responses"`,
		func(a *Agent) *AgentAPI { return &a.API }, []AgentAPI{APIChat, APIResponses})),
	{key: "request", typ: "object", doc: "For `openai`: members added to each request, such as `temperature`.", example: `{"temperature": 0.2}`, def: "none",
		read: readAgentRequest, show: showAgentRequest},
	withDefault("its only one", textField("tool", "For `mcp`: the tool of the server.", `"run"`, func(a *Agent) *string { return &a.Tool }, notEmpty)),
	withDefault("its only required string", textField("argument", "For `mcp`: the argument of the tool that gets the input.", `"prompt"`, func(a *Agent) *string { return &a.Argument }, notEmpty)),
}

// agentKeys are the keys of agents that not all kinds have.
var agentKeys = map[string][]AgentKind{
	"input": {AgentCommand}, "model": {AgentOpenAI}, "api": {AgentOpenAI}, "request": {AgentOpenAI},
	"tool": {AgentMCP}, "argument": {AgentMCP},
}

var (
	keysOfAll     = []string{"disabled", "max_concurrency", "max_queue", "serialize"}
	keysOfCommand = []string{"command", "args", "env", "env_file", "inherit_env", "cwd", "limits"}
	keysOfRemote  = []string{"url", "headers", "auth_token"}
	// notOfAgents are the keys of a server that mean nothing for one tool that has a limit of its own.
	notOfAgents = []string{"tools", "tool_policy", "tool_prefix", "lazy", "resource_policy", "prompt_policy", "max_result_size", "oversize", "call_timeout", "max_call_time"}
)

// serverKeysOf are the keys of a server that an agent of this kind has beside its own.
func serverKeysOf(kind AgentKind) []string {
	switch kind {
	case AgentCommand:
		return slices.Concat(keysOfCommand, keysOfAll)
	case AgentOpenAI, AgentA2A:
		return slices.Concat(keysOfRemote, keysOfAll)
	}
	var out []string
	for _, key := range fieldKeys(serverFields) {
		if !slices.Contains(notOfAgents, key) {
			out = append(out, key)
		}
	}
	return out
}

func readAgentRequest(r *reader, at place, n *node, a *Agent) {
	if raw, ok := r.rawObject(at, n); ok {
		a.Request = raw
	}
}

func showAgentRequest(s *shower, canon, key string, a *Agent) { s.json(canon, key, a.Request) }

func (s *shower) agent(srv *Server) {
	canon := place{canon: "agents"}.member(member{key: srv.ID}).canon
	s.line(quoted(srv.ID) + ":")
	s.indent++
	defer func() { s.indent-- }()
	if srv.Problem != nil {
		s.line("# not usable: see the problems of this agent")
	}
	a := *srv.Agent
	if a.Kind == "" {
		return
	}
	for _, f := range agentFields {
		if kinds := agentKeys[f.key]; len(kinds) == 0 || slices.Contains(kinds, a.Kind) {
			showFields(s, canon, []field[Agent]{f}, &a)
		}
	}
	d := &draft{Server: *srv}
	if d.Fresh {
		d.Sharing = SharingCall
	}
	if d.Transport == TransportStdio {
		d.URL, d.Headers, d.AuthToken, d.SignIn = "", nil, "", SignIn{}
	}
	for _, f := range serverFields {
		if slices.Contains(serverKeysOf(a.Kind), f.key) {
			showFields(s, canon, []field[draft]{f}, d)
		}
	}
}
