package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestSecretHides goes through the ways in which values get into logs and pages.
func TestSecretHides(t *testing.T) {
	s := struct {
		Token Secret
		Map   map[string]Secret
	}{"hunter2", map[string]Secret{"k": "hunter2"}}
	asJSON, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %q", s, s, s, s.Token, s.Token), string(asJSON)} {
		if strings.Contains(text, "hunter2") || !strings.Contains(text, "secret") {
			t.Errorf("a secret prints as %s", text)
		}
	}
	if s.Token.Reveal() != "hunter2" {
		t.Errorf("revealed is %q", s.Token.Reveal())
	}
}
