package proxy

import "testing"

func TestCapabilitiesOfClients(t *testing.T) {
	for raw, want := range map[string]struct {
		caps   Caps
		modern string
	}{
		``:                                       {0, `{}`},
		`{}`:                                     {0, `{}`},
		`{"elicitation":{}}`:                     {CapElicitForm, `{"elicitation":{"form":{}}}`},
		`{"elicitation":null}`:                   {0, `{}`},
		`{"elicitation":{"url":{}}}`:             {CapElicitURL, `{"elicitation":{"url":{}}}`},
		`{"elicitation":{"form":{},"url":{}}}`:   {CapElicitForm | CapElicitURL, `{"elicitation":{"form":{},"url":{}}}`},
		`{"sampling":{}}`:                        {CapSampling, `{"sampling":{}}`},
		`{"sampling":{"tools":{},"context":{}}}`: {CapSampling | CapSamplingTools | CapSamplingContext, `{"sampling":{"tools":{},"context":{}}}`},
		`{"roots":{"listChanged":true}}`:         {CapRoots | CapRootsListChanged, `{"roots":{}}`},
		`{"roots":{"listChanged":false}}`:        {CapRoots, `{"roots":{}}`},
		`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`: {CapTasks, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`},
		`{"elicitation":{},"sampling":{},"roots":{}}`:         {CapElicitForm | CapSampling | CapRoots, `{"elicitation":{"form":{}},"sampling":{},"roots":{}}`},
	} {
		c := ParseCaps([]byte(raw))
		if c != want.caps {
			t.Errorf("ParseCaps(%s) = %b, want %b", raw, c, want.caps)
		}
		if got := string(c.modern()); got != want.modern {
			t.Errorf("%s is told to a modern upstream as %s, want %s", raw, got, want.modern)
		}
	}
}
