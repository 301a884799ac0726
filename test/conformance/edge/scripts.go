package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// revisions are what a client of each era asks for.
var revisions = map[string]string{"legacy": "2025-11-25", "modern": "2026-07-28"}

// script is what the client does in a scenario.
type script struct {
	options map[string]any // of the server in the proxy's configuration
	run     func(ctx context.Context, p peer) error
}

// scripts has the scenarios in which a client does not have to log in.
var scripts = map[string]script{
	"initialize":                       {run: lists},
	"request-metadata":                 {run: lists},
	"json-schema-ref-no-deref":         {run: lists},
	"tools_call":                       {run: calls("add_numbers", map[string]any{"a": 5, "b": 3})},
	"sse-retry":                        {run: calls("test_reconnection", nil)},
	"sep-2322-client-request-state":    {run: answersAndStates},
	"http-standard-headers":            {run: oneOfEach},
	"http-custom-headers":              {run: givenCalls},
	"http-invalid-tool-headers":        {run: allTools},
	"json-schema-2020-12-preservation": {run: echoesSchema},
	"elicitation-sep1034-client-defaults": {
		// The mock server asks on the standing stream of its session, which says nothing about the call that it is for.
		// A session of its own makes it the client's.
		options: map[string]any{"sharing": "session"},
		run:     calls("test_client_elicitation_defaults", nil),
	},
}

// given is what the suite hands to the client of a scenario.
type given struct {
	Calls []struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	} `json:"toolCalls"`
}

func readGiven(text string) (given, error) {
	var g given
	if text == "" {
		return g, nil
	}
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		return g, fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
	}
	return g, nil
}

// peer is the proxy as the client sees it.
type peer struct {
	url      string
	revision string
	given    given
}

// with opens a session, does something in it and closes it.
func (p peer) with(ctx context.Context, do func(*mcp.ClientSession) error) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "edge", Version: "1.0.0"}, &mcp.ClientOptions{
		ElicitationHandler: consents,
	})
	transport := &mcp.StreamableClientTransport{Endpoint: p.url}
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: p.revision})
	if err != nil {
		return err
	}
	if got := session.InitializeResult().ProtocolVersion; got != p.revision {
		return errors.Join(fmt.Errorf("negotiated %s, want %s", got, p.revision), session.Close())
	}
	return errors.Join(do(session), session.Close())
}

// consents accepts what a server asks for. A form with defaults is left to them.
func consents(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	content := map[string]any{}
	schema, _ := req.Params.RequestedSchema.(map[string]any)
	fields, _ := schema["properties"].(map[string]any)
	for name, field := range fields {
		field, _ := field.(map[string]any)
		if _, ok := field["default"]; !ok && field["type"] == "boolean" {
			content[name] = true
		}
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}

func tools(ctx context.Context, s *mcp.ClientSession) (map[string]*mcp.Tool, error) {
	out := make(map[string]*mcp.Tool)
	for tool, err := range s.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("listing the tools: %w", err)
		}
		out[tool.Name] = tool
	}
	return out, nil
}

func call(ctx context.Context, s *mcp.ClientSession, name string, arguments map[string]any) error {
	if arguments == nil {
		arguments = map[string]any{}
	}
	if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments}); err != nil {
		return fmt.Errorf("calling %s: %w", name, err)
	}
	return nil
}

// lists lists the tools.
func lists(ctx context.Context, p peer) error {
	return p.with(ctx, func(s *mcp.ClientSession) error {
		_, err := tools(ctx, s)
		return err
	})
}

// calls calls one tool, which must be listed.
func calls(name string, arguments map[string]any) func(context.Context, peer) error {
	return func(ctx context.Context, p peer) error {
		return p.with(ctx, func(s *mcp.ClientSession) error {
			listed, err := tools(ctx, s)
			if err != nil {
				return err
			}
			if listed[name] == nil {
				return fmt.Errorf("%s is not listed", name)
			}
			return call(ctx, s, name, arguments)
		})
	}
}

// allTools calls all tools that are listed.
func allTools(ctx context.Context, p peer) error {
	return p.with(ctx, func(s *mcp.ClientSession) error {
		listed, err := tools(ctx, s)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(listed)) {
			err = errors.Join(err, call(ctx, s, name, map[string]any{"region": "us-west1"}))
		}
		return err
	})
}

// givenCalls makes the calls that the suite hands over.
func givenCalls(ctx context.Context, p peer) error {
	if len(p.given.Calls) == 0 {
		return errors.New("the suite hands over no calls")
	}
	return p.with(ctx, func(s *mcp.ClientSession) error {
		// The client learns from the list which arguments go into headers.
		_, err := tools(ctx, s)
		for _, c := range p.given.Calls {
			err = errors.Join(err, call(ctx, s, c.Name, c.Arguments))
		}
		return err
	})
}

// oneOfEach uses a tool, a resource and a prompt.
func oneOfEach(ctx context.Context, p peer) error {
	return p.with(ctx, func(s *mcp.ClientSession) error {
		listed, err := s.ListTools(ctx, nil)
		if err != nil {
			return err
		}
		resources, err := s.ListResources(ctx, nil)
		if err != nil {
			return err
		}
		prompts, err := s.ListPrompts(ctx, nil)
		if err != nil {
			return err
		}
		if len(listed.Tools)*len(resources.Resources)*len(prompts.Prompts) == 0 {
			return errors.New("no tool, no resource or no prompt is listed")
		}
		_, readErr := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: resources.Resources[0].URI})
		_, getErr := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: prompts.Prompts[0].Name})
		return errors.Join(call(ctx, s, listed.Tools[0].Name, nil), readErr, getErr)
	})
}

// answersAndStates calls tools that ask for input, with and without a state, and one between them that does not.
func answersAndStates(ctx context.Context, p peer) error {
	return p.with(ctx, func(s *mcp.ClientSession) error {
		var err error
		for _, name := range []string{
			"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type",
		} {
			err = errors.Join(err, call(ctx, s, name, nil))
		}
		return err
	})
}

// echoesSchema sends the schema of one tool as it arrived here to another one.
func echoesSchema(ctx context.Context, p peer) error {
	return p.with(ctx, func(s *mcp.ClientSession) error {
		listed, err := tools(ctx, s)
		if err != nil {
			return err
		}
		tool := listed["json_schema_2020_12_tool"]
		if tool == nil {
			return errors.New("json_schema_2020_12_tool is not listed")
		}
		return call(ctx, s, "json_schema_echo", map[string]any{"schema": tool.InputSchema})
	})
}
