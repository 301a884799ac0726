package proxy

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

func TestATaskIDOpensForItsOwnerOnly(t *testing.T) {
	s := newTaskSealer([][]byte{[]byte("a key")})
	ann := &Caller{Principal: "ann", View: ViewAll}
	want := taskRef{upstream: "files", place: upstream.Place{Generation: 7, Index: 3}, id: "1"}
	id, err := s.seal(ann, want)
	if err != nil || !strings.HasPrefix(id, taskPrefix) || strings.Contains(id, "files") {
		t.Fatalf("%q, %v", id, err)
	}
	if got, err := s.open(ann, id); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if again, _ := s.seal(ann, want); again != id {
		t.Errorf("the same task is %q and %q", id, again)
	}
	other := want
	other.id = "2"
	if id2, _ := s.seal(ann, other); id2 == id {
		t.Error("two tasks have one id")
	}
	for name, c := range map[string]*Caller{
		"another principal":                   {Principal: "bob", View: ViewAll},
		"another endpoint":                    {Principal: "ann", View: ServerView("files")},
		"a principal that runs into the view": {Principal: "an", View: "n"},
	} {
		if _, err := s.open(c, id); !errors.Is(err, errNotOurTask) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"the server's own": "1", "empty": "", "only the prefix": taskPrefix, "no prefix": strings.TrimPrefix(id, taskPrefix),
		"cut": id[:len(id)-1], "longer": id + "A", "other text": taskPrefix + "!!", "changed": id[:30] + "A" + id[31:], "far too long": taskPrefix + strings.Repeat("A", maxSealedTask),
	} {
		if text == id {
			continue
		}
		if _, err := s.open(ann, text); !errors.Is(err, errNotOurTask) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTaskIDsOutliveTheChangeOfKeys(t *testing.T) {
	c, ref := &Caller{Principal: "ann"}, taskRef{upstream: "files", id: "1"}
	id, _ := newTaskSealer([][]byte{[]byte("old")}).seal(c, ref)
	if got, err := newTaskSealer([][]byte{[]byte("new"), []byte("old")}).open(c, id); err != nil || got != ref {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := newTaskSealer([][]byte{[]byte("new")}).open(c, id); err == nil {
		t.Error("a key that is not there any more opens it")
	}
	if _, err := newTaskSealer(nil).open(c, id); err == nil {
		t.Error("a key of another process opens it")
	}
}

func TestATaskIDThatIsTooLongIsNotSealed(t *testing.T) {
	s := newTaskSealer(nil)
	for _, id := range []string{"", strings.Repeat("x", maxTaskID+1)} {
		if _, err := s.seal(&Caller{}, taskRef{upstream: "up", id: id}); !errors.Is(err, errTaskTooBig) {
			t.Errorf("%d bytes: %v", len(id), err)
		}
	}
	longest := taskRef{upstream: "up", id: strings.Repeat("x", maxTaskID)}
	id, err := s.seal(&Caller{}, longest)
	if got, err2 := s.open(&Caller{}, id); err != nil || err2 != nil || got != longest {
		t.Errorf("%v, %v", err, err2)
	}
}

func FuzzTaskID(f *testing.F) {
	s := newTaskSealer([][]byte{[]byte("a key")})
	c := &Caller{Principal: "ann"}
	id, _ := s.seal(c, taskRef{upstream: "files", id: "1"})
	f.Add(id)
	f.Add(taskPrefix)
	f.Add("1")
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := s.open(c, text)
		if err == nil && (text != id || ref.upstream != "files") {
			t.Errorf("%q opens as %+v", text, ref)
		}
	})
}
