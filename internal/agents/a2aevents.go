package agents

import (
	"encoding/json"
	"fmt"
)

type a2aMessage struct {
	Role  string
	Parts []a2aPart
}

type a2aArtifact struct {
	ArtifactID string
	Parts      []a2aPart
}

type a2aStatus struct {
	State   string
	Message *a2aMessage
}

type a2aTask struct {
	ID        string
	Status    a2aStatus
	Artifacts []a2aArtifact
}

// a2aThing is whatever a result or an event may be: version 0.3 says which by kind, 1.0 by the member that there is.
type a2aThing struct {
	Kind string
	// Of 1.0.
	Task           *a2aTask
	Message        *a2aMessage
	StatusUpdate   *a2aUpdate
	ArtifactUpdate *a2aUpdate
}

// a2aUpdate is a change of a task.
type a2aUpdate struct {
	TaskID   string
	Status   a2aStatus
	Artifact a2aArtifact
	Append   bool
}

// take reads one answer of the agent, which is the only one of a request or an event of a stream.
func (r *a2aRun) take(b []byte) error {
	var v struct {
		Result json.RawMessage
		Error  *rpcError
	}
	if json.Unmarshal(b, &v) != nil {
		return fmt.Errorf("%w: %s", errNotJSON, clip(string(b), maxComplaint))
	}
	if v.Error != nil {
		return v.Error
	}
	var t a2aThing
	// In 1.0 a message has members that a result of 0.3 has beside kind, so that is looked at alone.
	var kind struct{ Kind string }
	if json.Unmarshal(v.Result, &kind) != nil {
		return fmt.Errorf("%w: %s", errNotJSON, clip(string(v.Result), maxComplaint))
	}
	if err := t.read(kind.Kind, v.Result); err != nil {
		return fmt.Errorf("%w: %s", errNotJSON, clip(string(v.Result), maxComplaint))
	}
	r.apply(&t)
	return r.bounded()
}

// read puts what came where version 1.0 has it.
func (t *a2aThing) read(kind string, raw json.RawMessage) error {
	var to any
	switch kind {
	case "message":
		t.Message = &a2aMessage{}
		to = t.Message
	case "status-update":
		t.StatusUpdate = &a2aUpdate{}
		to = t.StatusUpdate
	case "artifact-update":
		t.ArtifactUpdate = &a2aUpdate{}
		to = t.ArtifactUpdate
	case "task":
		t.Task = &a2aTask{}
		to = t.Task
	default:
		if err := json.Unmarshal(raw, t); err != nil {
			return err
		}
		if t.Task != nil || t.Message != nil || t.StatusUpdate != nil || t.ArtifactUpdate != nil {
			return nil
		}
		// In 1.0 GetTask and CancelTask answer with the task itself.
		t.Task = &a2aTask{}
		to = t.Task
	}
	return json.Unmarshal(raw, to)
}

// apply notes what is new.
func (r *a2aRun) apply(t *a2aThing) {
	switch {
	case t.Message != nil:
		r.message, r.settled = textOf(t.Message.Parts), true
		r.say(r.message)
	case t.Task != nil && t.Task.ID != "":
		r.task = t.Task.ID
		for _, a := range t.Task.Artifacts {
			r.artifact(a, false)
		}
		r.status(t.Task.Status)
	case t.StatusUpdate != nil:
		r.named(t.StatusUpdate.TaskID)
		r.status(t.StatusUpdate.Status)
	case t.ArtifactUpdate != nil:
		r.named(t.ArtifactUpdate.TaskID)
		r.artifact(t.ArtifactUpdate.Artifact, t.ArtifactUpdate.Append)
	}
}

func (r *a2aRun) named(task string) {
	if r.task == "" {
		r.task = task
	}
}

func (r *a2aRun) status(s a2aStatus) {
	r.state = stateOf(s.State)
	if s.Message != nil {
		if text := textOf(s.Message.Parts); text != "" && text != r.message {
			r.message = text
			r.say(text)
		}
	}
	r.settled = ended(r.state)
}

func (r *a2aRun) artifact(a a2aArtifact, more bool) {
	text := textOf(a.Parts)
	before, known := r.parts[a.ArtifactID]
	if !known {
		r.order = append(r.order, a.ArtifactID)
		r.parts[a.ArtifactID] = ""
	}
	switch {
	case more:
		r.parts[a.ArtifactID] = before + text
		r.say(text)
	case text != before:
		r.parts[a.ArtifactID] = text
		r.say(text)
	}
}

// bounded refuses an answer that is too long while it grows.
func (r *a2aRun) bounded() error {
	n := len(r.message)
	for id, p := range r.parts {
		n += len(id) + len(p)
	}
	if int64(n) > r.a.cfg.Agent.MaxAnswerBytes {
		return errTooLong
	}
	return nil
}
