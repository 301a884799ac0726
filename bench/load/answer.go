package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrWrongAnswer is wrapped by every error about an answer that came but is
// not the one asked for.
var ErrWrongAnswer = errors.New("wrong answer")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrWrongAnswer, fmt.Sprintf(format, args...))
}

// shape is what all right answers to one client's request have in common.
// Answers differ only in their ids, and those have the same length.
type shape struct {
	length int
	id     int // where the id begins
}

// matches checks an answer without parsing it.
func (s shape) matches(answer, id []byte) error {
	if len(answer) != s.length {
		return wrong("%d bytes instead of %d: %.200s", len(answer), s.length, answer)
	}
	if got := answer[s.id : s.id+idDigits]; !bytes.Equal(got, id) {
		return wrong("the id is %s instead of %s", got, id)
	}
	return nil
}

// learn parses the first answer to t in full and returns its shape.
func learn(t *Target, answer, id []byte) (shape, error) {
	var frame struct {
		ID     json.RawMessage
		Error  json.RawMessage
		Result *struct {
			ResultType string
			NextCursor string
			IsError    bool
			Content    []struct{ Type, Text string }
			Tools      []struct{ Name string }
		}
	}
	if err := json.Unmarshal(answer, &frame); err != nil {
		return shape{}, wrong("%v: %.200s", err, answer)
	}
	if !bytes.Equal(frame.ID, id) {
		return shape{}, wrong("the id is %s instead of %s", frame.ID, id)
	}
	result := frame.Result
	if frame.Error != nil || result == nil || result.IsError {
		return shape{}, wrong("no result: %.500s", answer)
	}
	if t.Era == Modern && result.ResultType != "complete" {
		return shape{}, wrong("resultType %q", result.ResultType)
	}
	switch t.Method {
	case "tools/call":
		if len(result.Content) != 1 || len(result.Content[0].Text) != t.Text {
			return shape{}, wrong("not one text of %d bytes: %.200s", t.Text, answer)
		}
	case "tools/list":
		if len(result.Tools) != t.Tools || result.NextCursor != "" {
			return shape{}, wrong("%d tools of %d, next cursor %q", len(result.Tools), t.Tools, result.NextCursor)
		}
	}
	at, err := idOffset(answer)
	if err != nil {
		return shape{}, err
	}
	return shape{length: len(answer), id: at}, nil
}

// idOffset finds the value of the top-level member id.
func idOffset(answer []byte) (int, error) {
	d := json.NewDecoder(bytes.NewReader(answer))
	if _, err := d.Token(); err != nil {
		return 0, wrong("%v", err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return 0, wrong("%v", err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return 0, wrong("%v", err)
		}
		if name == "id" {
			return int(d.InputOffset()) - len(value), nil
		}
	}
	return 0, wrong("no id: %.200s", answer)
}
