package proxy

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// accepts says whether a client's answer may go up: what a person has entered must be what was asked for. A schema that
// cannot be understood refuses nothing.
func accepts(question, answer *wire.Frame) bool {
	if question.Method != methodElicit {
		return true
	}
	return acceptable(question.Body.Get(question.Raw, "requestedSchema").Of(question.Raw), answer.Result.Of(answer.Raw))
}

// acceptable compares an elicitation result with the schema that was asked for.
func acceptable(schema, result []byte) bool {
	obj, ok := wire.ObjectAt(result, wire.Span{End: len(result)})
	if !ok {
		return false
	}
	if string(obj.Get(result, "action").Of(result)) != `"accept"` || len(schema) == 0 {
		return true
	}
	var s jsonschema.Schema
	if json.Unmarshal(schema, &s) != nil {
		return true
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return true
	}
	content := map[string]any{}
	if raw := obj.Get(result, "content").Of(result); len(raw) > 0 && json.Unmarshal(raw, &content) != nil {
		return false
	}
	return r.Validate(content) == nil
}
